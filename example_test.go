package heavykeeper_test

import (
	"encoding"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/heavykeeper-go/heavykeeper"
)

func Example() {
	hot, err := heavykeeper.New(heavykeeper.Config[string]{K: 10})
	if err != nil {
		panic(err)
	}
	for word := range strings.FieldsSeq("the cat saw the dog and the dog saw the cat run") {
		hot.Add(word)
	}
	for _, item := range hot.Top(3) {
		fmt.Println(item.Key, item.Count, item.Lower, item.Upper)
	}
	// Output:
	// the 4 4 4
	// cat 2 2 2
	// dog 2 2 2
}

func ExampleNewSketch() {
	s, err := heavykeeper.NewSketch(heavykeeper.Config[int]{K: 2, Width: -1})
	fmt.Println(s, err)
	// Output:
	// <nil> heavykeeper: Width = -1: must be positive
}

// Ten workers count a shard of the traffic each. Their sketches, made with the
// same parameters, merge into one view of the whole. The key "shared" is never
// among the three heaviest of a worker and yet the heaviest of all.
func ExampleHeavyKeeper_Merge() {
	config := heavykeeper.Config[string]{K: 3, Width: 500, Seed: 42}
	cluster, err := heavykeeper.New(config)
	if err != nil {
		panic(err)
	}
	for i := range 10 {
		worker, err := heavykeeper.New(config)
		if err != nil {
			panic(err)
		}
		for local := range 3 {
			worker.AddN(fmt.Sprintf("local-%d-%d", i, local), 100)
		}
		worker.AddN("shared", 90)
		for j := range 1000 {
			worker.Add(fmt.Sprintf("rare-%d-%d", i, j))
		}
		if err := cluster.Merge(worker); err != nil {
			panic(err)
		}
	}
	top := cluster.Top(1)[0]
	fmt.Println(top.Key, top.Count, top.Upper >= 900)
	// Output:
	// shared 900 true
}

// A key that falls silent fades away by itself.
func ExampleHeavyKeeper_Fade() {
	hot, err := heavykeeper.New(heavykeeper.Config[string]{K: 5, Alpha: 0.05})
	if err != nil {
		panic(err)
	}
	hot.AddN("yesterday's news", 1000)
	for second := range 61 {
		if second%20 == 0 {
			fmt.Println(second, hot.Estimate("yesterday's news").Count)
		}
		hot.Fade()
	}
	// Output:
	// 0 1000
	// 20 359
	// 40 129
	// 60 46
}

// A cache that must know which keys are hot hears of every key that starts and
// stops being tracked.
func ExampleConfig_hooks() {
	s, err := heavykeeper.NewSketch(heavykeeper.Config[string]{
		K:       1,
		OnAdmit: func(key string) { fmt.Println("admitted", key) },
		OnEvict: func(key string) { fmt.Println("evicted", key) },
	})
	if err != nil {
		panic(err)
	}
	s.AddN("a", 10)
	s.AddN("b", 20) // one more than K is tracked
	s.AddN("c", 15)
	// Output:
	// admitted a
	// admitted b
	// evicted a
	// admitted c
}

func ExampleAddBytes() {
	hot, err := heavykeeper.New(heavykeeper.Config[string]{K: 10})
	if err != nil {
		panic(err)
	}
	buffer := make([]byte, 0, 16)
	for i := range 3 {
		buffer = fmt.Appendf(buffer[:0], "path/%d", i%2)
		heavykeeper.AddBytes(hot, buffer, 1) // buffer may be reused
	}
	for item := range hot.All() {
		fmt.Println(item.Key, item.Count)
	}
	// Output:
	// path/0 2
	// path/1 1
}

// save writes an encoding to a file so that after a crash, at any moment, the
// file is the old one or the new one, whole. (Windows cannot sync a directory.)
func save(path string, object encoding.BinaryMarshaler) error {
	data, err := object.MarshalBinary()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // of no effect once it is renamed
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync() // the contents, before the name
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync() // the name
}

// A service saves what it has counted now and then, while it goes on counting,
// and takes up where it was when it starts again.
func ExampleHeavyKeeper_MarshalBinary() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "hot")

	config := heavykeeper.Config[string]{K: 10, Stripes: 4} // the number of stripes is saved, too
	for start := range 3 {
		hot, err := heavykeeper.New(config)
		if err != nil {
			panic(err)
		}
		switch data, err := os.ReadFile(path); {
		case os.IsNotExist(err):
			// The first time.
		case err != nil:
			panic(err)
		default:
			if err := hot.UnmarshalBinary(data); err != nil {
				panic(err) // hot is still empty and could go on so
			}
		}
		hot.AddN("/index.html", 5)
		hot.Add(fmt.Sprintf("/page-%d.html", start))
		if err := save(path, hot); err != nil {
			panic(err)
		}
		fmt.Println(hot.Top(2))
	}
	// Output:
	// [{/index.html {5 5 5}} {/page-0.html {1 1 1}}]
	// [{/index.html {10 10 10}} {/page-0.html {1 1 1}}]
	// [{/index.html {15 15 15}} {/page-0.html {1 1 1}}]
}

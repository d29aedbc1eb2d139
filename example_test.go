package heavykeeper_test

import (
	"fmt"
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

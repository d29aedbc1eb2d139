package heavykeeper

import (
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var writeGolden = flag.Bool("golden", false, "write the golden files that are missing")

// object is what both types have in common that are encoded.
type object[K comparable] interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
	Top(int) []Item[K]
	Stats() Stats
	Estimate(K) Estimate
}

// golden is an encoding of version 1 with what its object answers, in
// testdata. It is not to be written again as long as that version is read.
type golden struct {
	name  string
	check func(t *testing.T)
}

// answers is what a golden object is expected to say.
type answers[K comparable] struct {
	Stats     Stats
	Top       []Item[K]
	Estimates []Estimate // of the keys 0 to 39
}

func answersOf[K comparable](o object[K], key func(int) K) answers[K] {
	a := answers[K]{Stats: o.Stats(), Top: o.Top(0)}
	a.Stats.Bytes = 0 // depends on the machine
	for i := range 40 {
		a.Estimates = append(a.Estimates, o.Estimate(key(i)))
	}
	return a
}

// checkGolden decodes a file into an empty object and requires its answers and
// that its encoding is the file. A file that is not there is written, of what
// build returns, if the flag says so.
func checkGolden[K comparable](t *testing.T, name string, empty object[K], key func(int) K, build func() object[K]) {
	path := filepath.Join("testdata", name)
	if _, err := os.Stat(path + ".hk"); os.IsNotExist(err) && *writeGolden {
		o := build()
		require.NoError(t, os.WriteFile(path+".hk", must(o.MarshalBinary()), 0o644))
		text := must(json.MarshalIndent(answersOf(o, key), "", " "))
		require.NoError(t, os.WriteFile(path+".json", append(text, '\n'), 0o644))
	}
	data, err := os.ReadFile(path + ".hk")
	require.NoError(t, err)
	text, err := os.ReadFile(path + ".json")
	require.NoError(t, err)
	var want answers[K]
	require.NoError(t, json.Unmarshal(text, &want))

	require.NoError(t, empty.UnmarshalBinary(data))
	require.Equal(t, want, answersOf(empty, key))
	require.Equal(t, data, must(empty.MarshalBinary()))
}

// goldenSketch returns a golden file of a Sketch, fed by a program that both
// files and this machine's arithmetic have in common.
func goldenSketch[K comparable](name string, config Config[K], steps int, heavy bool, key func(int) K) golden {
	return golden{name, func(t *testing.T) {
		empty := new(Sketch[K])
		if config.Hash != nil {
			empty = must(NewSketch(config))
		}
		checkGolden(t, name, empty, key, func() object[K] {
			s := must(NewSketch(config))
			feedGolden(s, steps, heavy, key)
			return s
		})
	}}
}

func feedGolden[K comparable](s *Sketch[K], steps int, heavy bool, key func(int) K) {
	r := rand.New(rand.NewPCG(7, 7))
	for range steps {
		n := uint32(1)
		if heavy {
			n = math.MaxUint32 >> r.IntN(32)
		}
		s.AddN(key(skewed(r, 40)), n)
		if r.IntN(30) == 0 {
			s.Fade()
		}
	}
}

// goldenKeeper returns a golden file of a HeavyKeeper.
func goldenKeeper[K comparable](name string, config Config[K], key func(int) K) golden {
	return golden{name, func(t *testing.T) {
		checkGolden(t, name, new(HeavyKeeper[K]), key, func() object[K] {
			h := must(New(config))
			for i, s := range h.stripes.Locked() {
				feedGolden(s, 200*i, false, key)
			}
			return h
		})
	}}
}

// oddKey makes keys that are easily mistaken for one another. The answers are
// text, so all are UTF-8.
func oddKey(i int) string {
	odd := []string{"", "\x00", "a\x00b", "a", "é"}
	if i < len(odd) {
		return odd[i]
	}
	return fmt.Sprint("key ", i)
}

func goldens() []golden {
	number := func(i int) int { return 3 - i }
	return []golden{
		goldenSketch("sketch-new.v1", Config[string]{K: 2, Width: 4}, 0, false, oddKey),
		goldenSketch("sketch-few.v1", Config[string]{K: 40, Rows: 1, Width: 4}, 10, false, oddKey),
		goldenSketch("sketch-string.v1", Config[string]{K: 3, Width: 7, Seed: 1}, 1000, false, oddKey),
		goldenSketch("sketch-int.v1", Config[int]{K: 4, Rows: 3, Width: 7, Alpha: 0.05, Base: 1.2, Seed: math.MaxUint64}, 1000, false, number),
		goldenSketch("sketch-int8.v1", Config[int8]{K: 1, Rows: 2, Width: 5}, 300, false, func(i int) int8 { return int8(3 - i) }),
		goldenSketch("sketch-uint16.v1", Config[uint16]{K: 2, Rows: 2, Width: 5}, 300, false, func(i int) uint16 { return uint16(1000 * i) }),
		goldenSketch("sketch-int32-saturated.v1", Config[int32]{K: 2, Rows: 2, Width: 2}, 300, true, func(i int) int32 { return int32(-i) << 20 }),
		goldenSketch("sketch-uint64-faded.v1", Config[uint64]{K: 2, Rows: 5, Width: 3, Alpha: 0.9}, 400, true, func(i int) uint64 { return uint64(i) << 50 }),
		goldenSketch("sketch-tile.v1", Config[tile]{K: 3, Rows: 1, Width: 9, Seed: 5, Hash: tile.hash}, 300, false, func(i int) tile { return tile{int8(i), 1} }),
		goldenKeeper("keeper-string.v1", Config[string]{K: 3, Rows: 2, Width: 7, Stripes: 3, Seed: 1}, oddKey),
		goldenKeeper("keeper-int64.v1", Config[int64]{K: 3, Rows: 1, Width: 9, Stripes: 2, Alpha: 0.2}, func(i int) int64 { return int64(3 - i) }),
	}
}

func TestGolden(t *testing.T) {
	for _, g := range goldens() {
		t.Run(g.name, g.check)
	}
}

package baseline

import (
	"unsafe"

	"github.com/heavykeeper-go/heavykeeper"
	"github.com/heavykeeper-go/heavykeeper/bench/measure"
)

// Sketch is this module's own [heavykeeper.Sketch], with its default hash.
type Sketch[K comparable] struct {
	*heavykeeper.Sketch[K]
}

// NewSketch returns an empty Sketch with the default number of rows, the widest
// that c.Bytes allow when it is full.
func NewSketch[K comparable](c Config[K]) (Sketch[K], error) {
	entries, column, err := costs(c)
	if err != nil {
		return Sketch[K]{}, err
	}
	width := (c.Bytes - entries) / column
	if width < 1 {
		return Sketch[K]{}, errTooSmall("HeavyKeeper", c)
	}
	return newSketch(c, width)
}

// costs returns the bytes of a full tracked set, and of one cell in each row.
// They are found by trying, with integers, because how the module lays out its
// memory is its own business; its tracked set grows as it fills.
func costs[K comparable](c Config[K]) (entries, column int, err error) {
	probe := Config[uint64]{K: c.K}
	one, err := newSketch(probe, 1)
	if err != nil {
		return 0, 0, err
	}
	two, err := newSketch(probe, 2)
	if err != nil {
		return 0, 0, err
	}
	column = two.Bytes() - one.Bytes()
	for key := range 4 * uint64(c.K) {
		one.Add(key)
	}
	larger := sizeOf[K]() - sizeOf[uint64]()
	return one.Bytes() - column + one.Stats().Tracked*larger, column, nil
}

func newSketch[K comparable](c Config[K], width int) (Sketch[K], error) {
	s, err := heavykeeper.NewSketch(heavykeeper.Config[K]{K: c.K, Width: width, Seed: c.Seed})
	return Sketch[K]{s}, err
}

// Top implements [Counter].
func (s Sketch[K]) Top(n int) []measure.Item[K] {
	top := s.Sketch.Top(n)
	items := make([]measure.Item[K], len(top))
	for i, item := range top {
		items[i] = measure.Item[K]{Key: item.Key, Count: item.Count}
	}
	return items
}

// Bytes implements [Counter]: what the sketch itself reports, less the fixed
// size of the object, which is left out for all algorithms. It includes the text
// of string keys.
func (s Sketch[K]) Bytes() int {
	return s.Stats().Bytes - int(unsafe.Sizeof(*s.Sketch))
}

package baseline

import (
	"sort"
	"unsafe"

	"github.com/heavykeeper-go/heavykeeper"
	"github.com/heavykeeper-go/heavykeeper/bench/measure"
)

// Sketch is this module's own [heavykeeper.Sketch], with its default hash.
type Sketch[K comparable] struct {
	*heavykeeper.Sketch[K]
}

// NewSketch returns an empty Sketch with the default number of rows, the widest
// that c.Bytes allow.
func NewSketch[K comparable](c Config[K]) (Sketch[K], error) {
	// Sizes are found by trying, because how the module lays out its memory is
	// its own business.
	widest := sort.Search(c.Bytes, func(width int) bool {
		s, err := newSketch(c, width+1)
		return err != nil || s.Bytes() > c.Bytes
	})
	if widest == 0 {
		return Sketch[K]{}, errTooSmall("HeavyKeeper", c)
	}
	return newSketch(c, widest)
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
// size of the object, which is left out for all algorithms.
func (s Sketch[K]) Bytes() int {
	return s.Stats().Bytes - int(unsafe.Sizeof(*s.Sketch))
}

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

// NewSketch returns an empty Sketch with four rows, as wide as c.Bytes allow.
func NewSketch[K comparable](c Config[K]) (Sketch[K], error) {
	config := heavykeeper.Config[K]{K: c.K, Rows: sketchRows, Width: 1, Seed: c.Seed}
	const column = 12 * sketchRows // bytes
	smallest, err := heavykeeper.NewSketch(config)
	if err != nil {
		return Sketch[K]{}, err
	}
	config.Width += (c.Bytes - Sketch[K]{smallest}.Bytes()) / column
	if config.Width < 1 || c.Bytes < (Sketch[K]{smallest}).Bytes() {
		return Sketch[K]{}, errTooSmall("HeavyKeeper", c)
	}
	s, err := heavykeeper.NewSketch(config)
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

package baseline

import (
	"math/rand/v2"

	"github.com/heavykeeper-go/heavykeeper/bench/measure"
)

// StableSketch keeps keys inside its cells and so needs no heap: all memory is
// cells. A key grows a cell that holds it, or takes an empty one; otherwise the
// smallest of its cells loses one with a probability that falls with its count
// and with its stability, the number of times its holder has come back. It
// never overestimates.
//
// Source: W. Li and P. Patras, "Stable-Sketch: A Versatile Sketch for Accurate,
// Fast, Web-Scale Data Stream Processing", WWW 2024. A weight is that many
// updates. A key that holds several cells is credited with their sum.
type StableSketch[K comparable] struct {
	cells  []stableCell[K] // row by row
	width  int
	hash   func(K) uint64
	random *rand.Rand
}

type stableCell[K comparable] struct {
	key       K
	count     uint32
	stability uint32
}

// NewStableSketch returns an empty StableSketch.
func NewStableSketch[K comparable](c Config[K]) (*StableSketch[K], error) {
	width := c.Bytes / (sketchRows * sizeOf[stableCell[K]]())
	if width < 1 {
		return nil, errTooSmall("Stable-Sketch", c)
	}
	return &StableSketch[K]{
		cells:  make([]stableCell[K], sketchRows*width),
		width:  width,
		hash:   c.Hash,
		random: rand.New(rand.NewPCG(c.Seed, 0)),
	}, nil
}

// AddN counts n occurrences of key. O(n).
func (s *StableSketch[K]) AddN(key K, n uint32) {
	for range n {
		s.Add(key)
	}
}

// Add counts one occurrence of key.
func (s *StableSketch[K]) Add(key K) {
	h := s.hash(key)
	var least *stableCell[K]
	for row := range sketchRows {
		c := &s.cells[row*s.width+place(h, row, s.width)]
		if c.count == 0 || c.key == key {
			c.key = key
			c.count = add(c.count, 1)
			c.stability = add(c.stability, 1)
			return
		}
		if least == nil || c.count < least.count {
			least = c
		}
	}
	if s.random.Uint64N(uint64(least.count)*uint64(least.stability)+1) > 0 {
		return
	}
	if least.count--; least.count == 0 {
		least.key = key
		least.count = 1
		least.stability -= min(least.stability, 1)
	}
}

// Top implements [Counter].
func (s *StableSketch[K]) Top(n int) []measure.Item[K] {
	counts := map[K]uint64{}
	for i := range s.cells {
		if c := &s.cells[i]; c.count > 0 {
			counts[c.key] += uint64(c.count)
		}
	}
	// In the order of the cells, so that ties do not depend on the map's.
	items := make([]measure.Item[K], 0, len(counts))
	for i := range s.cells {
		key := s.cells[i].key
		if count, ok := counts[key]; ok {
			items = append(items, measure.Item[K]{Key: key, Count: count})
			delete(counts, key)
		}
	}
	return largest(items, n)
}

// Bytes implements [Counter].
func (s *StableSketch[K]) Bytes() int { return len(s.cells) * sizeOf[stableCell[K]]() }

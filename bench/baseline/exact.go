package baseline

import "github.com/heavykeeper-go/heavykeeper/bench/measure"

// Exact counts every key in a map: no error, and memory without bound. It is
// the reference for time and ignores the budget.
type Exact[K comparable] struct {
	counts map[K]uint64
}

// NewExact returns an empty Exact.
func NewExact[K comparable](Config[K]) (*Exact[K], error) {
	return &Exact[K]{map[K]uint64{}}, nil
}

// Add counts one occurrence of key.
func (x *Exact[K]) Add(key K) { x.counts[key]++ }

// AddN counts n occurrences of key.
func (x *Exact[K]) AddN(key K, n uint32) { x.counts[key] += uint64(n) }

// Top implements [Counter].
func (x *Exact[K]) Top(n int) []measure.Item[K] {
	items := make([]measure.Item[K], 0, len(x.counts))
	for key, count := range x.counts {
		items = append(items, measure.Item[K]{Key: key, Count: count})
	}
	return largest(items, n)
}

// Bytes implements [Counter]. A map does not tell its size: this is that of its
// slots and their control bytes at 5/8 full, the middle between the 7/8 at
// which its tables split and what they are then, but never less than one group
// of eight.
func (x *Exact[K]) Bytes() int {
	slot := sizeOf[struct {
		key   K
		count uint64
	}]() + 1
	return max(len(x.counts)*8/5, 8) * slot
}

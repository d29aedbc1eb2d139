package baseline

import (
	"slices"

	"github.com/heavykeeper-go/heavykeeper/bench/measure"
)

// MisraGries counts as many keys as it has counters for; any other key takes
// one off all of them and is dropped. It never overestimates, and underestimates
// by at most the stream's weight divided by one more than the counters.
//
// Source: J. Misra and D. Gries, "Finding Repeated Elements", Science of Computer
// Programming 1982. Weights follow R. Berinde, P. Indyk, G. Cormode and M.
// Strauss, "Space-optimal Heavy Hitters with Strong Error Bounds", PODS 2009.
type MisraGries[K comparable] struct {
	index  index[K]
	counts []uint32 // by slot; 0 is free
	used   int
	cursor int // no slot before it is free
}

// NewMisraGries returns an empty MisraGries.
func NewMisraGries[K comparable](c Config[K]) (*MisraGries[K], error) {
	n := c.Bytes / (indexBytes[K]() + 4)
	if n < 1 {
		return nil, errTooSmall("Misra-Gries", c)
	}
	return &MisraGries[K]{index: newIndex(n, c.Hash), counts: make([]uint32, n)}, nil
}

// Add counts one occurrence of key. O(1) amortised: taking one off all counters
// takes as much weight away as there are counters.
func (m *MisraGries[K]) Add(key K) { m.AddN(key, 1) }

// AddN counts n occurrences of key.
func (m *MisraGries[K]) AddN(key K, n uint32) {
	h := m.index.hash(key)
	if slot := m.index.find(key, h); slot >= 0 {
		m.counts[slot] = add(m.counts[slot], n)
		return
	}
	if m.used == len(m.counts) {
		off := min(n, slices.Min(m.counts))
		m.subtract(off)
		n -= off
	}
	if n == 0 || m.used == len(m.counts) {
		return
	}
	for m.counts[m.cursor] > 0 {
		m.cursor++
	}
	m.index.put(m.cursor, key, h)
	m.counts[m.cursor] = n
	m.used++
}

// subtract takes n, which is at most the smallest, off all counters.
func (m *MisraGries[K]) subtract(n uint32) {
	m.cursor = 0
	for slot := range m.counts {
		if m.counts[slot] -= n; m.counts[slot] == 0 {
			m.index.drop(slot)
			m.used--
		}
	}
}

// Top implements [Counter].
func (m *MisraGries[K]) Top(n int) []measure.Item[K] {
	items := make([]measure.Item[K], 0, m.used)
	for slot, count := range m.counts {
		if count > 0 {
			items = append(items, measure.Item[K]{Key: m.index.keys[slot], Count: uint64(count)})
		}
	}
	return largest(items, n)
}

// Bytes implements [Counter].
func (m *MisraGries[K]) Bytes() int { return len(m.counts) * (indexBytes[K]() + 4) }

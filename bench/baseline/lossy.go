package baseline

import (
	"math"

	"github.com/heavykeeper-go/heavykeeper/bench/measure"
)

// LossyCounting counts keys from when they come and, at the end of each bucket
// of the stream, drops those whose largest possible count is at most the number
// of buckets so far. It never overestimates, and underestimates a key by at
// most that number.
//
// Source: G. S. Manku and R. Motwani, "Approximate Frequency Counts over Data
// Streams", VLDB 2002. The deviation: there, a bucket holds a fixed number of
// occurrences, which bounds the error and not the memory. Here a bucket ends
// when the table is full, which bounds the memory and not the error.
type LossyCounting[K comparable] struct {
	index   index[K]
	entries []lossyEntry // by slot
	used    int
	cursor  int // no slot before it is free
	bucket  uint32
}

type lossyEntry struct {
	count uint32 // since the key came; 0 is a free slot
	delta uint32 // what it can have had before
}

// NewLossyCounting returns an empty LossyCounting.
func NewLossyCounting[K comparable](c Config[K]) (*LossyCounting[K], error) {
	n := c.Bytes / (indexBytes[K]() + sizeOf[lossyEntry]())
	if n < 1 {
		return nil, errTooSmall("Lossy Counting", c)
	}
	return &LossyCounting[K]{index: newIndex(n, c.Hash), entries: make([]lossyEntry, n)}, nil
}

// Add counts one occurrence of key. O(1) amortised.
func (l *LossyCounting[K]) Add(key K) { l.AddN(key, 1) }

// AddN counts n occurrences of key.
func (l *LossyCounting[K]) AddN(key K, n uint32) {
	h := l.index.hash(key)
	if slot := l.index.find(key, h); slot >= 0 {
		l.entries[slot].count = add(l.entries[slot].count, n)
		return
	}
	// Freeing an eighth at a time keeps the cost of a sweep to a few steps for
	// each key that comes in.
	if l.used == len(l.entries) {
		for l.used > len(l.entries)*7/8 {
			l.sweep()
		}
	}
	for l.entries[l.cursor].count > 0 {
		l.cursor++
	}
	l.index.put(l.cursor, key, h)
	l.entries[l.cursor] = lossyEntry{n, l.bucket}
	l.used++
}

// sweep ends as many buckets as it takes to drop something.
func (l *LossyCounting[K]) sweep() {
	least := uint32(math.MaxUint32)
	for _, e := range l.entries {
		if e.count > 0 {
			least = min(least, add(e.count, e.delta))
		}
	}
	l.bucket = max(add(l.bucket, 1), least)
	for slot, e := range l.entries {
		if e.count > 0 && add(e.count, e.delta) <= l.bucket {
			l.index.drop(slot)
			l.entries[slot] = lossyEntry{}
			l.used--
		}
	}
	l.cursor = 0
}

// bounds returns the least and the largest weight a key can have.
func (l *LossyCounting[K]) bounds(key K) (lower, upper uint64) {
	if slot := l.index.find(key, l.index.hash(key)); slot >= 0 {
		e := l.entries[slot]
		return uint64(e.count), uint64(e.count) + uint64(e.delta)
	}
	return 0, uint64(l.bucket)
}

// Top implements [Counter].
func (l *LossyCounting[K]) Top(n int) []measure.Item[K] {
	items := make([]measure.Item[K], 0, l.used)
	for slot, e := range l.entries {
		if e.count > 0 {
			items = append(items, measure.Item[K]{Key: l.index.keys[slot], Count: uint64(e.count)})
		}
	}
	return largest(items, n)
}

// Bytes implements [Counter].
func (l *LossyCounting[K]) Bytes() int {
	return len(l.entries) * (indexBytes[K]() + sizeOf[lossyEntry]())
}

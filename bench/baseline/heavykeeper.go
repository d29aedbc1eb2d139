package baseline

import (
	"math"
	"math/rand/v2"

	"github.com/heavykeeper-go/heavykeeper/bench/measure"
)

// The paper's parameters.
const (
	paperRows = 2
	paperBase = 1.08
)

// HeavyKeeper is the algorithm as published, without what this module makes of
// it: cells of a 16-bit fingerprint and a count, a min-heap of the K largest,
// and no bounds. Fingerprint collisions apart it never overestimates.
//
// Source: J. Gong, T. Yang, H. Zhang et al., "HeavyKeeper: An Accurate Algorithm
// for Finding Top-k Elephant Flows", USENIX ATC 2018, with both its
// optimizations: a key enters a full heap only when its count is one above the
// smallest there, and a cell whose count is beyond that does not grow for a key
// that is not listed, since then the fingerprint must be another's.
//
// The parallel version updates a cell in each row; the minimum version, of the
// extended paper (T. Yang, H. Zhang, J. Li et al., IEEE/ACM Transactions on
// Networking 2019), updates one cell: the key's own, else an empty one, else
// the smallest, which decays. A weight is that many updates.
type HeavyKeeper[K comparable] struct {
	fingerprints []uint16 // row by row
	counts       []uint32
	width        int
	minimum      bool
	decay        [256]float64 // b^-c; beyond its end, 3e-9, taken as never
	random       *rand.Rand
	heap         heap[K]
}

// NewParallel returns an empty HeavyKeeper of the parallel version.
func NewParallel[K comparable](c Config[K]) (*HeavyKeeper[K], error) {
	const cell = 2 + 4
	width := (c.Bytes - c.K*heapBytes[K]()) / (cell * paperRows)
	if width < 1 {
		return nil, errTooSmall("the textbook HeavyKeeper", c)
	}
	k := &HeavyKeeper[K]{
		fingerprints: make([]uint16, paperRows*width),
		counts:       make([]uint32, paperRows*width),
		width:        width,
		random:       rand.New(rand.NewPCG(c.Seed, 0)),
		heap:         newHeap(c.K, c.Hash),
	}
	for i := range k.decay {
		k.decay[i] = math.Pow(paperBase, -float64(i))
	}
	return k, nil
}

// NewMinimum returns an empty HeavyKeeper of the minimum version.
func NewMinimum[K comparable](c Config[K]) (*HeavyKeeper[K], error) {
	k, err := NewParallel(c)
	if err == nil {
		k.minimum = true
	}
	return k, err
}

// AddN counts n occurrences of key. O(n).
func (k *HeavyKeeper[K]) AddN(key K, n uint32) {
	for range n {
		k.Add(key)
	}
}

// Add counts one occurrence of key.
func (k *HeavyKeeper[K]) Add(key K) {
	h := k.heap.index.hash(key)
	slot := k.heap.index.find(key, h)
	fingerprint := uint16(mix(h + 1))
	var count uint32
	if k.minimum {
		count = k.updateMinimum(h, fingerprint, slot >= 0)
	} else {
		count = k.updateParallel(h, fingerprint, slot >= 0)
	}
	switch {
	case slot >= 0:
		if count > k.heap.counts[slot] {
			k.heap.set(slot, count)
		}
	case count > 0 && (!k.heap.full() || count == k.heap.least()+1):
		k.heap.admit(key, h, count)
	}
}

// updateParallel returns the largest count of the key's cells after the update.
func (k *HeavyKeeper[K]) updateParallel(h uint64, fingerprint uint16, listed bool) (largest uint32) {
	for row := range paperRows {
		i := row*k.width + place(h, row, k.width)
		switch {
		case k.counts[i] == 0:
			k.take(i, fingerprint)
		case k.fingerprints[i] == fingerprint:
			k.grow(i, listed)
		case !k.decayed(i, fingerprint):
			continue
		}
		largest = max(largest, k.counts[i])
	}
	return largest
}

// updateMinimum returns the count of the key's cell after the update, or 0 if
// it has none.
func (k *HeavyKeeper[K]) updateMinimum(h uint64, fingerprint uint16, listed bool) uint32 {
	least := -1
	for row := range paperRows {
		i := row*k.width + place(h, row, k.width)
		if k.counts[i] > 0 && k.fingerprints[i] == fingerprint {
			k.grow(i, listed)
			return k.counts[i]
		}
		if least < 0 || k.counts[i] < k.counts[least] {
			least = i
		}
	}
	if k.counts[least] == 0 {
		k.take(least, fingerprint)
	} else if !k.decayed(least, fingerprint) {
		return 0
	}
	return k.counts[least]
}

func (k *HeavyKeeper[K]) take(i int, fingerprint uint16) {
	k.fingerprints[i], k.counts[i] = fingerprint, 1
}

// grow adds one to a cell of the key's fingerprint, unless that cannot be the
// key's own.
func (k *HeavyKeeper[K]) grow(i int, listed bool) {
	if listed || k.counts[i] <= k.heap.least() || !k.heap.full() {
		k.counts[i] = add(k.counts[i], 1)
	}
}

// decayed takes one off another key's cell by chance, and reports whether the
// cell has become the key's.
func (k *HeavyKeeper[K]) decayed(i int, fingerprint uint16) bool {
	c := k.counts[i]
	if c >= uint32(len(k.decay)) || k.random.Float64() >= k.decay[c] {
		return false
	}
	if k.counts[i]--; k.counts[i] > 0 {
		return false
	}
	k.take(i, fingerprint)
	return true
}

// Top implements [Counter].
func (k *HeavyKeeper[K]) Top(n int) []measure.Item[K] { return k.heap.top(n) }

// Bytes implements [Counter].
func (k *HeavyKeeper[K]) Bytes() int { return 6*len(k.counts) + k.heap.bytes() }

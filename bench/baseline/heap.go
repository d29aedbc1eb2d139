package baseline

import "github.com/heavykeeper-go/heavykeeper/bench/measure"

// heap holds the keys of the largest counts offered to it: the min-heap that
// turns a sketch, which knows counts but no keys, into a top-K algorithm.
//
// Invariants: heap holds each slot once, at[heap[i]] == i, and counts are in
// heap order.
type heap[K comparable] struct {
	index  index[K]
	counts []uint32 // by slot
	heap   []uint32 // slots, by heap position
	at     []uint32 // heap positions, by slot
}

func newHeap[K comparable](n int, hash func(K) uint64) heap[K] {
	return heap[K]{newIndex(n, hash), make([]uint32, n), make([]uint32, 0, n), make([]uint32, n)}
}

// heapBytes is the cost of an entry.
func heapBytes[K comparable]() int { return indexBytes[K]() + 12 }

func (p *heap[K]) bytes() int { return len(p.counts) * heapBytes[K]() }

func (p *heap[K]) full() bool { return len(p.heap) == cap(p.heap) }

// least returns the smallest count, 0 while there is room.
func (p *heap[K]) least() uint32 {
	if !p.full() {
		return 0
	}
	return p.counts[p.heap[0]]
}

// offer raises the count of a key that is in the heap, and lets in another if
// there is room or its count is above the smallest, whose key then leaves.
func (p *heap[K]) offer(key K, h uint64, count uint32) {
	if slot := p.index.find(key, h); slot >= 0 {
		p.set(slot, count)
	} else if !p.full() || count > p.least() {
		p.admit(key, h, count)
	}
}

// admit lets in a key that is not in the heap, in place of the smallest if
// there is no room.
func (p *heap[K]) admit(key K, h uint64, count uint32) {
	if !p.full() {
		slot := len(p.heap)
		p.index.put(slot, key, h)
		p.counts[slot] = count
		p.at[slot] = uint32(slot)
		p.heap = append(p.heap, uint32(slot))
		p.up(slot)
		return
	}
	slot := int(p.heap[0])
	p.index.drop(slot)
	p.index.put(slot, key, h)
	p.counts[slot] = count
	p.down(0)
}

// set raises the count of a slot.
func (p *heap[K]) set(slot int, count uint32) {
	p.counts[slot] = count
	p.down(int(p.at[slot]))
}

func (p *heap[K]) less(i, j int) bool { return p.counts[p.heap[i]] < p.counts[p.heap[j]] }

func (p *heap[K]) up(i int) {
	for i > 0 && p.less(i, (i-1)/2) {
		p.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (p *heap[K]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(p.heap) {
			return
		}
		if child+1 < len(p.heap) && p.less(child+1, child) {
			child++
		}
		if !p.less(child, i) {
			return
		}
		p.swap(i, child)
		i = child
	}
}

func (p *heap[K]) swap(i, j int) {
	p.heap[i], p.heap[j] = p.heap[j], p.heap[i]
	p.at[p.heap[i]], p.at[p.heap[j]] = uint32(i), uint32(j)
}

func (p *heap[K]) top(n int) []measure.Item[K] {
	items := make([]measure.Item[K], 0, len(p.heap))
	for _, slot := range p.heap {
		items = append(items, measure.Item[K]{Key: p.index.keys[slot], Count: uint64(p.counts[slot])})
	}
	return largest(items, n)
}

package baseline

import (
	"math"

	"github.com/heavykeeper-go/heavykeeper/bench/measure"
)

// sketchRows is the number of rows of the sketches that leave it open.
const sketchRows = 4

// CountMin is a Count-Min sketch with a heap of the K keys of the largest
// estimates. It never underestimates, and with probability 1 - e^-rows is at
// most e / width of the stream above the truth.
//
// Source: G. Cormode and S. Muthukrishnan, "An Improved Data Stream Summary: The
// Count-Min Sketch and its Applications", Journal of Algorithms 2005. With
// conservative update a counter grows only as far as the new estimate needs
// (C. Estan and G. Varghese, "New Directions in Traffic Measurement and
// Accounting", SIGCOMM 2002).
type CountMin[K comparable] struct {
	cells        []uint32 // row by row
	width        int
	conservative bool
	heap         heap[K]
}

// NewCountMin returns an empty CountMin.
func NewCountMin[K comparable](c Config[K]) (*CountMin[K], error) {
	width := (c.Bytes - c.K*heapBytes[K]()) / (4 * sketchRows)
	if width < 1 {
		return nil, errTooSmall("Count-Min", c)
	}
	return &CountMin[K]{
		cells: make([]uint32, sketchRows*width),
		width: width,
		heap:  newHeap(c.K, c.Hash),
	}, nil
}

// NewConservative returns an empty CountMin with conservative update.
func NewConservative[K comparable](c Config[K]) (*CountMin[K], error) {
	m, err := NewCountMin(c)
	if err == nil {
		m.conservative = true
	}
	return m, err
}

// Add counts one occurrence of key.
func (m *CountMin[K]) Add(key K) { m.AddN(key, 1) }

// AddN counts n occurrences of key.
func (m *CountMin[K]) AddN(key K, n uint32) {
	h := m.heap.index.hash(key)
	var cells [sketchRows]*uint32
	least := uint32(math.MaxUint32)
	for row := range cells {
		cells[row] = &m.cells[row*m.width+place(h, row, m.width)]
		least = min(least, *cells[row])
	}
	count := add(least, n)
	for _, cell := range cells {
		if m.conservative {
			*cell = max(*cell, count)
		} else {
			*cell = add(*cell, n)
		}
	}
	m.heap.offer(key, h, count)
}

// Estimate returns the estimate of any key.
func (m *CountMin[K]) Estimate(key K) uint64 {
	h := m.heap.index.hash(key)
	least := uint32(math.MaxUint32)
	for row := range sketchRows {
		least = min(least, m.cells[row*m.width+place(h, row, m.width)])
	}
	return uint64(least)
}

// Top implements [Counter].
func (m *CountMin[K]) Top(n int) []measure.Item[K] { return m.heap.top(n) }

// Bytes implements [Counter].
func (m *CountMin[K]) Bytes() int { return 4*len(m.cells) + m.heap.bytes() }

package hotspot

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// tally counts updates by what was said of them. It has cells for many
// processors, each on lines of its own, so that they need not wait for one
// another: all updates of a hot key add to the same count.
type tally struct {
	cells []tallyCell
	shift uint8
}

type tallyCell struct {
	counts [4]atomic.Uint64 // by verdict
	_      [128 - 4*8]byte
}

const maxTallyBits = 6

func newTally() tally {
	bits := 1
	for 1<<bits < 2*runtime.GOMAXPROCS(0) && bits < maxTallyBits {
		bits++
	}
	return tally{cells: make([]tallyCell, 1<<bits), shift: uint8(64 - bits)}
}

// add counts n updates. A goroutine adds to a cell that it finds by where its
// stack is, which costs nothing and is seldom that of another.
func (t *tally) add(v verdict, n uint32) {
	var here byte
	h := uint64(uintptr(unsafe.Pointer(&here))>>11) * 0x9e3779b97f4a7c15
	t.cells[h>>(t.shift&63)].counts[v&3].Add(uint64(n))
}

// sum returns how many updates were counted for v.
func (t *tally) sum(v verdict) uint64 {
	total := uint64(0)
	for i := range t.cells {
		total += t.cells[i].counts[v&3].Load()
	}
	return total
}

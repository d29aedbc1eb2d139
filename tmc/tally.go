package tmc

import (
	"math/rand/v2"
	"sync/atomic"
)

// tally is a counter that many processors add to. Each of its parts has cache
// lines of its own.
type tally struct {
	parts [16]struct {
		n atomic.Uint64
		_ [120]byte
	}
}

func (t *tally) add(n uint64) { t.parts[rand.Uint32()%uint32(len(t.parts))].n.Add(n) }

func (t *tally) load() uint64 {
	var sum uint64
	for i := range t.parts {
		sum += t.parts[i].n.Load()
	}
	return sum
}

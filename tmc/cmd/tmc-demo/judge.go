package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// judge knows when each key got each price, and so how stale a read was. There
// is one writer at a time.
type judge struct {
	bound time.Duration

	mu   sync.RWMutex
	keys map[string]*prices // those that have changed; others have price 0

	stale   atomic.Uint64 // reads of a price that had been replaced
	beyond  atomic.Uint64 // longer ago than the bound
	own     atomic.Uint64 // by the node that read
	longest atomic.Int64  // ago
}

// prices are the versions of a key, from 1 on.
type prices struct {
	mu     sync.Mutex
	latest atomic.Int64
	done   []time.Time // when the write of a version had returned
	node   []*node     // that wrote it
}

func newJudge(bound time.Duration) *judge {
	return &judge{bound: bound, keys: make(map[string]*prices)}
}

// next returns the next version of key, whose write begins.
func (j *judge) next(key string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := j.keys[key]
	if p == nil {
		p = &prices{}
		j.keys[key] = p
	}
	return len(p.done) + 1
}

// written hears that n's write of the next version of key has returned.
func (j *judge) written(key string, n *node) {
	j.mu.RLock()
	p := j.keys[key]
	j.mu.RUnlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, time.Now())
	p.node = append(p.node, n)
	p.latest.Store(int64(len(p.done)))
}

// read hears that n began, at start, a read of key that returned version.
func (j *judge) read(key string, n *node, start time.Time, version int) {
	j.mu.RLock()
	p := j.keys[key]
	j.mu.RUnlock()
	if p == nil || p.latest.Load() <= int64(version) {
		return
	}
	p.mu.Lock()
	replaced := p.done[version]
	own := false
	for i := version; i < len(p.done); i++ {
		own = own || p.node[i] == n && start.After(p.done[i])
	}
	p.mu.Unlock()
	ago := start.Sub(replaced)
	if ago <= 0 {
		return // the write returned while the read was under way
	}
	j.stale.Add(1)
	if own {
		j.own.Add(1)
	}
	if ago > j.bound {
		j.beyond.Add(1)
	}
	for longest := j.longest.Load(); int64(ago) > longest; longest = j.longest.Load() {
		if j.longest.CompareAndSwap(longest, int64(ago)) {
			break
		}
	}
}

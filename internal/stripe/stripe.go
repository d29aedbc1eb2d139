// Package stripe spreads updates over independently locked parts, one for each
// processor, whichever keys they are for.
package stripe

import (
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
)

// Set is a set of parts that hold a T each. An update takes the part of the
// processor it runs on: what a processor puts into a sync.Pool it gets back,
// and no other processor touches that part's lock or memory meanwhile.
//
// Striping by key, the usual way, makes every processor that meets the hottest
// key wait for the same lock.
//
// The pool holds parts, and the set holds all of them, so nothing is lost when
// the collector empties the pool. A part may be in it more than once, and two
// processors may then have the same: the one that finds it locked moves on.
type Set[T any] struct {
	parts []Part[T]
	pool  sync.Pool     // of *Part[T]
	next  atomic.Uint32 // the part for a processor that has none
}

// Part is a T with its lock. It starts and ends with memory that nothing else
// shares a cache line with, or the pair of lines that processors fetch.
type Part[T any] struct {
	_     [128]byte
	mu    sync.Mutex
	index int
	Value T // guarded by the lock
	_     [128]byte
}

// Default returns the smallest power of two that is at least GOMAXPROCS, or the
// largest up to max if that is less; max must be a power of two.
func Default(max int) int {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < max {
		n *= 2
	}
	return n
}

// New returns a set of n parts, n > 0, with the values that initialize sets.
func New[T any](n int, initialize func(*T)) *Set[T] {
	s := &Set[T]{parts: make([]Part[T], n)}
	for i := range s.parts {
		s.parts[i].index = i
		initialize(&s.parts[i].Value)
	}
	s.pool.New = func() any {
		i := s.next.Add(1) - 1
		return &s.parts[i%uint32(len(s.parts))]
	}
	return s
}

// Len returns the number of parts.
func (s *Set[T]) Len() int { return len(s.parts) }

// Lock locks a part that no other processor is likely to use and returns it.
// The caller must hand it to Unlock.
func (s *Set[T]) Lock() *Part[T] {
	if len(s.parts) == 1 {
		p := &s.parts[0]
		p.mu.Lock()
		return p
	}
	p := s.pool.Get().(*Part[T])
	if !p.mu.TryLock() {
		p = s.move(p)
	}
	return p
}

// move locks another part than p, which is taken, and returns it.
func (s *Set[T]) move(p *Part[T]) *Part[T] {
	i := p.index + 1
	if i == len(s.parts) {
		i = 0
	}
	p = &s.parts[i]
	p.mu.Lock()
	return p
}

// Unlock unlocks a part that Lock returned.
func (s *Set[T]) Unlock(p *Part[T]) {
	p.mu.Unlock()
	if len(s.parts) > 1 {
		s.pool.Put(p)
	}
}

// Locked iterates over all values, in a fixed order. Each is locked while it is
// yielded, and no other.
func (s *Set[T]) Locked() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for i := range s.parts {
			if !s.With(i, func(v *T) bool { return yield(i, v) }) {
				return
			}
		}
	}
}

// With calls f with value i locked and returns what it returns.
func (s *Set[T]) With(i int, f func(*T) bool) bool {
	p := &s.parts[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	return f(&p.Value)
}

package stripe

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// held returns the indices of the parts that are locked.
func held[T any](s *Set[T]) []int {
	var list []int
	for i := range s.parts {
		if s.parts[i].mu.TryLock() {
			s.parts[i].mu.Unlock()
		} else {
			list = append(list, i)
		}
	}
	return list
}

func TestDefault(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, test := range []struct{ procs, max, want int }{
		{1, 8, 1}, {2, 8, 2}, {3, 8, 4}, {5, 8, 8}, {8, 8, 8}, {9, 8, 8}, {9, 16, 16}, {3, 1, 1},
	} {
		runtime.GOMAXPROCS(test.procs)
		require.Equal(t, test.want, Default(test.max), "%d processors, at most %d", test.procs, test.max)
	}
}

func TestNew(t *testing.T) {
	for _, n := range []int{1, 2, 3, 16, 100} {
		calls := 0
		s := New(n, func(v *int) { *v = calls; calls++ })
		require.Equal(t, n, calls)
		require.Equal(t, n, s.Len())
		for i, v := range s.Locked() {
			require.Equal(t, i, *v)
		}
	}
}

func TestLockLocksOnePart(t *testing.T) {
	for _, n := range []int{1, 2, 3, 16} {
		s := New(n, func(*int) {})
		for i := range 1000 {
			p := s.Lock()
			require.Same(t, &s.parts[p.index], p)
			require.Equal(t, []int{p.index}, held(s))
			p.Value++
			s.Unlock(p)
			require.Empty(t, held(s))
			if i%100 == 0 {
				runtime.GC() // empties the pool
			}
		}
		sum := 0
		for _, v := range s.Locked() {
			sum += *v
		}
		require.Equal(t, 1000, sum, "n = %d", n)
	}
}

// A part that is taken is not waited for, though the pool gives it. Were it, this
// would hang.
func TestLockMovesOn(t *testing.T) {
	for _, n := range []int{2, 3, 7} {
		for taken := range n {
			s := New(n, func(*int) {})
			p := &s.parts[taken]
			p.mu.Lock()
			for range 200 {
				s.pool.Put(p) // what a processor has may be locked by a reader
				got := s.Lock()
				require.NotEqual(t, taken, got.index)
				require.Len(t, held(s), 2)
				s.Unlock(got)
			}
			p.mu.Unlock()
			next := s.move(p)
			require.Equal(t, (taken+1)%n, next.index)
			s.Unlock(next)
		}
	}
}

// As many goroutines as there are parts hold one each; none has another's.
func TestPartsAreHeldOnce(t *testing.T) {
	s := New(4, func(*atomic.Int32) {})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := range 2000 {
				p := s.Lock()
				holders := p.Value.Add(1)
				p.Value.Add(-1)
				s.Unlock(p)
				if holders != 1 {
					t.Errorf("%d have one part, want 1", holders)
					return
				}
				if i%500 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}

// Goroutines far outnumber processors, readers run, the collector empties the
// pool: every addition is in some part.
func TestNothingIsLost(t *testing.T) {
	const workers, steps = 100, 1000
	for _, n := range []int{1, 2, 5, 32} {
		t.Run(fmt.Sprint("n=", n), func(t *testing.T) {
			s := New(n, func(*int) {})
			sum := func() int {
				sum := 0
				for _, v := range s.Locked() {
					sum += *v
				}
				return sum
			}
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for i := range steps {
						p := s.Lock()
						p.Value++
						s.Unlock(p)
						if i == 10*w%steps {
							runtime.GC()
							if got := sum(); got > workers*steps {
								t.Errorf("sum is %d, want at most %d", got, workers*steps)
							}
						}
					}
				})
			}
			wg.Wait()
			require.Equal(t, workers*steps, sum())
		})
	}
}

func TestLockedHoldsOneAtATime(t *testing.T) {
	s := New(5, func(*int) {})
	var seen []int
	for i := range s.Locked() {
		require.Equal(t, []int{i}, held(s))
		seen = append(seen, i)
	}
	require.Equal(t, []int{0, 1, 2, 3, 4}, seen)
	require.Empty(t, held(s))

	for i := range s.Locked() {
		if i == 2 {
			break
		}
	}
	require.Empty(t, held(s), "a break leaves a lock")

	for _, want := range []bool{true, false} {
		got := s.With(3, func(v *int) bool {
			require.Equal(t, []int{3}, held(s))
			return want
		})
		require.Equal(t, want, got)
	}
	require.Panics(t, func() { s.With(1, func(*int) bool { panic("in f") }) })
	require.Empty(t, held(s), "a panic leaves a lock")
}

// Parts, and what they hold, are far enough from each other for the pair of
// cache lines that a processor fetches.
func TestPartsShareNoCacheLine(t *testing.T) {
	s := New(3, func(*int) {})
	for i := 1; i < s.Len(); i++ {
		end := uintptr(unsafe.Pointer(&s.parts[i-1].Value)) + unsafe.Sizeof(s.parts[0].Value)
		require.GreaterOrEqual(t, uintptr(unsafe.Pointer(&s.parts[i].mu))-end, uintptr(128))
	}
}

func TestOnePartNeedsNoPool(t *testing.T) {
	s := New(1, func(*int) {})
	s.pool.New = func() any { panic("the pool is asked") }
	for range 10 {
		p := s.Lock()
		require.Same(t, &s.parts[0], p)
		s.Unlock(p)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Unlock(s.Lock()) }))
}

package heavykeeper

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper/bench/stream"
)

var (
	_ Counter[int]   = (*Sketch[int])(nil)
	_ Estimator[int] = (*Sketch[int])(nil)
	_ Ranker[int]    = (*Sketch[int])(nil)
	_ Fader          = (*Sketch[int])(nil)
	_ Counter[int]   = (*HeavyKeeper[int])(nil)
	_ Estimator[int] = (*HeavyKeeper[int])(nil)
	_ Ranker[int]    = (*HeavyKeeper[int])(nil)
	_ Fader          = (*HeavyKeeper[int])(nil)
)

// hammer runs f in n goroutines, each with its own random numbers, and waits.
func hammer(n int, f func(worker int, r *rand.Rand)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i, rand.New(rand.NewPCG(uint64(i), 1))) })
	}
	wg.Wait()
}

// skewed returns a key below n, small ones far more often.
func skewed(r *rand.Rand, n int) int {
	x := r.Float64()
	return int(float64(n) * x * x * x * x)
}

func TestConcurrentUpdatesAreExactInSum(t *testing.T) {
	for _, stripes := range []int{1, 2, 3, 16} {
		t.Run(fmt.Sprint("stripes=", stripes), func(t *testing.T) {
			h, err := New(Config[string]{K: 20, Width: 50, Stripes: stripes})
			require.NoError(t, err)
			const workers, steps, keys = 24, 3000, 400
			names := make([]string, keys)
			truth := make([]atomic.Uint64, keys)
			for i := range names {
				names[i] = fmt.Sprint("key ", i)
			}
			stop := make(chan struct{})
			var readers sync.WaitGroup
			readers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					seen := map[string]bool{}
					for item := range h.All() {
						assert.False(t, seen[item.Key], "twice in the list")
						seen[item.Key] = true
						assert.LessOrEqual(t, item.Lower, item.Upper)
					}
					h.Estimate(names[0])
					h.Contains(names[1])
					h.Stats()
				}
			})
			hammer(workers, func(worker int, r *rand.Rand) {
				buffer := make([]byte, 0, 16)
				for i := range steps {
					key := skewed(r, keys)
					switch {
					case i%500 == 0:
						runtime.GC() // empties the pool
						fallthrough
					case i%4 == 0:
						n := r.Uint32N(100)
						truth[key].Add(uint64(n))
						h.AddN(names[key], n)
					case i%4 == 1:
						truth[key].Add(1)
						buffer = append(buffer[:0], names[key]...)
						AddBytes(h, buffer, 1)
						clear(buffer)
					case i%4 == 2:
						batch := make([]string, r.IntN(200))
						for j := range batch {
							key := skewed(r, keys)
							batch[j] = names[key]
							truth[key].Add(1)
						}
						h.AddBatch(batch)
					default:
						truth[key].Add(1)
						h.Add(names[key])
					}
				}
			})
			close(stop)
			readers.Wait()
			total := uint64(0)
			for i, name := range names {
				want := truth[i].Load()
				total += want
				e := h.Estimate(name)
				require.LessOrEqual(t, e.Lower, want, name)
				require.GreaterOrEqual(t, e.Upper, want, name)
			}
			require.Equal(t, total, h.Stats().Total)
			for _, item := range h.Top(0) {
				require.Equal(t, h.Estimate(item.Key), item.Estimate)
			}
		})
	}
}

// Fade, Reset and Merge run against updates: nothing may be counted twice, and
// after a Reset nothing of before may be left.
func TestConcurrentFadeResetMerge(t *testing.T) {
	config := Config[int]{K: 10, Width: 40, Stripes: 4, Alpha: 0.05}
	h, err := New(config)
	require.NoError(t, err)
	other, err := New(config)
	require.NoError(t, err)
	for i := range 1000 {
		other.Add(i % 50)
	}
	empty := mustNew(t, config)
	const workers, steps = 8, 4000
	var merges atomic.Uint64
	hammer(workers, func(worker int, r *rand.Rand) {
		for i := range steps {
			h.Add(skewed(r, 200))
			switch {
			case i%1000 == 999 && worker%2 == 0:
				assert.NoError(t, h.Merge(other))
				merges.Add(1)
			case i%1000 == 999:
				assert.NoError(t, other.Merge(empty))
			case i%100 == 99:
				h.Fade()
			}
		}
	})
	require.Equal(t, uint64(workers*steps)+1000*merges.Load(), h.Stats().Total)
	hammer(workers, func(worker int, r *rand.Rand) {
		for i := range steps {
			h.Add(i)
			if i%500 == 0 {
				h.Reset()
			}
		}
	})
	require.LessOrEqual(t, h.Stats().Total, uint64(workers*steps))
	h.Reset()
	require.Equal(t, mustNew(t, config).Stats(), h.Stats())
	require.Empty(t, h.Top(0))
}

func mustNew(t require.TestingT, config Config[int]) *HeavyKeeper[int] {
	h, err := New(config)
	require.NoError(t, err)
	return h
}

func TestOneStripeEqualsSketch(t *testing.T) {
	config := Config[int]{K: 10, Width: 20, Stripes: 1, Seed: 9, Alpha: 0.1}
	h, s := mustNew(t, config), must(NewSketch(config))
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 20000 {
		key := skewed(r, 500)
		h.Add(key)
		s.Add(key)
		if i%1000 == 0 {
			h.Fade()
			s.Fade()
		}
	}
	require.Equal(t, s.Top(0), h.Top(0))
	for key := range 500 {
		require.Equal(t, s.Estimate(key), h.Estimate(key))
	}
	want, got := s.Stats(), h.Stats()
	want.Bytes, got.Bytes = 0, 0
	require.Equal(t, want, got)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The stripes' answers add up to those of the whole stream, key by key, and
// Top leaves out none that Estimate would rank higher.
func TestTopIsTheTopOfEstimate(t *testing.T) {
	for _, alpha := range []float64{0, 0.02} {
		h := mustNew(t, Config[int]{K: 25, Width: 60, Stripes: 5, Alpha: alpha})
		r := rand.New(rand.NewPCG(2, 2))
		for i := range 50000 {
			// Each stripe by turns, as if a processor each.
			h.stripes.With(i%5, func(s *Sketch[int]) bool {
				s.Add(skewed(r, 2000))
				return true
			})
			if i%1000 == 0 {
				h.Fade()
			}
		}
		var want []Item[int]
		for key := range 2000 {
			if h.Contains(key) {
				want = append(want, Item[int]{key, h.Estimate(key)})
			}
		}
		v := newSurvey(h)
		v.collect()
		require.Len(t, v.list, len(want))
		v.prune(3)
		require.Less(t, len(v.list), len(want), "nothing pruned")
		want = h.config.rank(&h.keys, want, 0, 0)
		require.Equal(t, want, h.Top(0))
		require.Equal(t, want[:7], h.Top(7))
		require.Equal(t, want, h.Top(100))
		prefix := []Item[int]{{Key: -1}}
		require.Equal(t, append(prefix, want[:3]...), h.AppendTop(prefix, 3))
	}
}

func TestBytesOfStripes(t *testing.T) {
	for _, config := range []Config[uint64]{
		{K: 10, Stripes: 1},
		{K: 10, Width: 16, Stripes: 64},
		{K: 10, Width: 16, Stripes: 64, Base: 1.1},
		{K: 1000, Stripes: 4, Base: 1.1},
	} {
		want := 0
		got := measure(20, func() *HeavyKeeper[uint64] {
			h := must(New(config))
			for i := range uint64(3000) {
				h.stripes.With(int(i)%config.Stripes, func(s *Sketch[uint64]) bool {
					s.Add(i)
					return true
				})
			}
			want = h.Stats().Bytes
			return h
		})
		require.InEpsilon(t, got, want, 0.1, "%+v: Stats gives %d bytes, the heap %v", config, want, got)
	}
}

// Where each stripe tracks other keys the candidates are limited, and that loses
// none of the heaviest.
func TestTopOfFlatStreams(t *testing.T) {
	for _, skew := range []float64{0.4, 0.6, 0.8} {
		h := must(New(Config[uint64]{K: 100, Stripes: 16}))
		for i, key := range stream.Zipf(1, skew, 1<<17, 1<<19) {
			h.stripes.With(i%16, func(s *Sketch[uint64]) bool {
				s.Add(key)
				return true
			})
		}
		v := newSurvey(h)
		v.collect()
		v.prune(100)
		before := len(v.list)
		var want []Item[uint64]
		for i := range v.list {
			want = append(want, Item[uint64]{v.list[i].key, h.Estimate(v.list[i].key)})
		}
		want = h.config.rank(&h.keys, want, 0, 0)
		v.limit(400)
		t.Logf("skew %.1f: %d candidates, of which %d are looked at", skew, before, len(v.list))
		require.LessOrEqual(t, len(v.list), 400)
		if skew < 0.7 {
			require.Greater(t, before, 400, "nothing to limit")
		}
		require.Equal(t, want, h.Top(0), "skew %.1f", skew)
	}
}

func TestGOMAXPROCSGrows(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	h := mustNew(t, Config[int]{K: 10})
	require.Equal(t, 1, h.stripes.Len())
	two := mustNew(t, Config[int]{K: 10, Stripes: 2})
	runtime.GOMAXPROCS(8)
	hammer(8, func(worker int, r *rand.Rand) {
		for range 5000 {
			h.Add(skewed(r, 100))
			two.Add(skewed(r, 100))
		}
	})
	require.Equal(t, uint64(8*5000), h.Stats().Total)
	require.Equal(t, uint64(8*5000), two.Stats().Total)
}

// Top(n) is the beginning of Top(K), ties of rounded counts included.
func TestTopIsAPrefix(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for run := range 100 {
		h := mustNew(t, Config[int]{K: 12, Width: 40, Stripes: 1 + run%4, Alpha: 0.05 * float64(run%3)})
		for i := range 600 {
			h.stripes.With(i%h.stripes.Len(), func(s *Sketch[int]) bool {
				s.Add(skewed(r, 60))
				return true
			})
			if i%50 == 0 {
				h.Fade()
			}
		}
		all := h.Top(0)
		for n := 1; n <= len(all); n++ {
			require.Equal(t, all[:n], h.Top(n), "run %d, n = %d", run, n)
		}
	}
}

// Each key is listed once, with what all stripes have counted, whatever they
// have in common and however many there are.
func TestCandidatesAreUnique(t *testing.T) {
	const stripes, own = 70, 20
	h := must(New(Config[int]{K: 2000, Width: 1, Stripes: stripes}))
	for i, s := range h.stripes.Locked() {
		for key := range own {
			s.AddN(1000*i+key+1, uint32(key+1))
		}
		s.AddN(-1, 1)
		s.AddN(-i%2-2, 1)
	}
	items := h.Top(0)
	require.Len(t, items, stripes*own+3)
	require.Equal(t, Item[int]{-1, Estimate{stripes, stripes, stripes}}, items[0])
	require.Equal(t, Item[int]{-3, Estimate{stripes / 2, stripes / 2, stripes / 2}}, items[1])
	seen := map[int]bool{}
	for _, item := range items {
		require.False(t, seen[item.Key], "%d twice", item.Key)
		seen[item.Key] = true
	}
	require.Equal(t, len(items), h.Stats().Tracked)
}

// Of ties at the limit those stay that came first.
func TestSurveyLimit(t *testing.T) {
	h := must(New(Config[int]{K: 1}))
	for _, test := range []struct {
		counts []uint64
		n      int
		want   []int
	}{
		{[]uint64{5, 9, 5, 3, 5}, 3, []int{0, 1, 2}},
		{[]uint64{1, 2, 3, 4}, 2, []int{2, 3}},
		{[]uint64{7, 7, 7}, 1, []int{0}},
		{[]uint64{7, 7, 8}, 2, []int{0, 2}},
		{[]uint64{7, 1}, 2, []int{0, 1}},
		{[]uint64{7}, 2, []int{0}},
	} {
		v := newSurvey(h)
		for key, count := range test.counts {
			v.list = append(v.list, candidate[int]{key: key, sum: interval{lower: count}})
			v.asked = append(v.asked, uint64(key+100))
		}
		v.limit(test.n)
		require.Len(t, v.list, len(test.want), "%+v", test)
		for at, key := range test.want {
			require.Equal(t, key, v.list[at].key, "%+v", test)
			require.Equal(t, uint64(key+100), v.asked[at], "%+v", test)
		}
	}
}

package heavykeeper

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireNoAllocations fills a sketch with keys that stay tracked, and requires
// that no update and no look-up of those, or of keys that stay untracked,
// allocates.
func requireNoAllocations[K comparable](t *testing.T, key func(int) K) {
	t.Helper()
	t.Run(fmt.Sprintf("%T", key(0)), func(t *testing.T) {
		for _, alpha := range []float64{0, 0.01} {
			s := must(NewSketch(Config[K]{K: 16, Width: 32, Alpha: alpha}))
			keys := make([]K, 1000)
			for i := range keys {
				keys[i] = key(i)
			}
			for _, key := range keys[:s.Slots()] {
				s.AddN(key, 1<<20)
			}
			top := make([]Item[K], 0, s.Slots())
			steps := map[string]func(){
				"Add": func() {
					for _, key := range keys {
						s.Add(key)
					}
				},
				"AddN": func() {
					for _, key := range keys {
						s.AddN(key, 5)
					}
				},
				"AddBatch": func() { s.AddBatch(keys) },
				"Estimate": func() {
					for _, key := range keys {
						s.Estimate(key)
					}
				},
				"Contains": func() {
					for _, key := range keys {
						s.Contains(key)
					}
				},
				"AppendTop": func() { top = s.AppendTop(top[:0], 0) },
				"Fade":      func() { s.Fade() },
				"Stats":     func() { s.Stats() },
			}
			for name, step := range steps {
				require.Zero(t, testing.AllocsPerRun(5, step), "%s, alpha %v", name, alpha)
			}
			require.Equal(t, uint64(s.Slots()), s.Stats().Admissions, "not steady: keys were admitted")
			require.Len(t, top, 16)
		}
	})
}

func TestNoAllocations(t *testing.T) {
	requireNoAllocations(t, func(i int) uint64 { return uint64(i) })
	requireNoAllocations(t, func(i int) int32 { return int32(-i) })
	requireNoAllocations(t, func(i int) uint8 { return uint8(i) })
	requireNoAllocations(t, func(i int) string { return strings.Repeat("long ", 20) + fmt.Sprint(i) })
	requireNoAllocations(t, func(i int) namedString { return namedString(fmt.Sprint(i)) })
	requireNoAllocations(t, func(i int) point { return point{int32(i), 1} })
	requireNoAllocations(t, func(i int) route { return route{"GET", int16(i), "/"} })
	requireNoAllocations(t, func(i int) [4]byte { return [4]byte{byte(i), byte(i >> 8)} })
}

// Keys that come and go, without strings, allocate nothing either.
func TestAdmissionAllocatesNothing(t *testing.T) {
	s := must(NewSketch(Config[uint64]{K: 4, Width: 4}))
	key := uint64(0)
	n := uint32(1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range 100 {
			key++
			n++
			s.AddN(key, n)
		}
	}))
	require.Greater(t, s.Stats().Evictions, uint64(5000))
}

// measure returns the memory that each of n objects that make returns takes.
func measure[T any](n int, make func() T) float64 {
	heap := func() uint64 {
		var m runtime.MemStats
		for range 2 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	list := []T{make()} // what is made once for all
	list = slices.Grow(list, n+1)
	before := heap()
	for range n {
		list = append(list, make())
	}
	after := heap()
	runtime.KeepAlive(list)
	return (float64(after) - float64(before)) / float64(n)
}

func requireBytes[K comparable](t *testing.T, config Config[K], key func(int) K) {
	t.Helper()
	name := fmt.Sprintf("%T/K=%d/rows=%d/width=%d/base=%v", key(0), config.K, config.Rows, config.Width, config.Base)
	t.Run(name, func(t *testing.T) {
		want := 0
		got := measure(4, func() *Sketch[K] {
			s := must(NewSketch(config))
			for i := range config.K * 2 {
				s.Add(key(i))
			}
			want = s.Stats().Bytes
			return s
		})
		require.InEpsilon(t, got, want, 0.1, "Stats gives %d bytes, the heap %v", want, got)
	})
}

func TestStatsBytes(t *testing.T) {
	text := func(length int) func(int) string {
		return func(i int) string { return fmt.Sprintf("%0*d", length, i) }
	}
	for _, k := range []int{1, 10, 1000, 5000} {
		requireBytes(t, Config[uint64]{K: k}, func(i int) uint64 { return uint64(i) })
		requireBytes(t, Config[string]{K: k}, text(16))
		requireBytes(t, Config[route]{K: k}, func(i int) route { return route{"GET", int16(i), namedString(fmt.Sprint(i))} })
	}
	requireBytes(t, Config[string]{K: 100, Width: 1000}, text(16))
	requireBytes(t, Config[int32]{K: 1000, Rows: 1, Width: 1}, func(i int) int32 { return int32(i) })
	requireBytes(t, Config[uint64]{K: 1, Rows: 16, Width: 10000}, func(i int) uint64 { return uint64(i) })
	requireBytes(t, Config[uint64]{K: 10, Rows: 3, Width: 100, Base: 1.5}, func(i int) uint64 { return uint64(i) })
	requireBytes(t, Config[string]{K: 5000, Width: 5000}, text(40))
	requireBytes(t, Config[string]{K: 1000, Width: 1}, text(64))
}

func TestMemoryDoesNotGrowWithKeys(t *testing.T) {
	s := must(NewSketch(Config[string]{K: 50}))
	add := func(from, to int) {
		for i := from; i < to; i++ {
			s.Add(fmt.Sprintf("key %010d", i))
		}
	}
	add(0, 1000)
	before := s.Stats().Bytes
	add(1000, 50000)
	require.Equal(t, before, s.Stats().Bytes)
	got := measure(1, func() int { add(50000, 80000); return 0 })
	require.Less(t, got, 4096.0)
}

// In a batch as key by key: nothing is lost, bounds hold, and all is equal where
// all is exact.
func TestBatchEqualsSingle(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	for _, k := range []int{1, 3, 40, 200} {
		for _, size := range []int{0, 1, 2, 63, 64, 65, 127, 128, 129, 1000} {
			for _, alpha := range []float64{0, 0.05} {
				config := Config[float64]{K: k, Width: 5, Alpha: alpha, Seed: uint64(size)}
				single, batched := must(NewSketch(config)), must(NewSketch(config))
				m := newModel[float64]()
				nan := 0
				for range 20 {
					batch := make([]float64, size)
					for i := range batch {
						batch[i] = float64(skewed(r, 150))
						if r.IntN(50) == 0 {
							batch[i] = math.NaN()
							nan++
							continue
						}
						m.add(batch[i], 1)
					}
					for _, key := range batch {
						single.Add(key)
					}
					before := slices.Clone(batch)
					batched.AddBatch(batch)
					require.True(t, slices.EqualFunc(before, batch, func(a, b float64) bool { return a == b || a != a && b != b }))
					m.checkBounds(t, batched)
					m.checkBounds(t, single)
					checkShape(t, batched)
					m.fade(batched)
					batched.Fade()
					single.Fade()
				}
				require.Equal(t, m.total, batched.Stats().Total)
				require.Equal(t, uint64(nan), batched.Stats().Ignored)
				require.Equal(t, single.Stats().Weight, batched.Stats().Weight)
				if k == 200 {
					require.Equal(t, single.Top(0), batched.Top(0))
					want, got := single.Stats(), batched.Stats()
					require.Equal(t, want, got)
				}
			}
		}
	}
}

// A batch in which the same key misses, is admitted and hits.
func TestBatchAdmitsKeyOnce(t *testing.T) {
	for _, k := range []int{1, 5} {
		s := must(NewSketch(Config[int]{K: k, Width: 3}))
		s.AddBatch(slices.Repeat([]int{7}, 200))
		s.AddBatch([]int{7, 8, 7, 8, 8, 9, 7})
		require.Equal(t, uint64(203), s.Estimate(7).Count)
		require.Equal(t, uint64(207), s.Stats().Total)
		checkShape(t, s)
	}
}

func TestZeroWeightIsNothing(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 1, Width: 4}))
	for step := range 10 {
		before, stats := slices.Clone(s.rows.cells), s.Stats()
		for key := range 5 {
			tracked := s.Contains(key)
			slot, admitted := s.Update(key, s.Hash(key), 0)
			require.Equal(t, tracked, slot >= 0)
			require.False(t, admitted)
		}
		require.Equal(t, before, s.rows.cells)
		require.Equal(t, stats, s.Stats())
		if step == 0 {
			require.Equal(t, Stats{Exact: true, Bytes: stats.Bytes}, stats)
		}
		s.AddN(step%5, 3)
	}
}

// The slot is that of the key for as long as it is tracked, and no other's.
func TestSlots(t *testing.T) {
	for _, k := range []int{1, 2, 3, 4, 7, 100} {
		owners := map[int]int{} // by slot
		s := must(NewSketch(Config[int]{K: k, Width: 8}))
		require.Equal(t, k+k/4+1, s.Slots())
		r := rand.New(rand.NewPCG(53, uint64(k)))
		for range 10000 {
			key := skewed(r, 20*k)
			before := -1
			for slot, owner := range owners {
				if owner == key {
					before = slot
				}
			}
			slot, admitted := s.Update(key, s.Hash(key), 1+r.Uint32N(3))
			if before >= 0 {
				require.Equal(t, before, slot, "key %d moved", key)
				require.False(t, admitted)
			}
			if s.Contains(key) != (slot >= 0) || admitted != (before < 0 && slot >= 0) || slot >= s.Slots() {
				require.Failf(t, "slot", "key %d: got %d, admitted %v, before %d", key, slot, admitted, before)
			}
			if slot >= 0 {
				owners[slot] = key
			}
		}
		require.Len(t, owners, s.Slots())
		for _, key := range owners {
			require.True(t, s.Contains(key))
		}
		checkShape(t, s)
	}
}

func TestHooksMirrorTheTrackedSet(t *testing.T) {
	tracked := map[string]bool{}
	admissions, evictions := uint64(0), uint64(0)
	config := Config[string]{
		K: 4, Width: 6, Alpha: 0.2,
		OnAdmit: func(key string) { require.False(t, tracked[key], key); tracked[key] = true; admissions++ },
		OnEvict: func(key string) { require.True(t, tracked[key], key); delete(tracked, key); evictions++ },
	}
	s := must(NewSketch(config))
	r := rand.New(rand.NewPCG(55, 56))
	batch := make([]string, 100)
	for i := range 3000 {
		switch i % 10 {
		case 0:
			for j := range batch {
				batch[j] = fmt.Sprint(skewed(r, 80))
			}
			s.AddBatch(batch)
		case 1:
			s.Fade()
		case 2:
			s.AddN(fmt.Sprint(skewed(r, 80)), r.Uint32N(100)<<(i/10%20))
		default:
			s.Add(fmt.Sprint(skewed(r, 80)))
		}
		require.Len(t, tracked, s.Stats().Tracked)
		for key := range tracked {
			require.True(t, s.Contains(key))
		}
	}
	require.Greater(t, evictions, uint64(100))
	require.Equal(t, admissions, s.Stats().Admissions)
	require.Equal(t, evictions, s.Stats().Evictions)
	require.Equal(t, uint64(s.Stats().Tracked), admissions-evictions)
}

// One weight wears down an occupied cell in a few draws, and loses nothing.
func TestLargestWeightOnAnOccupiedCell(t *testing.T) {
	for _, alpha := range []float64{0, 0.01, 0.9} {
		for _, owner := range []uint32{1, 2, 50, 300, 1 << 20, 1 << 31, math.MaxUint32} {
			for _, n := range []uint32{2, 1 << 20, 1<<31 - 1, 1 << 31, math.MaxUint32} {
				s := must(NewSketch(Config[int]{K: 1, Rows: 2, Width: 1, Alpha: alpha}))
				m := newModel[int]()
				add := func(key int, n uint32) {
					m.add(key, n)
					s.AddN(key, n)
					m.checkBounds(t, s)
				}
				for range 3 { // so large that nothing is admitted by its weight
					add(1, math.MaxUint32)
					add(2, math.MaxUint32)
				}
				add(3, owner)
				add(3, 1)
				require.False(t, s.Contains(3))
				require.Positive(t, s.Estimate(3).Lower, "the cell is free")
				before := s.random
				add(4, n)
				require.LessOrEqual(t, draws(t, before, s.random), 400)
				checkShape(t, s)
				require.Equal(t, m.total, s.Stats().Total)
			}
		}
	}
}

// Totals beyond 32 bits are exact, and stop at the end of 64.
func TestTotals(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 2, Width: 2}))
	for range 1000 {
		s.AddN(1, math.MaxUint32)
	}
	require.Equal(t, uint64(1000*math.MaxUint32), s.Stats().Total)
	require.Equal(t, uint64(1000*math.MaxUint32), s.Stats().Weight)
	require.Equal(t, uint64(1000*math.MaxUint32), s.Estimate(1).Count)
	require.Equal(t, s.Estimate(1).Lower, s.Estimate(1).Upper)

	const max = math.MaxUint64
	s.tracked.entries[0].count = max - 10
	s.AddN(1, 10)
	require.Equal(t, Estimate{max, max, max}, s.Estimate(1))
	s.AddN(1, 1)
	s.AddBatch([]int{1, 1})
	require.Equal(t, Estimate{max, max, max}, s.Estimate(1), "wrapped")
	s.AddN(1, math.MaxUint32)
	require.Equal(t, Estimate{max, max, max}, s.Estimate(1), "wrapped")
	s.total, s.faded = max-5, max-5
	s.Add(2)
	require.Equal(t, uint64(max), s.Stats().Total)
	require.Equal(t, uint64(max), s.Stats().Weight)
	require.Equal(t, uint64(max), s.Stats().TrackedWeight)
	require.Equal(t, []int{1, 2}, []int{s.Top(0)[0].Key, s.Top(0)[1].Key})
}

// The hottest key stays first while its count passes 2^32, with and without
// fading.
func TestHottestKeyPasses32Bits(t *testing.T) {
	for _, alpha := range []float64{0, 0.001} {
		s := must(NewSketch(Config[int]{K: 2, Width: 4, Alpha: alpha}))
		m := newModel[int]()
		for i := range 2000 {
			m.add(0, 1<<23)
			s.AddN(0, 1<<23)
			m.add(1+i%50, 1)
			s.Add(1 + i%50)
			require.Equal(t, 0, s.Top(1)[0].Key, "step %d", i)
			m.checkBounds(t, s)
			if i%10 == 0 {
				m.fade(s)
				s.Fade()
			}
		}
		require.Greater(t, s.Estimate(0).Count, uint64(1<<32))
	}
}

// Weights of untracked keys fill the counters: they end there, and say so.
func TestSaturation(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 1, Rows: 2, Width: 1}))
	m := newModel[int]()
	for i := range 200 {
		for _, key := range []int{0, 1, 0, 1, 2 + i%3} {
			m.add(key, math.MaxUint32)
			s.AddN(key, math.MaxUint32)
			m.checkBounds(t, s)
		}
		checkShape(t, s)
	}
	require.True(t, s.Stats().Saturated)
	require.Equal(t, uint64(math.MaxUint64), s.Estimate(3).Upper)
	require.Equal(t, uint64(math.MaxUint64), s.Estimate(99).Upper)
	s.Reset()
	require.False(t, s.Stats().Saturated)
	require.Zero(t, s.Estimate(99).Upper)
}

// A newcomer starts with its own count, not that of the key it pushes out.
func TestNewcomerStartsWithItsOwnCount(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 1, Rows: 4, Width: 1000}))
	s.AddN(1, 1000)
	s.AddN(2, 100)
	s.AddN(3, 101)
	require.False(t, s.Contains(2))
	require.Equal(t, Estimate{101, 101, 101}, s.Estimate(3))
	require.Equal(t, uint64(100), s.Estimate(2).Lower)

	// By one at a time, through the rows.
	s = must(NewSketch(Config[int]{K: 1, Rows: 4, Width: 1000}))
	s.AddN(1, 1000)
	s.AddN(2, 100)
	for n := range uint64(101) {
		require.Equal(t, Estimate{n, n, n}, s.Estimate(3))
		s.Add(3)
	}
	require.True(t, s.Contains(3))
	require.Equal(t, Estimate{101, 101, 101}, s.Estimate(3))
	require.Equal(t, Estimate{100, 100, 100}, s.Estimate(2))
	s.Add(2)
	require.False(t, s.Contains(2), "equal is not more")
	s.Add(2)
	require.True(t, s.Contains(2))
	require.Equal(t, Estimate{102, 102, 102}, s.Estimate(2))
	require.Equal(t, Estimate{101, 101, 101}, s.Estimate(3))
}

// The paper admits a key when its count is the smallest tracked one plus one:
// weights jump over that, and a full set would be closed for ever.
func TestFullSetIsNotClosed(t *testing.T) {
	for _, n := range []uint32{1, 2, 3, 7, 10, 1000} {
		s := must(NewSketch(Config[int]{K: 5, Width: 100}))
		for key := range s.Slots() {
			s.AddN(key, 50)
		}
		for range 52/n + 1 {
			s.AddN(100, n)
		}
		require.True(t, s.Contains(100), "weight %d", n)
		require.Equal(t, 100, s.Top(1)[0].Key, "weight %d", n)
		require.Equal(t, s.Top(1)[0].Estimate, s.Estimate(100))
	}
}

func TestWeightDecidesPlace(t *testing.T) {
	s := must(NewSketch(Config[string]{K: 3}))
	for range 5 {
		s.Add("five")
	}
	s.Add("one")
	s.AddN("ten", 10)
	want := []Item[string]{{"ten", Estimate{10, 10, 10}}, {"five", Estimate{5, 5, 5}}, {"one", Estimate{1, 1, 1}}}
	require.Equal(t, want, s.Top(0))
	require.Equal(t, want[:2], s.Top(2))
	require.Equal(t, want, s.Top(-1))
	require.Equal(t, want, s.Top(math.MaxInt))
	require.Equal(t, want, s.Top(math.MinInt))
	require.Equal(t, want, slices.Collect(s.All()))
	for item := range s.All() {
		require.Equal(t, want[0], item)
		break
	}
}

// Many mice, and only then an elephant.
func TestManyMiceThenOneElephant(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 10}))
	for i := range 100000 {
		s.Add(i)
	}
	const n = 5000
	for range n {
		s.Add(-1)
	}
	require.Equal(t, -1, s.Top(1)[0].Key)
	e := s.Estimate(-1)
	require.LessOrEqual(t, e.Lower, uint64(n))
	require.GreaterOrEqual(t, e.Lower, uint64(n-200))
	require.GreaterOrEqual(t, e.Upper, uint64(n))
}

// K+1 and Slots+1 keys by turns, the stream that least-frequently-used lists
// fail on.
func TestRoundRobin(t *testing.T) {
	for _, k := range []int{1, 4, 50} {
		for _, keys := range []int{k + 1, slots(k) + 1, 2*slots(k) + 1} {
			for _, width := range []int{1, 2, 256} {
				s := must(NewSketch(Config[int]{K: k, Width: width}))
				m := newModel[int]()
				for i := range 200 * keys {
					m.add(i%keys, 1)
					s.Add(i % keys)
				}
				m.checkBounds(t, s)
				checkShape(t, s)
				top := s.Top(0)
				require.Len(t, top, k)
				if width > keys {
					for _, item := range top {
						require.InDelta(t, 200, item.Count, 20)
					}
				}
			}
		}
	}
}

// More room than keys, tiny rows: each key is listed once.
func TestKeysAreUnique(t *testing.T) {
	r := rand.New(rand.NewPCG(57, 58))
	for _, k := range []int{1, 2, 3, 50} {
		for _, keys := range []int{1, 2, 10, 60, 5000} {
			s := must(NewSketch(Config[int]{K: k, Rows: 1, Width: 1, Alpha: 0.1}))
			for i := range 5000 {
				s.AddN(skewed(r, keys), 1+r.Uint32N(2))
				if i%100 == 0 {
					s.Fade()
				}
				if i%50 == 0 {
					seen := map[int]bool{}
					for _, item := range s.Top(0) {
						require.False(t, seen[item.Key], "key %d twice", item.Key)
						seen[item.Key] = true
					}
				}
			}
			checkShape(t, s)
		}
	}
}

// Keys chosen to collide under one seed do not under another.
func TestSecretSeedSavesTheFirstKey(t *testing.T) {
	known := must(NewSketch(Config[uint64]{K: 5, Rows: 2, Width: 64}))
	target := positions(&known.rows, known.keys.hash(0), nil)
	var attack []uint64
	for key := uint64(1); len(attack) < 200; key++ {
		if slices.Equal(target, positions(&known.rows, known.keys.hash(key), nil)) {
			attack = append(attack, key)
		}
	}
	secret := must(NewSketch(Config[uint64]{K: 5, Rows: 2, Width: 64, Seed: 0xfeedface}))
	places := map[int]bool{}
	for _, key := range attack {
		places[positions(&secret.rows, secret.keys.hash(key), nil)[0]] = true
	}
	require.Greater(t, len(places), 50)
	for i := range 20000 {
		secret.Add(attack[i%len(attack)])
		if i%20 == 0 {
			secret.Add(0)
		}
	}
	require.Equal(t, uint64(0), secret.Top(1)[0].Key)
}

func TestStats(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 4, Width: 100, Alpha: 0.5}))
	s.AddN(1, 100)
	s.AddN(2, 50)
	got := s.Stats()
	require.Equal(t, Stats{Total: 150, Weight: 150, Tracked: 2, TrackedWeight: 150, Admissions: 2, Exact: true, Bytes: got.Bytes}, got)
	s.Fade()
	s.AddN(3, 10)
	got = s.Stats()
	require.Equal(t, Stats{Total: 160, Weight: 85, Tracked: 3, TrackedWeight: 85, Admissions: 3, Exact: true, Bytes: got.Bytes}, got)
	for key := 4; key <= 7; key++ {
		s.AddN(key, uint32(key))
	}
	got = s.Stats()
	require.Equal(t, uint64(7), got.Admissions)
	require.Equal(t, uint64(1), got.Evictions)
	require.Equal(t, 6, got.Tracked)
	require.Equal(t, uint64(182), got.Total)
	require.Equal(t, uint64(85+22), got.Weight)
	require.Equal(t, uint64(85+22-4), got.TrackedWeight)
	require.False(t, got.Exact)
}

func TestExactEndsWithTheKeyAfterK(t *testing.T) {
	for _, k := range []int{1, 2, 5, 100} {
		s := must(NewSketch(Config[int]{K: k}))
		for key := range k {
			s.Add(key)
			require.True(t, s.Stats().Exact)
		}
		s.Add(k)
		require.False(t, s.Stats().Exact)
	}
	s := must(NewSketch(Config[int]{K: 2, Alpha: 0.3}))
	s.AddN(1, 1001)
	for range 100 {
		s.Fade()
	}
	require.False(t, s.Stats().Exact, "a fraction was lost")
}

// A burst of huge weights, which cells cannot hold, is forgotten like any other:
// fading goes on in small steps, and bounds come back.
func TestSaturatedCellsRecover(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 10, Alpha: 0.05}))
	m := newModel[int]()
	add := func(key int, n uint32) {
		m.add(key, n)
		s.AddN(key, n)
	}
	fade := func() {
		m.fade(s)
		s.Fade()
	}
	for i := range 45 {
		add(i%15, math.MaxUint32)
	}
	require.True(t, s.Stats().Saturated)
	for range 1000 {
		for key := range 300 {
			add(key, 1)
		}
		fade()
		m.checkBounds(t, s)
	}
	require.False(t, s.Stats().Saturated)
	require.GreaterOrEqual(t, s.fading.unit, uint64(firstUnit/2))
	require.Less(t, s.Estimate(-1).Upper, uint64(6000), "a key that never came")
	add(-2, 1<<20)
	for range 20 {
		before := float64(s.Estimate(-2).Count)
		fade()
		require.InEpsilon(t, 0.95, float64(s.Estimate(-2).Count)/before, 0.01)
	}
}

// Nobody is lost to a Config.Hash that panics.
func TestHashPanics(t *testing.T) {
	angry := false
	s := must(NewSketch(Config[int]{K: 1, Width: 1, Hash: func(key int) uint64 {
		if angry && key == 1 {
			panic("angry")
		}
		return uint64(key) << 32
	}}))
	s.AddN(1, 10)
	s.AddN(2, 20)
	angry = true
	require.Panics(t, func() { s.AddN(3, 30) })
	angry = false
	require.Equal(t, Estimate{10, 10, 10}, s.Estimate(1))
	checkShape(t, s)
}

// A hook that panics leaves the update counted and no stripe locked; the other
// hook is not called, and the rest of a batch not counted.
func TestHookPanics(t *testing.T) {
	evicted := 0
	h := must(New(Config[int]{K: 1, Width: 4, Stripes: 1,
		OnAdmit: func(key int) {
			if key == 13 {
				panic("in OnAdmit")
			}
		},
		OnEvict: func(int) { evicted++ },
	}))
	h.AddN(1, 5)
	h.AddN(2, 5)
	require.PanicsWithValue(t, "in OnAdmit", func() { h.AddN(13, 9) })
	require.Equal(t, 1, evicted)
	require.Equal(t, Estimate{9, 9, 9}, h.Estimate(13))
	h.AddN(1, 100)
	h.AddN(2, 100)
	require.PanicsWithValue(t, "in OnAdmit", func() {
		batch := make([]int, 400)
		for i := range batch {
			batch[i] = 13
		}
		h.AddBatch(batch)
	})
	require.Less(t, h.Stats().Total, uint64(5+5+9+200+400))
	require.NotZero(t, h.Estimate(13).Lower)
	h.Add(1) // is not locked
	for _, s := range h.stripes.Locked() {
		checkShape(t, s)
	}
}

// When a saturated cell recovers, its error is the weight of all keys: what has
// come since the last fade included.
func TestRecoveredErrorHoldsTheLatest(t *testing.T) {
	config := Config[int]{K: 1, Rows: 1, Width: 1, Alpha: 0.5}
	s, other := must(NewSketch(config)), must(NewSketch(config))
	s.rows.cells[0].err = saturated
	s.AddN(5, 1000)
	merged := s.clone()
	require.True(t, s.shrink())
	require.GreaterOrEqual(t, uint64(s.rows.cells[0].err), 1000*s.fading.unit)
	merged.fading.set(merged.fading.exact * 2) // so that units must be aligned
	require.NoError(t, merged.Merge(other))
	require.GreaterOrEqual(t, uint64(merged.rows.cells[0].err), 1000*merged.fading.unit)
}

// The total does not wrap where what has come since the last fade would.
func TestSinceDoesNotWrap(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 1}))
	for range 2 {
		s.since += 1<<63 - 1
		s.AddN(1, 2)
	}
	require.Equal(t, uint64(math.MaxUint64), s.Stats().Total)
}

// A newcomer must be heavier than the lightest tracked key, not as heavy.
func TestTiesDoNotDisplace(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 1}))
	for key := range 2 {
		s.AddN(key, 4)
		s.AddN(key, 5) // which the heap does not know of yet
	}
	for key := range 50 {
		s.AddN(100+key, 9)
	}
	require.Zero(t, s.Stats().Evictions)
	s.AddN(99, 10)
	require.Equal(t, uint64(1), s.Stats().Evictions)
}

// missOne does what miss does for one occurrence, down to the random numbers.
func TestMissOneIsMiss(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 40))
	outcomes := map[string]int{}
	for range 4000 {
		c := Config[int]{K: 1 + random.IntN(3), Rows: 3 + random.IntN(3), Width: 1 + random.IntN(40), Alpha: []float64{0, 0.25}[random.IntN(2)], Seed: random.Uint64()}
		one, any := must(NewSketch(c)), must(NewSketch(c))
		key, h := -1, one.keys.hash(-1)
		heavy, fades, weight := random.Uint32()>>random.IntN(12), random.IntN(12), 1+random.Uint32N(9)
		if random.IntN(10) == 0 {
			heavy = 1
		}
		others := one.Slots() - random.IntN(50)/49
		for _, s := range []*Sketch[int]{one, any} {
			for range fades {
				s.Fade()
			}
			for i := range others {
				s.AddN(i, heavy)
			}
			if heavy%8 == 0 {
				s.AddN(-2, weight)
				s.AddN(-3, 2) // by now another quantum
			}
			if heavy == 1 {
				s.Fade()
			}
		}
		r := &one.rows
		for i := range r.cells {
			r.cells[i] = cell{uint32(h) + min(random.Uint32N(8), 1), random.Uint32() >> random.IntN(32), random.Uint32() >> random.IntN(32)}
			if random.IntN(3) == 0 {
				r.cells[i].count = uint32(one.fading.unit) * random.Uint32N(3)
			}
		}
		copy(any.rows.cells, r.cells)
		before := *one
		slot, admitted := one.missOne(key, h)
		wantSlot, wantAdmitted := any.miss(key, h, 1)
		require.Equal(t, wantSlot, slot)
		require.Equal(t, wantAdmitted, admitted)
		require.Equal(t, any, one)
		switch {
		case before.quantum > 1:
			outcomes["quantum"]++
		case before.tracked.full() && before.fading.unit > before.tracked.floor():
			require.True(t, admitted)
			outcomes["outweighs"]++
		case admitted:
			outcomes["admitted"]++
		case before.rows.look(h, before.fading.unit).most >= nearEnd:
			outcomes["near the end"]++
		case one.random != before.random:
			outcomes["challenge"]++
		default:
			outcomes["owner"]++
		}
	}
	t.Log(outcomes)
	for _, outcome := range []string{"quantum", "outweighs", "admitted", "near the end", "challenge", "owner"} {
		require.Greater(t, outcomes[outcome], 100, outcome)
	}
}

// Add, AddN, Update and a batch of one key do the same for one occurrence, down
// to the index and the random numbers, where hashes collide as well.
func TestAddIsUpdate(t *testing.T) {
	random := rand.New(rand.NewPCG(57, 58))
	hashes := []func(int) uint64{
		nil,
		func(key int) uint64 { return uint64(key % 7) },
		func(key int) uint64 { return math.MaxUint64 },
	}
	for i := range 90 {
		c := Config[int]{
			K: 1 + random.IntN(30), Rows: []int{1, 4, 4, 5, 16}[i%5], Width: 1 + random.IntN(20),
			Alpha: []float64{0, 0.1}[i%2], Hash: hashes[i%3], Seed: random.Uint64(),
		}
		sketches := make([]*Sketch[int], 4)
		for i := range sketches {
			sketches[i] = must(NewSketch(c))
		}
		want := sketches[0]
		for step := range 1500 {
			key, n := skewed(random, 3*c.K), random.Uint32N(9)
			sketches[0].Update(key, want.Hash(key), 1)
			sketches[1].AddN(key, 1)
			sketches[2].Add(key)
			sketches[3].AddBatch([]int{key})
			for _, s := range sketches {
				switch {
				case step > 900 && step%8 == 0:
					s.AddN(-key, n)
				case step%100 == 99:
					s.Fade()
				}
			}
			if step%50 != 49 {
				continue
			}
			for _, s := range sketches {
				require.Equal(t, want.tracked, s.tracked)
				require.Equal(t, want.rows, s.rows)
				require.Equal(t, want.random, s.random)
				require.Equal(t, want.Stats(), s.Stats())
			}
		}
		checkShape(t, want)
	}
}

// The index has twice the words where it then takes a 32nd of the cells at most,
// and so has that of a restored sketch.
func TestAmpleIndex(t *testing.T) {
	for width, want := range map[int]int{2730: 512, 2731: 1024, 100000: 1024} {
		s, restored := must(NewSketch(Config[int]{K: 100, Width: width})), new(Sketch[int])
		for i := range s.Slots() {
			s.Add(i)
		}
		require.NoError(t, restored.UnmarshalBinary(must(s.MarshalBinary())))
		require.Len(t, s.tracked.index, want, "width %d", width)
		require.Len(t, restored.tracked.index, want, "width %d, restored", width)
	}
}

// A tracked count stops at its end, whichever way an occurrence comes.
func TestTrackedCountsStop(t *testing.T) {
	for name, add := range map[string]func(*Sketch[int]){
		"Add":      func(s *Sketch[int]) { s.Add(1) },
		"AddN":     func(s *Sketch[int]) { s.AddN(1, 7) },
		"AddBatch": func(s *Sketch[int]) { s.AddBatch([]int{1}) },
	} {
		s := must(NewSketch(Config[int]{K: 1}))
		s.Add(1)
		s.tracked.entries[0].count = math.MaxUint64 - 1
		for range 2 {
			add(s)
			require.Equal(t, uint64(math.MaxUint64), s.tracked.entries[0].count, name)
		}
	}
}

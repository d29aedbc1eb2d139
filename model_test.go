package heavykeeper

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper/bench/stream"
)

// model counts a stream exactly, in a map, and fades it by the rounded units
// that define fading. Weights are in today's occurrences; they are exact up to
// the rounding of floating point.
type model[K comparable] struct {
	weight map[K]float64
	total  uint64
}

func newModel[K comparable]() *model[K] { return &model[K]{weight: map[K]float64{}} }

func (m *model[K]) add(key K, n uint32) {
	m.weight[key] += float64(n)
	m.total += uint64(n)
}

// fade does what s.Fade is about to do.
func (m *model[K]) fade(s *Sketch[K]) {
	f := s.fading
	f.fade()
	for key, w := range m.weight {
		m.weight[key] = w * float64(s.fading.unit) / float64(f.unit)
	}
}

// checkBounds requires that every key's estimate holds its true weight.
func (m *model[K]) checkBounds(t require.TestingT, s *Sketch[K]) {
	for key := range m.weight {
		truth, e := m.weight[key], s.Estimate(key)
		const rounding = 1e-9
		if float64(e.Lower) > truth*(1+rounding) || float64(e.Upper) < truth*(1-rounding) ||
			e.Count < e.Lower || e.Count > e.Upper {
			require.Failf(t, "bounds", "key %v weighs %v, got %+v, tracked %v", key, truth, e, s.Contains(key))
		}
	}
}

// checkShape requires the invariants of a sketch's parts, and of its answers.
func checkShape[K comparable](t require.TestingT, s *Sketch[K]) {
	set := &s.tracked
	require.LessOrEqual(t, len(set.entries), s.Slots())
	require.Len(t, set.heap, len(set.entries))
	require.Len(t, set.seen, len(set.entries))
	words := 0
	for _, word := range set.index {
		if word != 0 {
			words++
		}
	}
	require.Equal(t, len(set.entries), words, "words in the index")
	checkFurther(t, set)
	inHeap := make([]bool, len(set.entries))
	for i, slot := range set.heap {
		require.False(t, inHeap[slot], "slot %d twice in the heap", slot)
		inHeap[slot] = true
		require.LessOrEqual(t, set.seen[i], set.entries[slot].count)
		if i > 0 {
			require.LessOrEqual(t, set.seen[(i-1)/2], set.seen[i], "heap order at %d", i)
		}
	}
	for slot, e := range set.entries {
		h := s.keys.hash(e.key)
		require.Equal(t, uint32(h>>32), e.home)
		require.Equal(t, slot, set.find(e.key, h), "key %v", e.key)
	}
	top := s.Top(0)
	for i, item := range top {
		require.Equal(t, s.Estimate(item.Key), item.Estimate, "key %v", item.Key)
		require.Positive(t, item.Count)
		if i > 0 {
			previous := top[i-1]
			require.True(t, previous.Count > item.Count || previous.Count == item.Count &&
				s.keys.compare(previous.Key, item.Key) < 0, "%v before %v", previous, item)
		}
	}
}

// program is a random stream of operations.
type program struct {
	config Config[int]
	keys   int
	skew   float64
	heavy  bool // weights up to 2^32-1
	fades  float64
	steps  int
	bits   int // of fingerprints, 0 for all 32
}

func (p program) String() string {
	return fmt.Sprintf("K=%d rows=%d width=%d base=%v alpha=%v keys=%d skew=%v heavy=%v bits=%d",
		p.config.K, p.config.Rows, p.config.Width, p.config.Base, p.config.Alpha, p.keys, p.skew, p.heavy, p.bits)
}

func (p program) run(t *testing.T, r *rand.Rand) {
	s, err := NewSketch(p.config)
	require.NoError(t, err)
	if p.bits > 0 {
		s.rows.mask = 1<<p.bits - 1
	}
	m := newModel[int]()
	for step := range p.steps {
		if r.Float64() < p.fades {
			m.fade(s)
			s.Fade()
		}
		key, n := int(float64(p.keys)*math.Pow(r.Float64(), p.skew)), uint32(1)
		switch {
		case p.heavy && r.IntN(8) == 0:
			n = r.Uint32() >> r.IntN(32)
		case r.IntN(4) == 0:
			n = r.Uint32N(20)
		}
		m.add(key, n)
		slot, admitted := s.Update(key, s.Hash(key), n)
		require.Equal(t, s.Contains(key), slot >= 0)
		require.False(t, admitted && slot < 0)
		if slot >= 0 {
			require.Equal(t, key, s.tracked.entries[slot].key)
		}
		if p.bits == 0 {
			m.checkBounds(t, s)
		}
		if step%16 == 0 {
			checkShape(t, s)
			require.Equal(t, m.total, s.Stats().Total)
		}
	}
}

func TestRandomProgramsKeepBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	runs := 300
	if testing.Short() {
		runs = 60
	}
	for i := range runs {
		p := program{
			config: Config[int]{
				K:     1 + r.IntN(6),
				Rows:  1 + r.IntN(5),
				Width: 1 + r.IntN(6),
				Base:  []float64{1.08, 1.001, 2}[r.IntN(3)],
				Seed:  r.Uint64(),
			},
			keys:  1 + r.IntN(40),
			skew:  1 + 4*r.Float64(),
			heavy: i%3 == 0,
			steps: 600,
		}
		if i%2 == 1 {
			p.config.Alpha = []float64{1e-4, 0.02, 0.2, 0.9, 1 - 1e-12}[r.IntN(5)]
			p.fades = 0.05 + r.Float64()/4
		}
		t.Run(p.String(), func(t *testing.T) { p.run(t, r) })
	}
}

// With few fingerprint bits cells mistake keys for one another all the time.
// Bounds do not hold then, but nothing else may break.
func TestFingerprintCollisionsBreakNothingElse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 60 {
		p := program{
			config: Config[int]{K: 1 + r.IntN(6), Width: 1 + r.IntN(6), Seed: r.Uint64()},
			keys:   50,
			skew:   2,
			heavy:  i%2 == 0,
			steps:  1000,
			bits:   1 + r.IntN(2),
		}
		if i%3 == 0 {
			p.config.Alpha, p.fades = 0.1, 0.1
		}
		t.Run(p.String(), func(t *testing.T) { p.run(t, r) })
	}
}

func TestExactUntilOneKeyTooMany(t *testing.T) {
	s, err := NewSketch(Config[string]{K: 50, Width: 1})
	require.NoError(t, err)
	want := map[string]uint64{}
	for i := range 5000 {
		key := fmt.Sprint(i % 50)
		s.AddN(key, uint32(i))
		want[key] += uint64(i)
	}
	require.True(t, s.Stats().Exact)
	for key, w := range want {
		require.Equal(t, Estimate{w, w, w}, s.Estimate(key))
	}
	require.Equal(t, Estimate{}, s.Estimate("never seen"))
	s.Add("one too many")
	require.False(t, s.Stats().Exact)
}

func TestSameSeedSameResult(t *testing.T) {
	run := func(seed uint64) []Item[uint64] {
		s, err := NewSketch(Config[uint64]{K: 20, Width: 30, Seed: seed, Alpha: 0.01})
		require.NoError(t, err)
		r := rand.New(rand.NewPCG(5, 6))
		zipf := rand.NewZipf(r, 1.1, 1, 5000)
		for i := range 50000 {
			s.Add(zipf.Uint64())
			if i%1000 == 0 {
				s.Fade()
			}
		}
		top := s.Top(0)
		s.Reset()
		require.Empty(t, s.Top(0))
		return top
	}
	require.Equal(t, run(7), run(7))
	require.NotEqual(t, run(7), run(8))
}

func TestResetIsLikeNew(t *testing.T) {
	config := Config[int]{K: 3, Width: 3, Alpha: 0.3}
	used, err := NewSketch(config)
	require.NoError(t, err)
	for i := range 1000 {
		used.AddN(i%17, uint32(i))
		if i%5 == 0 {
			used.Fade()
		}
	}
	used.Reset()
	fresh, err := NewSketch(config)
	require.NoError(t, err)
	require.Equal(t, fresh.Stats(), used.Stats())
	for i := range 1000 {
		used.Add(i % 13)
		fresh.Add(i % 13)
	}
	require.Equal(t, fresh.Top(0), used.Top(0))
}

// The 100 heaviest of 100000 keys of weight i each, in every order.
func TestWeightedTop(t *testing.T) {
	orders := map[string]func([]int){
		"rising":  func([]int) {},
		"falling": slices.Reverse[[]int],
		"shuffled": func(keys []int) {
			rand.New(rand.NewPCG(7, 8)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		},
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			keys := make([]int, 100000)
			for i := range keys {
				keys[i] = i + 1
			}
			order(keys)
			s, err := NewSketch(Config[int]{K: 5})
			require.NoError(t, err)
			for _, key := range keys {
				s.AddN(key, uint32(key))
			}
			for i, item := range s.Top(0) {
				require.Equal(t, 100000-i, item.Key)
				require.Equal(t, uint64(item.Key), item.Lower)
			}
		})
	}
}

// Weights of any scale find the same keys, also when the hot keys change: a
// new elephant must get past mice whose counts are large numbers.
func TestWeightsOfAnySize(t *testing.T) {
	const k, events, fadeEach, share = 100, 1 << 19, 5000, 0.05
	keys := stream.Zipf(1, 1, 1<<18, events)
	for i := events / 2; i < events; i++ {
		keys[i] = ^keys[i] // the second half has keys of its own
	}
	for _, largest := range []uint32{1, 100, 100000} {
		r := rand.New(rand.NewPCG(1, 2))
		s, err := NewSketch(Config[uint64]{K: k, Width: 341, Alpha: share})
		require.NoError(t, err)
		weight, unit := map[uint64]float64{}, 1.0
		for i, key := range keys {
			n := 1 + r.Uint32N(largest)
			s.AddN(key, n)
			weight[key] += float64(n) * unit
			if i%fadeEach == 0 {
				s.Fade()
				unit /= 1 - share
			}
		}
		kth := slices.Sorted(maps.Values(weight))[len(weight)-k]
		found := 0
		for item := range s.All() {
			if weight[item.Key] >= kth {
				found++
			}
		}
		t.Logf("weights of 1 to %d: precision %.2f", largest, float64(found)/k)
		require.GreaterOrEqual(t, found, 95)
	}
}

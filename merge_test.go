package heavykeeper

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// feed runs a random stream of keys into s and returns its model.
func feed(s *Sketch[int], r *rand.Rand, steps, keys int, heavy bool) *model[int] {
	m := newModel[int]()
	for range steps {
		if s.config.Alpha > 0 && r.IntN(10) == 0 {
			m.fade(s)
			s.Fade()
		}
		key, n := int(float64(keys)*math.Pow(r.Float64(), 3)), 1+r.Uint32N(3)
		if heavy && r.IntN(10) == 0 {
			n = r.Uint32() >> r.IntN(32)
		}
		m.add(key, n)
		s.AddN(key, n)
	}
	return m
}

func TestMergeKeepsBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for i := range 400 {
		config := Config[int]{K: 1 + r.IntN(8), Rows: 1 + r.IntN(4), Width: 1 + r.IntN(8), Seed: r.Uint64()}
		if i%2 == 1 {
			config.Alpha = []float64{0.01, 0.3, 0.9}[r.IntN(3)]
		}
		other := config
		if i%3 == 0 {
			other.K = 1 + r.IntN(8)
		}
		a, err := NewSketch(config)
		require.NoError(t, err)
		b, err := NewSketch(other)
		require.NoError(t, err)
		heavy := i%5 == 0
		ma := feed(a, r, r.IntN(400), 40, heavy)
		mb := feed(b, r, r.IntN(400), 40, heavy)
		union := newModel[int]()
		for _, m := range []*model[int]{ma, mb} {
			union.total += m.total
			for key, w := range m.weight {
				union.weight[key] += w
			}
		}
		before := b.Top(0)
		reverse := b.clone()
		twin := a.clone()
		require.NoError(t, a.Merge(b))
		require.Equal(t, before, b.Top(0), "the operand changed")
		checkShape(t, a)
		union.checkBounds(t, a)
		require.Equal(t, union.total, a.Stats().Total)

		require.NoError(t, reverse.Merge(twin))
		if config.K == other.K {
			require.Equal(t, a.Top(0), reverse.Top(0))
			for key := range union.weight {
				require.Equal(t, a.Estimate(key), reverse.Estimate(key))
			}
		}

		// The merged sketch goes on counting.
		for range 200 {
			key := r.IntN(40)
			union.add(key, 1)
			a.Add(key)
		}
		union.checkBounds(t, a)
	}
}

func TestMergeFindsKeyJustBelowTop(t *testing.T) {
	const k = 10
	build := func(name string) *Sketch[string] {
		s, err := NewSketch(Config[string]{K: k})
		require.NoError(t, err)
		for i := range k {
			s.AddN(fmt.Sprint(name, i), 100)
		}
		s.AddN("shared", 90)
		for i := range 1000 {
			s.Add(fmt.Sprint("tail", i))
		}
		return s
	}
	a := build("a")
	require.NoError(t, a.Merge(build("b")))
	require.Equal(t, "shared", a.Top(1)[0].Key)
	require.Equal(t, uint64(180), a.Top(1)[0].Count)
}

func TestMergeWithEmpty(t *testing.T) {
	config := Config[int]{K: 5, Width: 10}
	full, err := NewSketch(config)
	require.NoError(t, err)
	empty, err := NewSketch(config)
	require.NoError(t, err)
	for i := range 1000 {
		full.AddN(i%30, uint32(i%7))
	}
	want := full.Top(0)
	require.NoError(t, full.Merge(empty))
	require.Equal(t, want, full.Top(0))
	require.NoError(t, empty.Merge(full))
	require.Equal(t, want, empty.Top(0))
	for key := range 30 {
		require.Equal(t, full.Estimate(key), empty.Estimate(key))
	}
}

// Keys of strangers do not fill a log, nor look like lines of it.
func TestErrorsQuoteKeys(t *testing.T) {
	config := Config[string]{K: 1}
	s := must(NewSketch(config))
	config.Hash = func(key string) uint64 { return uint64(len(key)) }
	other := must(NewSketch(config))
	other.Add("x\n" + strings.Repeat("y", 1e6))
	config.Hash = func(key string) uint64 {
		if key == "" {
			return 0
		}
		return 1
	}
	err := must(NewSketch(config)).Merge(other)
	require.EqualError(t, err, `heavykeeper: cannot merge: Hash differs on key "x\n`+strings.Repeat("y", 62)+`"...`)
	require.ErrorIs(t, s.Merge(other), ErrMerge)
	require.Equal(t, `"-5"`, quoted(-5))
}

func TestMergeRefusesWhatDiffers(t *testing.T) {
	base := Config[int]{K: 5, Width: 10, Seed: 1}
	tests := []struct {
		field  string
		change func(*Config[int])
	}{
		{"Rows = 3, the receiver's is 4", func(c *Config[int]) { c.Rows = 3 }},
		{"Width = 11, the receiver's is 10", func(c *Config[int]) { c.Width = 11 }},
		{"Base = 1.1, the receiver's is 1.08", func(c *Config[int]) { c.Base = 1.1 }},
		{"Alpha = 0.5, the receiver's is 0", func(c *Config[int]) { c.Alpha = 0.5 }},
		{"Seed = 2, the receiver's is 1", func(c *Config[int]) { c.Seed = 2 }},
		{"Hash differs", func(c *Config[int]) { c.Hash = func(k int) uint64 { return uint64(k) * 3 } }},
	}
	for _, test := range tests {
		t.Run(test.field, func(t *testing.T) {
			other := base
			test.change(&other)
			a, err := NewSketch(base)
			require.NoError(t, err)
			b, err := NewSketch(other)
			require.NoError(t, err)
			a.Add(1)
			b.Add(2)
			err = a.Merge(b)
			require.ErrorIs(t, err, ErrMerge)
			require.ErrorContains(t, err, test.field)
			require.Equal(t, []Item[int]{{1, Estimate{1, 1, 1}}}, a.Top(0))

			c, err := New(base)
			require.NoError(t, err)
			d, err := New(other)
			require.NoError(t, err)
			d.Add(2)
			require.ErrorContains(t, c.Merge(d), test.field)
			require.Empty(t, c.Top(0))
		})
	}
	s, err := NewSketch(base)
	require.NoError(t, err)
	require.ErrorIs(t, s.Merge(s), ErrMerge)
	h, err := New(base)
	require.NoError(t, err)
	require.ErrorIs(t, h.Merge(h), ErrMerge)
}

func TestMergeTellsHooks(t *testing.T) {
	tracked := map[int]bool{}
	config := Config[int]{K: 2, Width: 50}
	watched := config
	watched.OnAdmit = func(key int) { require.False(t, tracked[key]); tracked[key] = true }
	watched.OnEvict = func(key int) { require.True(t, tracked[key]); delete(tracked, key) }
	a, err := NewSketch(watched)
	require.NoError(t, err)
	b, err := NewSketch(config)
	require.NoError(t, err)
	for i := range 200 {
		a.AddN(i%6, 1)
		b.AddN(i%6+3, 5)
	}
	require.NoError(t, a.Merge(b))
	require.Len(t, tracked, a.Slots())
	for key := range tracked {
		require.True(t, a.Contains(key))
	}
}

// Each of many faded sketches has lost a fraction of the same key, which must
// not be lost from its upper bound once it is evicted.
func TestMergeAddsLostFractions(t *testing.T) {
	config := Config[int]{K: 1, Alpha: 0.5}
	sum, truth := must(NewSketch(config)), 0.0
	for range 1000 {
		s, m := must(NewSketch(config)), newModel[int]()
		m.add(1, 255)
		s.AddN(1, 255)
		for range 16 {
			m.fade(s)
			s.Fade()
		}
		truth += m.weight[1]
		require.NoError(t, sum.Merge(s))
	}
	for key := range sum.Slots() {
		sum.AddN(2+key, 1000)
	}
	require.False(t, sum.Contains(1))
	require.GreaterOrEqual(t, float64(sum.Estimate(1).Upper), truth)
}

func TestMergeOfNothing(t *testing.T) {
	sketch, keeper := must(NewSketch(Config[int]{K: 1})), must(New(Config[int]{K: 1}))
	require.ErrorIs(t, sketch.Merge(nil), ErrMerge)
	require.ErrorIs(t, sketch.Merge(new(Sketch[int])), ErrMerge)
	require.ErrorIs(t, new(Sketch[int]).Merge(sketch), ErrMerge)
	require.ErrorIs(t, keeper.Merge(nil), ErrMerge)
	require.ErrorIs(t, keeper.Merge(new(HeavyKeeper[int])), ErrMerge)
	require.ErrorIs(t, new(HeavyKeeper[int]).Merge(keeper), ErrMerge)
}

// What came since the last fade counts in its own unit, and what is not exact
// on one side is not so in the sum.
func TestMergeOfOtherUnits(t *testing.T) {
	config := Config[int]{K: 10, Alpha: 0.05}
	a, b := must(NewSketch(config)), must(NewSketch(config))
	for range 20 {
		a.Fade()
	}
	a.AddN(1, 1000)
	b.AddN(2, 500)
	for name, merged := range map[string]*Sketch[int]{"a.Merge(b)": a.clone(), "b.Merge(a)": b.clone()} {
		other := b
		if name == "b.Merge(a)" {
			other = a
		}
		require.NoError(t, merged.Merge(other))
		require.InDelta(t, 1500, merged.Stats().Weight, 2, name)
		require.Equal(t, uint64(1500), merged.Stats().Total, name)
		merged.Fade()
		require.InDelta(t, 1500*0.95, merged.Stats().Weight, 8, name)
	}
	lossy, exact := must(NewSketch(config)), must(NewSketch(config))
	for i := range 200 {
		lossy.AddN(i%3, 7)
		lossy.Fade()
	}
	require.False(t, lossy.Stats().Exact)
	exact.Add(1)
	require.True(t, exact.Stats().Exact)
	for _, pair := range [][2]*Sketch[int]{{lossy.clone(), exact}, {exact.clone(), lossy}} {
		require.NoError(t, pair[0].Merge(pair[1]))
		require.False(t, pair[0].Stats().Exact)
	}
}

// Merge adds what Stats and the mean weight go by, and calls a hook that is
// alone.
func TestMergeCounts(t *testing.T) {
	var admitted, evicted []int
	config := Config[int]{K: 1, OnAdmit: func(key int) { admitted = append(admitted, key) }}
	a := must(NewSketch(config))
	config.OnAdmit, config.OnEvict = nil, func(key int) { evicted = append(evicted, key) }
	c := must(NewSketch(config))
	config.OnEvict = nil
	b := must(NewSketch(config))
	for key := range 5 {
		b.AddN(key, uint32(9-key))
	}
	c.AddN(10, 1)
	c.AddN(11, 1)
	before := *b
	require.NoError(t, a.Merge(b))
	require.Equal(t, []int{0, 1}, admitted)
	require.Equal(t, before.excess, a.excess)
	require.Positive(t, a.excess)
	require.NoError(t, c.Merge(b))
	require.ElementsMatch(t, []int{10, 11}, evicted)
	require.Equal(t, before.evictions+2, c.Stats().Evictions)
}

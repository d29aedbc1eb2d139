package heavykeeper

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlotsKnowTheirKeys(t *testing.T) {
	s, err := NewSketch(Config[string]{K: 4, Width: 3, Seed: 1})
	require.NoError(t, err)
	names := make([]string, s.Slots()) // as a user would keep them by slot
	for i := range 5000 {
		key := string(rune('a' + i*i%13))
		slot, admitted := s.Update(key, s.Hash(key), 1)
		if admitted {
			names[slot] = key
		}
		require.Equal(t, slot, s.Slot(key, s.Hash(key)))
		if slot >= 0 {
			require.Equal(t, key, names[slot])
		}
	}
	for slot, name := range names {
		key, ok := s.Key(slot)
		require.True(t, ok)
		require.Equal(t, name, key)
	}
	for _, slot := range []int{-1, s.Slots()} {
		_, ok := s.Key(slot)
		require.False(t, ok)
	}
	s.Reset()
	_, ok := s.Key(0)
	require.False(t, ok)
}

func TestHashIsOfTheSeed(t *testing.T) {
	a, err := NewSketch(Config[int]{K: 1, Seed: 1})
	require.NoError(t, err)
	b, err := NewSketch(Config[int]{K: 9, Rows: 2, Width: 7, Seed: 1, Alpha: .5})
	require.NoError(t, err)
	c, err := NewSketch(Config[int]{K: 1, Seed: 2})
	require.NoError(t, err)
	require.Equal(t, a.Hash(5), b.Hash(5))
	require.NotEqual(t, a.Hash(5), c.Hash(5))
}

func TestValid(t *testing.T) {
	f, err := NewSketch(Config[float64]{K: 1})
	require.NoError(t, err)
	require.True(t, f.Valid(0))
	require.False(t, f.Valid(math.NaN()))
	a, err := NewSketch(Config[any]{K: 1})
	require.NoError(t, err)
	require.True(t, a.Valid("x"))
	require.False(t, a.Valid([]int{}))
}

// Bounds are those of Estimate before rounding, and FadeFactor is what Fade
// does to them, through many a setting back of the unit.
func TestBoundsFadeByTheFactor(t *testing.T) {
	for _, alpha := range []float64{0, 0.01, 0.3, 0.99} {
		s, err := NewSketch(Config[int]{K: 2, Width: 4, Alpha: alpha})
		require.NoError(t, err)
		for i := range 500 {
			s.AddN(i%7, uint32(1+i%5))
		}
		weight := 1e6
		s.AddN(100, 1e6)
		for range 100 {
			factor := s.FadeFactor()
			require.InDelta(t, 1-alpha, factor, (1-alpha)/250)
			weight *= factor
			s.Fade()
			if alpha > 0 && weight > 1 {
				lower, upper := s.Bounds(100, s.Hash(100))
				require.LessOrEqual(t, lower, weight+1e-9)
				require.GreaterOrEqual(t, upper, weight-1e-9)
				require.InDelta(t, weight, lower, 1)
			}
			for key := range 8 {
				lower, upper := s.Bounds(key, s.Hash(key))
				e := s.Estimate(key)
				require.Equal(t, float64(e.Lower), math.Floor(lower))
				require.Equal(t, float64(e.Upper), math.Ceil(upper))
			}
		}
	}
}

// Each stripe of a HeavyKeeper takes the course that Stream gives its number.
func TestStreams(t *testing.T) {
	h, s := must(New(Config[int]{K: 1, Stripes: 3, Seed: 7})), must(NewSketch(Config[int]{K: 1, Seed: 7}))
	seen := map[generator]bool{}
	for i, part := range h.stripes.Locked() {
		before := s.random
		s.Stream(uint64(i))
		require.Equal(t, before, s.random, "until the next Reset")
		s.Reset()
		require.Equal(t, part.random, s.random)
		seen[s.random] = true
	}
	require.Len(t, seen, 3)
}

func TestStrings(t *testing.T) {
	config := Config[string]{K: 5, Stripes: 3, Seed: 77777}
	for _, object := range []any{must(New(config)), must(NewSketch(config)), new(HeavyKeeper[int]), new(Sketch[int])} {
		require.NotContains(t, fmt.Sprintf("%v %+v %s", object, object, object), "77777")
	}
	require.Equal(t, "heavykeeper.HeavyKeeper(K = 5, Stripes = 3)", fmt.Sprint(must(New(config))))
	require.Equal(t, "heavykeeper.Sketch(K = 5, Rows = 4, Width = 256)", fmt.Sprint(must(NewSketch(config))))
}

func TestFadeFactorOfStripes(t *testing.T) {
	for _, alpha := range []float64{0, 0.01, 0.3, 0.99} {
		config := Config[int]{K: 2, Alpha: alpha, Stripes: 4}
		s, err := NewSketch(config)
		require.NoError(t, err)
		h, err := New(config)
		require.NoError(t, err)
		h.AddN(1, 1e6)
		for range 100 {
			require.Equal(t, s.FadeFactor(), h.FadeFactor())
			s.Fade()
			h.Fade()
		}
	}
}

func TestBoundsAtTheEnd(t *testing.T) {
	s, err := NewSketch(Config[int]{K: 1, Width: 1, Rows: 1})
	require.NoError(t, err)
	for key := range 3 {
		for range 3 {
			s.AddN(key, math.MaxUint32)
		}
	}
	s.AddN(5, math.MaxUint32)
	for key := range 7 {
		lower, upper := s.Bounds(key, s.Hash(key))
		e := s.Estimate(key)
		require.LessOrEqual(t, lower, float64(e.Lower))
		require.Equal(t, e.Upper == math.MaxUint64, math.IsInf(upper, 1))
	}
	require.True(t, s.Stats().Saturated)
}

func TestRank(t *testing.T) {
	s, err := NewSketch(Config[string]{K: 1})
	require.NoError(t, err)
	item := func(key string, count uint64) Item[string] { return Item[string]{key, Estimate{Count: count}} }
	items := []Item[string]{item("c", 1), item("b", 2), item("a", 1), item("d", 2)}
	want := []Item[string]{item("b", 2), item("d", 2), item("a", 1), item("c", 1)}
	require.Equal(t, want, s.Rank(items, -1))
	require.Equal(t, want, s.Rank(items, 0))
	require.Equal(t, want, s.Rank(items, 9))
	require.Equal(t, want[:3], s.Rank(items, 3))
	require.Empty(t, s.Rank(nil, 5))
}

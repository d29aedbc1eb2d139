package window

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
)

func must[K comparable](t testing.TB, config Config[K]) *HeavyKeeper[K] {
	h, err := New(config)
	require.NoError(t, err)
	return h
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		change func(*Config[int])
		want   string // part of the error, none if the configuration is good
	}{
		{func(c *Config[int]) {}, ""},
		{func(c *Config[int]) { c.K = 0 }, "window: K = 0: must be positive"},
		{func(c *Config[int]) { c.K = math.MinInt }, fmt.Sprintf("window: K = %d: must be positive", math.MinInt)},
		{func(c *Config[int]) { c.K = math.MaxInt }, fmt.Sprintf("window: K = %d: must be at most 4194304", math.MaxInt)},
		{func(c *Config[int]) { c.Slots = -1 }, "window: Slots = -1: must be positive"},
		{func(c *Config[int]) { c.Slots = 65537 }, "window: Slots = 65537: must be at most 65536"},
		{func(c *Config[int]) { c.Slots, c.Slot = 1000, 1 }, ""},
		{func(c *Config[int]) { c.Slot = -time.Second }, "window: Slot = -1s: must be positive"},
		{func(c *Config[int]) { c.Slot = math.MinInt64 }, "must be positive"},
		{func(c *Config[int]) { c.Slots, c.Slot = 1, maxSpan }, ""},
		{func(c *Config[int]) { c.Slots, c.Slot = 1, maxSpan+1 }, "Slots x Slot must be at most 640511h56m49.213693951s"},
		{func(c *Config[int]) { c.Slots, c.Slot = 2, maxSpan/2+1 }, "window: Slot = 320255h58m24.606846976s: Slots x Slot"},
		{func(c *Config[int]) { c.Slot = math.MaxInt64 }, "window: Slot = 2562047h47m16.854775807s: Slots x Slot"},
		{func(c *Config[int]) { c.Candidates = -1 }, "window: Candidates = -1: must be positive"},
		{func(c *Config[int]) { c.Candidates = 2 }, "window: Candidates = 2: must be at least K = 3"},
		{func(c *Config[int]) { c.Candidates = 3 }, ""},
		{func(c *Config[int]) { c.Candidates = 1<<24 + 1 }, "window: Candidates = 16777217: must be at most 16777216"},
		{func(c *Config[int]) { c.Slots, c.Candidates = 65536, 4097 }, "window: Candidates = 4097: Candidates x Slots must be at most 268435456"},
		{func(c *Config[int]) { c.Stripes = -1 }, "window: Stripes = -1: must be positive"},
		{func(c *Config[int]) { c.Stripes = 4097 }, "window: Stripes = 4097: must be at most 4096"},
		{func(c *Config[int]) { c.Rows = -1 }, "window: Rows = -1: must be positive"},
		{func(c *Config[int]) { c.Rows = 17 }, "window: Rows = 17: must be at most 16"},
		{func(c *Config[int]) { c.Width = -1 }, "window: Width = -1: must be positive"},
		{func(c *Config[int]) { c.Width = math.MaxInt }, "window: Width = "},
		{func(c *Config[int]) { c.Rows, c.Width = 16, 1<<23+1 }, "window: Width = 8388609: Rows x Width must be at most 134217728"},
		{func(c *Config[int]) { c.Rows, c.Width, c.Stripes = 16, 1<<23, 9 }, "window: Stripes = 9: times Rows x Width = 16 x 8388608 must be at most 1073741824"},
		{func(c *Config[int]) { c.Rows, c.Width, c.Stripes = 1, 1<<18+1, 4096 }, "window: Stripes = 4096: times Rows x Width"},
		{func(c *Config[int]) { c.Slots, c.Candidates, c.Stripes = 16, 1<<24, 17 }, "window: Stripes = 17: times Candidates x Slots = 16777216 x 16 must be at most 4294967296"},
		{func(c *Config[int]) { c.Slots, c.Candidates, c.Stripes = 1, 1<<20+1, 4096 }, "window: Stripes = 4096: times Candidates x Slots"},
		{func(c *Config[int]) { c.K, c.Stripes = maxK, maxStripes }, "window: Stripes = 4096: times"},
		{func(c *Config[int]) { c.Base = 1 }, "window: Base = 1: must be"},
		{func(c *Config[int]) { c.Base = math.NaN() }, "window: Base = NaN: must be"},
	} {
		config := Config[int]{K: 3}
		test.change(&config)
		h, err := New(config)
		if test.want == "" {
			require.NoError(t, err, "%+v", config)
			require.NotNil(t, h)
			continue
		}
		require.ErrorContains(t, err, test.want)
		require.Nil(t, h)
	}
}

func TestDefaults(t *testing.T) {
	c, err := Config[int]{K: 100}.resolve()
	require.NoError(t, err)
	require.Equal(t, []int{10, 400, 400}, []int{c.Slots, c.Candidates, c.Width})
	require.Equal(t, 3*time.Second, c.Slot)
	require.InDelta(t, 0.1813, c.alpha(), 1e-4)
	for _, test := range []struct{ rows, candidates, want int }{
		{0, 1, 256}, {0, 1 << 24, 1 << 24}, {8, 1 << 24, 1 << 24}, {16, 1 << 24, 1 << 23}, {9, 1 << 24, (1 << 27) / 9},
	} {
		c, err := Config[int]{K: 1, Rows: test.rows, Candidates: test.candidates, Stripes: 1}.resolve()
		require.NoError(t, err)
		require.Equal(t, test.want, c.Width, "%d rows, %d candidates", test.rows, test.candidates)
	}
	c, err = Config[int]{K: 1, Rows: 16, Candidates: 1 << 18, Slots: 1, Stripes: 4096}.resolve()
	require.NoError(t, err)
	require.Equal(t, 1<<14, c.Width, "as many cells as the stripes may have in all")
	for candidates := 1; candidates < 300; candidates++ {
		s, err := Config[int]{Candidates: candidates, Slots: 3}.newSketch()
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.Slots(), candidates)
		require.LessOrEqual(t, s.Slots(), max(candidates+1, 2))
	}
}

// step is something that happens at a time t(0) to t(99), a quarter of a slot
// apart.
type step struct {
	t    float64 // may lie between
	add  uint32  // to the only key
	want uint64  // what the window then holds at that time
}

// Four quarters a slot and three slots: the window that ends in slot s is t(4s-8)
// to t(4s+4), without the latter.
var steps = []struct {
	name                string
	slots               int
	steps               []step
	late, tooLate, turn uint64
}{
	{"boundaries are exact", 3, []step{{0, 1, 1}, {11.999, 0, 1}, {12, 0, 0}}, 0, 0, 0},
	{"an event in the middle of a slot leaves with it", 3, []step{{2, 1, 1}, {11.999, 0, 1}, {12, 0, 0}}, 0, 0, 0},
	{"the last of a slot leaves with it", 3, []step{{3.999, 1, 1}, {4, 1, 2}, {11.999, 0, 2}, {12, 0, 1}, {16, 0, 0}}, 0, 0, 1},
	{"boundaries do not drift with access", 3, []step{{0, 1, 1}, {3, 0, 1}, {7, 0, 1}, {7, 1, 2}, {11, 0, 2}, {13, 0, 1}, {15.999, 0, 1}, {16, 0, 0}}, 0, 0, 1},
	{"reads move nothing", 3, []step{{0, 1, 1}, {99, 0, 0}, {0, 0, 1}, {5, 1, 2}}, 0, 0, 1},
	{"gap of one slot", 3, []step{{0, 1, 1}, {8, 1, 2}, {12, 0, 1}, {20, 0, 0}}, 0, 0, 1},
	{"gap that leaves one slot", 3, []step{{0, 1, 1}, {4, 2, 3}, {12, 4, 6}, {16, 0, 4}}, 0, 0, 2},
	{"gap of a window", 3, []step{{0, 1, 1}, {12, 2, 2}, {13, 2, 4}, {23, 0, 4}, {24, 0, 0}}, 0, 0, 1},
	{"gap of many windows", 3, []step{{0, 1, 1}, {96, 2, 2}, {97, 1, 3}, {99, 0, 3}}, 0, 0, 1},
	{"every add after a gap stays", 3, []step{{0, 9, 9}, {50, 1, 1}, {51, 1, 2}, {52, 1, 3}, {55, 1, 4}, {56, 1, 5}}, 0, 0, 3},
	{"slots are cleared before they are used again", 3, []step{{0, 1, 1}, {4, 2, 3}, {8, 4, 7}, {12, 8, 14}, {16, 16, 28}, {20, 32, 56}, {24, 64, 112}}, 0, 0, 6},
	{"late by one slot", 3, []step{{4, 1, 1}, {3, 2, 3}, {12, 0, 1}, {16, 0, 0}}, 2, 0, 0},
	{"late by all but a window", 3, []step{{8, 1, 1}, {0, 2, 3}, {11, 0, 3}, {12, 0, 1}}, 2, 0, 0},
	{"too late", 3, []step{{12, 1, 1}, {3.999, 2, 1}, {12, 0, 1}}, 0, 2, 0},
	{"much too late", 3, []step{{99, 1, 1}, {0, 2, 1}, {99, 0, 1}}, 0, 2, 0},
	{"within a slot order is nothing", 3, []step{{2, 1, 1}, {0, 1, 2}, {3, 1, 3}, {1, 1, 4}, {12, 0, 0}}, 0, 0, 0},
	{"out of order", 3, []step{{8, 1, 1}, {1, 1, 2}, {5, 1, 3}, {9, 1, 4}, {0, 1, 5}, {12, 0, 3}, {16, 0, 2}, {20, 0, 0}}, 3, 0, 0},
	{"clock back by a slot, and on", 3, []step{{20, 1, 1}, {16, 2, 3}, {17, 4, 7}, {20, 8, 15}, {28, 0, 9}, {32, 0, 0}}, 6, 0, 0},
	{"clock back by a window, and on", 3, []step{{20, 1, 1}, {8, 2, 1}, {12, 4, 5}, {20, 8, 13}, {24, 16, 25}}, 4, 2, 1},
	{"reading of the past is of the present", 3, []step{{20, 1, 1}, {3, 0, 1}, {0, 0, 1}}, 0, 0, 0},
	{"a late event in a slot that a turn has passed over", 3, []step{{0, 1, 1}, {8, 1, 2}, {5, 4, 6}, {12, 0, 5}, {16, 0, 1}}, 4, 0, 1},
	{"one slot only", 1, []step{{0, 1, 1}, {3.999, 2, 3}, {4, 0, 0}, {4, 4, 4}, {3, 8, 4}, {8, 0, 0}}, 0, 8, 1},
	{"two slots", 2, []step{{0, 1, 1}, {4, 2, 3}, {8, 4, 6}, {12, 0, 4}, {16, 0, 0}}, 0, 0, 2},
	{"a thousand slots", 1000, []step{{0, 1, 1}, {99, 2, 3}, {50, 4, 7}, {3999, 0, 7}, {4000, 0, 6}, {4040, 0, 6}, {4052, 0, 2}, {4100, 0, 0}}, 4, 0, 1},
	{"weight 0 is nothing", 3, []step{{0, 1, 1}, {50, 0, 0}, {4, 1, 2}}, 0, 0, 1},
}

func TestSteps(t *testing.T) {
	years := func(n int) time.Time { return time.Date(n, 3, 1, 12, 0, 0, 0, time.UTC) }
	origins := map[string]time.Time{
		"1970": time.Unix(0, 0), "before 1970": years(1913), "zero time": {}, "now": time.Now(),
		"now, wall clock": time.Now().Round(0), "far past": years(-5000), "far future": years(9999), "end of near": time.Now().Round(0).Add(maxSpan),
	}
	for _, test := range steps {
		for name, origin := range origins {
			for _, slot := range []time.Duration{4 * time.Microsecond, 4 * time.Second, 24 * time.Hour} {
				t.Run(fmt.Sprintf("%s/%s/%v", test.name, name, slot), func(t *testing.T) {
					h := must(t, Config[string]{K: 1, Slots: test.slots, Slot: slot, Stripes: 1})
					_, offset := h.grid.locate(origin, h.grid.since(origin))
					origin := origin.Add(-offset)
					for i, step := range test.steps {
						at := origin.Add(time.Duration(step.t * float64(slot/4)))
						h.AddAt(at, "", step.add)
						e := h.EstimateAt(at, "")
						require.Equal(t, heavykeeper.Estimate{Count: step.want, Lower: step.want, Upper: step.want}, e, "step %d, t%v", i, step.t)
						series := h.SeriesAt(at, "")
						require.Equal(t, step.want, sum(series), "step %d, t%v", i, step.t)
						for slots := range test.slots + 2 {
							events, _ := h.TotalAt(at, slots)
							want := sum(series[max(test.slots-slots, 0)*min(slots, 1):])
							require.Equal(t, want, events, "the latest %d slots, step %d, t%v", slots, i, step.t)
						}
						top := h.TopAt(at, 0)
						require.Equal(t, step.want > 0, len(top) == 1, "step %d, t%v: %v", i, step.t, top)
					}
					s := h.Stats()
					require.Equal(t, []uint64{test.late, test.tooLate, test.turn}, []uint64{s.Late, s.TooLate, s.Turns}, "late, too late, turns")
				})
			}
		}
	}
}

// One event a slot, from every offset within the ring, for three turns: the
// window holds the latest of them, each in its place.
func TestThreeTurnsFromEveryOffset(t *testing.T) {
	for _, slots := range []int{1, 2, 3, 10} {
		for offset := range slots {
			h := must(t, Config[int]{K: 1, Slots: slots, Slot: time.Second, Stripes: 1})
			for i := range 3*slots + 1 {
				at := time.Unix(int64(offset+i), int64(i)*1e8%1e9)
				h.AddAt(at, 7, uint32(i+1))
				want := make([]uint64, slots)
				for back := range min(slots, i+1) {
					want[slots-1-back] = uint64(i + 1 - back)
				}
				require.Equal(t, want, h.SeriesAt(at, 7), "slots %d, offset %d, event %d", slots, offset, i)
				require.Equal(t, sum(want), h.EstimateAt(at, 7).Count)
			}
		}
	}
}

// However long a gap is, in slots or in years, what comes after it is counted
// as if nothing had been before.
func TestIdleGaps(t *testing.T) {
	gaps := []time.Duration{}
	for i := range 40 {
		gaps = append(gaps, time.Duration(i)*time.Second)
	}
	gaps = append(gaps, 24*time.Hour, 365*24*time.Hour, 200*365*24*time.Hour, math.MaxInt64)
	for _, gap := range gaps {
		h := must(t, Config[int]{K: 2, Slots: 5, Slot: time.Second, Stripes: 1})
		at := time.Unix(1000, 0)
		for i := range 1000 {
			h.AddAt(at, i%50, 1)
		}
		h.AddAt(at, 1, 100)
		at = at.Add(gap)
		h.AddAt(at, 1, 3)
		if gap >= 5*time.Second {
			require.Equal(t, []heavykeeper.Item[int]{{Key: 1, Estimate: heavykeeper.Estimate{Count: 3, Lower: 3, Upper: 3}}}, h.TopAt(at, 0), "gap %v", gap)
			for key := 2; key < 50; key++ {
				require.Zero(t, h.EstimateAt(at, key), "gap %v", gap)
			}
			require.Equal(t, uint64(3), h.Stats().Weight)
		} else {
			require.GreaterOrEqual(t, h.EstimateAt(at, 1).Lower, uint64(103), "gap %v", gap)
		}
		require.Equal(t, uint64(1103), h.Stats().Total)
		turns := uint64(1) // one for all slots of the gap: BenchmarkGap
		if gap < time.Second {
			turns = 0
		}
		require.Equal(t, turns, h.Stats().Turns, "gap %v", gap)
	}
}

// A jump years ahead is taken at its word; Reset is the way back.
func TestJumpAheadAndBack(t *testing.T) {
	h := must(t, Config[int]{K: 2, Stripes: 1})
	now := time.Unix(1e9, 0)
	h.AddAt(now, 1, 5)
	h.AddAt(now.AddDate(30, 0, 0), 2, 1)
	h.AddAt(now, 1, 5)
	require.Equal(t, uint64(5), h.Stats().TooLate)
	require.Equal(t, 2, h.TopAt(now, 0)[0].Key)
	require.Zero(t, h.EstimateAt(now, 1).Upper)
	h.Reset()
	require.Empty(t, h.TopAt(now, 0))
	require.Zero(t, h.Stats().Total)
	h.AddAt(now, 1, 7)
	require.Equal(t, uint64(7), h.EstimateAt(now, 1).Count)
	require.Equal(t, int64(1e9)/3, h.Stats().Slot)
}

func TestHotKeyLeavesOnReadAlone(t *testing.T) {
	h := must(t, Config[string]{K: 3, Slots: 10, Slot: time.Second, Stripes: 2})
	at := time.Unix(0, 0)
	addTo(h, 0, at, "hot", 1000)
	addTo(h, 1, at.Add(5*time.Second), "warm", 10)
	require.Equal(t, "hot", h.TopAt(at.Add(9*time.Second), 0)[0].Key)
	require.Equal(t, "warm", h.TopAt(at.Add(10*time.Second), 0)[0].Key)
	require.Len(t, h.TopAt(at.Add(10*time.Second), 0), 1)
	require.Empty(t, h.TopAt(at.Add(15*time.Second), 0))
	require.Zero(t, h.EstimateAt(at.Add(15*time.Second), "warm"))
	require.Zero(t, h.EstimateAt(at.Add(15*time.Second), "never seen"))
}

// A window of one slot that never ends is the sketch that nominates.
func TestOneHugeSlotIsASketch(t *testing.T) {
	config := Config[int]{K: 5, Candidates: 11, Rows: 3, Width: 20, Slots: 1, Slot: maxSpan, Stripes: 1, Seed: 3}
	h := must(t, config)
	s, err := config.newSketch()
	require.NoError(t, err)
	at := time.Unix(1e9, 0)
	for i, key := range zipf(0.9, 500, 20000, 20000, 0) {
		s.Add(int(key))
		h.AddAt(at.Add(time.Duration(i)*time.Hour), int(key), 1)
	}
	end := at.Add(20000 * time.Hour)
	for rank := range uint64(500) {
		key := int(rank * 0x9e3779b97f4a7c15)
		require.Equal(t, s.Estimate(key), h.EstimateAt(end, key), "rank %d", rank)
	}
	require.Equal(t, s.Top(5), h.TopAt(end, 0))
	require.Positive(t, s.Stats().Evictions)
}

// crowd makes a window whose sketch is full and whose newcomers have a past.
func crowd(t *testing.T) (*HeavyKeeper[int], time.Time) {
	h := must(t, Config[int]{K: 2, Candidates: 2, Rows: 2, Width: 4, Slots: 5, Slot: time.Second, Stripes: 1})
	at := time.Unix(100, 0)
	for i := range 200 {
		h.AddAt(at, 1+i%20, 1)
	}
	return h, at
}

// A key is exact when it has been tracked through a whole window. Until then
// its upper bound is what the sketch knew of it in the first slot of all, where
// nothing of that can have faded.
func TestPastAgesOut(t *testing.T) {
	h, at := crowd(t)
	h.AddAt(at, 500, 1000) // has collisions in its cells
	past := h.EstimateAt(at, 500).Upper - 1000
	require.Positive(t, past)
	for ahead := range uint64(5) {
		later := at.Add(time.Duration(ahead) * time.Second)
		h.AddAt(later, 500, 100) // stays the heaviest
		counted := 1000 + 100*(ahead+1)
		require.Equal(t, counted, sum(h.SeriesAt(later, 500)))
		require.Equal(t, counted+past, h.EstimateAt(later, 500).Upper, "slot %d", ahead)
	}
	later := at.Add(5 * time.Second)
	for n := range uint32(2) {
		h.AddAt(later, 500, n)
		want := 400 + uint64(n)
		require.Equal(t, heavykeeper.Estimate{Count: want, Lower: want, Upper: want}, h.EstimateAt(later, 500))
	}
}

// An admission whose key had a past in earlier slots: the bound falls with
// every slot that leaves.
func TestUpperFallsAsThePastLeaves(t *testing.T) {
	h, at := crowd(t)
	for ahead := range 5 { // the same crowd in every slot of the window
		for i := range 200 {
			h.AddAt(at.Add(time.Duration(ahead)*time.Second), 1+i%20, 1)
		}
	}
	at = at.Add(4 * time.Second)
	h.AddAt(at, 500, 1000)
	last := h.EstimateAt(at, 500).Upper
	for ahead := 1; ahead < 5; ahead++ {
		upper := h.EstimateAt(at.Add(time.Duration(ahead)*time.Second), 500).Upper
		require.Less(t, upper, last, "slot %d", ahead)
		ratio := float64(upper-1000) / float64(last-1000)
		require.InDelta(t, math.Exp(-2./5), ratio, 0.05, "slot %d", ahead)
		last = upper
	}
	require.Zero(t, h.EstimateAt(at.Add(5*time.Second), 500).Upper)
}

func TestSaturationKeepsBounds(t *testing.T) {
	h := must(t, Config[int]{K: 1, Slots: 2, Slot: time.Second, Stripes: 1})
	at := time.Unix(0, 0)
	h.AddAt(at, 1, math.MaxUint32-1)
	require.Equal(t, uint64(math.MaxUint32-1), h.EstimateAt(at, 1).Upper)
	for range 3 {
		h.AddAt(at, 1, math.MaxUint32)
		e := h.EstimateAt(at, 1)
		require.Equal(t, uint64(math.MaxUint32), e.Lower, "counts stop, they do not wrap")
		require.Equal(t, uint64(math.MaxUint64), e.Upper)
	}
	at = at.Add(time.Second)
	h.AddAt(at, 1, 5)
	require.Equal(t, uint64(math.MaxUint32+5), h.EstimateAt(at, 1).Lower)
	at = at.Add(time.Second)
	require.Equal(t, heavykeeper.Estimate{Count: 5, Lower: 5, Upper: 5}, h.EstimateAt(at, 1), "the slot has left")
}

// Totals stop where they end, as those of a restored window may be near.
func TestTotalsDoNotWrap(t *testing.T) {
	h := must(t, Config[int]{K: 1, Slots: 2, Slot: time.Second, Stripes: 2})
	at := time.Unix(100, 0)
	for i, c := range h.stripes.Locked() {
		h.count(c, at, h.grid.since(at), 1, h.keys.Hash(1), 1)
		c.totals[c.wheel.at] = math.MaxUint64 - 2
		c.late, c.tooLate = math.MaxUint64-2, math.MaxUint64-2
		c.past = heavykeeper.Stats{
			Total: math.MaxUint64 - 2, Admissions: math.MaxUint64, Evictions: math.MaxUint64, Ignored: math.MaxUint64,
		}
		for _, seconds := range []int{0, -1, -10} {
			at := at.Add(time.Duration(seconds) * time.Second)
			h.count(c, at, h.grid.since(at), 1, h.keys.Hash(1), 5)
		}
		require.Equal(t, []uint64{math.MaxUint64, math.MaxUint64}, []uint64{c.late, c.tooLate}, "stripe %d", i)
	}
	events, _ := h.TotalAt(at, 0)
	require.Equal(t, uint64(math.MaxUint64), events)
	s := h.Stats()
	for name, got := range map[string]uint64{
		"Total": s.Total, "Weight": s.Weight, "Late": s.Late, "TooLate": s.TooLate,
		"Admissions": s.Admissions, "Evictions": s.Evictions, "Ignored": s.Ignored,
	} {
		require.Equal(t, uint64(math.MaxUint64), got, name)
	}
}

func TestUnusualKeys(t *testing.T) {
	h := must(t, Config[string]{K: 10, Stripes: 1})
	at := time.Unix(0, 0)
	keys := []string{"", "\x00", "a\x00b", "a", "\xff\xfe"}
	buffer := []byte{}
	for i, key := range keys {
		buffer = append(buffer[:0], key...)
		AddBytesAt(h, at, buffer, uint32(i+1))
		h.AddAt(at, key, 10)
	}
	clear(buffer[:cap(buffer)])
	for i, key := range keys {
		require.Equal(t, uint64(i+11), h.EstimateAt(at, key).Lower, "%q", key)
	}
	f := must(t, Config[float64]{K: 10, Stripes: 1})
	f.AddAt(at, math.NaN(), 3)
	f.AddBatchAt(at, []float64{math.NaN(), 1})
	s := f.Stats()
	require.Equal(t, []uint64{2, 1, 1}, []uint64{s.Ignored, s.Total, s.Weight})
	require.Zero(t, f.EstimateAt(at, math.NaN()))
	require.Len(t, f.TopAt(at, 0), 1)
	before := f.Stats()
	later := at.Add(time.Hour)
	f.AddAt(later, math.NaN(), 3)
	f.AddBatchAt(later, []float64{math.NaN(), math.NaN()})
	f.AddBatchAt(at.Add(-time.Hour), []float64{math.NaN(), 2})
	before.Ignored, before.TooLate = 6, 1
	require.Equal(t, before, f.Stats(), "time has moved")
	a := must(t, Config[any]{K: 10, Stripes: 1})
	a.AddAt(at, []int{}, 1)
	a.AddAt(at, "x", 1)
	require.Equal(t, uint64(1), a.Stats().Ignored)
}

// A key that does not equal itself moves no time and counts as Ignored alone,
// whenever it comes.
func TestIgnoredKeysMoveNothing(t *testing.T) {
	nan := math.NaN()
	now := time.Unix(1000, 0)
	forms := map[string]func(h *HeavyKeeper[float64], at time.Time){
		"AddAt":      func(h *HeavyKeeper[float64], at time.Time) { h.AddAt(at, nan, 7); h.AddAt(at, nan, 0) },
		"AddBatchAt": func(h *HeavyKeeper[float64], at time.Time) { h.AddBatchAt(at, []float64{nan}) },
	}
	for name, add := range forms {
		for _, seconds := range []int{0, 1, -1, -2, -3, 3, 1000, -1000} {
			for _, started := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%ds/started=%v", name, seconds, started), func(t *testing.T) {
					h := must(t, Config[float64]{K: 3, Slots: 3, Slot: time.Second, Stripes: 1})
					if started {
						h.AddAt(now, 1, 5)
					}
					stats, span, top := h.Stats(), h.SpanAt(now), h.TopAt(now, 0)
					add(h, now.Add(time.Duration(seconds)*time.Second))
					stats.Ignored = 1
					require.Equal(t, stats, h.Stats())
					require.Equal(t, span, h.SpanAt(now))
					require.Equal(t, top, h.TopAt(now, 0))
				})
			}
		}
	}
}

func TestSpanAndRate(t *testing.T) {
	h := must(t, Config[int]{K: 1, Slots: 4, Slot: 10 * time.Second, Stripes: 2})
	at := func(seconds float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(seconds * 1e9)) }
	require.Zero(t, h.SpanAt(at(0)))
	addTo(h, 0, at(13), 1, 1)
	for _, test := range []struct{ at, want float64 }{
		{13, 0}, {14, 1}, {20, 7}, {39, 26}, {43, 30}, {49, 36}, {50, 30}, {59.5, 39.5}, {60, 30}, {1e6, 30}, {1e6 + 5, 35},
		{12, 0}, {0, 0},
	} {
		require.Equal(t, time.Duration(test.want*1e9), h.SpanAt(at(test.at)), "at %v", test.at)
		_, span := h.TotalAt(at(test.at), 0)
		require.Equal(t, h.SpanAt(at(test.at)), span, "at %v", test.at)
		for slots := 1; slots <= 4; slots++ {
			present := math.Floor(max(test.at, 13) / 10) // slot
			covered := max(test.at, 10*present) - 10*(present-float64(slots-1))
			_, span := h.TotalAt(at(test.at), slots)
			require.Equal(t, min(time.Duration(covered*1e9), h.SpanAt(at(test.at))), span, "the latest %d slots at %v", slots, test.at)
		}
	}
	addTo(h, 0, at(12), 1, 1)
	require.Equal(t, 2*time.Second, h.SpanAt(at(14)), "an earlier event of the same slot")
	addTo(h, 1, at(11), 1, 1)
	require.Equal(t, 3*time.Second, h.SpanAt(at(14)), "an earlier event of the same slot, of another stripe")
	addTo(h, 1, at(9), 1, 1)
	require.Equal(t, 5*time.Second, h.SpanAt(at(14)), "an earlier event of another slot")
	addTo(h, 1, at(9.5), 1, 1)
	require.Equal(t, 5*time.Second, h.SpanAt(at(14)))
	addTo(h, 0, at(31), 1, 1)
	require.Equal(t, 30*time.Second-9*time.Second, h.SpanAt(at(14)), "the past is the beginning of the present slot")
	h.Reset()
	require.Zero(t, h.SpanAt(at(14)))

	require.Equal(t, 4.0, Rate(10, 2500*time.Millisecond))
	require.Zero(t, Rate(10, 0))
	require.Zero(t, Rate(10, -1))
}

func TestRateOfTheShortestSpan(t *testing.T) {
	require.Equal(t, 3e9, Rate(3, 1))
	require.Zero(t, Rate(3, 0))
	require.Zero(t, Rate(3, -1))
}

func TestSpanOfEndlessTimes(t *testing.T) {
	for _, slot := range []time.Duration{1, time.Second, maxSpan / 10} {
		h := must(t, Config[int]{K: 1, Slots: 10, Slot: slot, Stripes: 2})
		addTo(h, 0, time.Unix(math.MinInt64/2, 0), 1, 1)
		addTo(h, 1, time.Unix(math.MaxInt64/4, 0), 1, 1)
		for _, at := range []time.Time{{}, time.Now(), time.Unix(math.MaxInt64/2, 5)} {
			require.GreaterOrEqual(t, h.SpanAt(at), 9*slot)
			require.Less(t, h.SpanAt(at), 10*slot)
		}
	}
}

func TestStats(t *testing.T) {
	h := must(t, Config[int]{K: 2, Slots: 3, Slot: time.Second, Stripes: 2})
	require.Zero(t, h.Stats().Slot)
	at := func(second int) time.Time { return time.Unix(int64(1000+second), 0) }
	addTo(h, 0, at(0), 1, 5)
	addTo(h, 1, at(0), 1, 7)
	addTo(h, 1, at(2), 2, 1)
	addTo(h, 1, at(1), 2, 2) // late
	addTo(h, 1, at(-1), 2, 9)
	addTo(h, 0, at(4), 3, 1)
	s := h.Stats()
	require.Positive(t, s.Bytes)
	s.Bytes = 0
	require.Equal(t, Stats{
		Total: 16, Weight: 2, Late: 2, TooLate: 9, Turns: 2, Slot: 1004, Tracked: 3, Admissions: 4,
	}, s)
	h.Reset()
	s = h.Stats()
	s.Bytes = 0
	require.Zero(t, s)
}

func TestShortFormsAreNow(t *testing.T) {
	h := must(t, Config[string]{K: 2, Stripes: 1, Slot: time.Hour})
	h.Add("a")
	h.AddN("a", 2)
	h.AddAt(time.Now(), "a", 4)
	h.AddAt(time.Now().Round(0), "a", 8)
	h.AddBatch([]string{"a", "b"})
	AddBytes(h, []byte("a"), 16)
	want := heavykeeper.Estimate{Count: 32, Lower: 32, Upper: 32}
	require.Equal(t, want, h.Estimate("a"))
	require.Equal(t, heavykeeper.Item[string]{Key: "a", Estimate: want}, h.Top(1)[0])
	first := heavykeeper.Item[string]{Key: "there already"}
	require.Equal(t, append([]heavykeeper.Item[string]{first}, h.Top(2)...), h.AppendTop([]heavykeeper.Item[string]{first}, 2))
	require.Equal(t, h.Top(0), slices.Collect(h.All()))
	require.Len(t, h.Top(0), 2)
	for item := range h.All() { // ends early
		require.Equal(t, "a", item.Key)
		break
	}
	require.Equal(t, uint64(32), sum(h.Series("a")))
	require.Len(t, h.Series("nobody"), 10)
	require.Less(t, h.Span(), time.Hour)
	require.Positive(t, h.Span())
}

func TestBatchIsManyAdds(t *testing.T) {
	config := Config[uint64]{K: 10, Stripes: 1, Slot: time.Second}
	one, batch := must(t, config), must(t, config)
	keys := zipf(1, 1000, 20000, 1000, .05)
	for len(keys) > 0 {
		n := min(len(keys), 1+len(keys)%333)
		at := time.Unix(0, 0).Add(time.Duration(len(keys)%1700) * time.Millisecond * 10)
		for _, key := range keys[:n] {
			one.AddAt(at, key, 1)
		}
		batch.AddBatchAt(at, keys[:n])
		keys = keys[n:]
	}
	require.Equal(t, one.Stats(), batch.Stats())
	require.Positive(t, one.Stats().Late)
	require.Positive(t, one.Stats().TooLate)
	require.Equal(t, one.TopAt(time.Time{}, 0), batch.TopAt(time.Time{}, 0))
	batch.AddBatch(nil)
}

func TestBatchKeepsBoundaries(t *testing.T) {
	h := must(t, Config[int]{K: 1, Slots: 3, Slot: time.Second, Stripes: 1})
	for i := range 3 {
		h.AddBatchAt(time.Unix(int64(i), 0), []int{1, 1})
		h.AddBatchAt(time.Unix(int64(i+1), -1), []int{1})
	}
	require.Equal(t, []uint64{3, 3, 3}, h.SeriesAt(time.Unix(2, 0), 1))
}

func TestAppendTopKeepsWhatWasThere(t *testing.T) {
	h := must(t, Config[int]{K: 3, Stripes: 2})
	at := time.Unix(0, 0)
	for key := 1; key < 9; key++ {
		addTo(h, key%2, at, key, uint32(key))
	}
	first := heavykeeper.Item[int]{Key: -1}
	got := h.AppendTopAt([]heavykeeper.Item[int]{first}, at, 2)
	require.Equal(t, append([]heavykeeper.Item[int]{first}, h.TopAt(at, 2)...), got)
	require.Len(t, got, 3)
	require.Equal(t, 8, got[1].Key)
	require.Len(t, h.TopAt(at, 100), 3)
	require.Len(t, h.TopAt(at, -1), 3)
}

// Once the candidates are known, nothing is allocated: not by turns of the
// wheel, nor by late events.
func TestNoAllocations(t *testing.T) {
	h := must(t, Config[uint64]{K: 10, Slot: time.Millisecond, Stripes: 1})
	keys := zipf(0.5, 1000, 1<<12, 1<<12, 0)
	at, i := time.Now(), 0
	batch := keys[:100]
	dst := make([]heavykeeper.Item[uint64], 0, 100)
	allocations := testing.AllocsPerRun(10000, func() {
		i++
		h.AddAt(at.Add(time.Duration(i)*50*time.Microsecond), keys[i%len(keys)], 1)
		h.AddAt(at.Add(time.Duration(i-100)*50*time.Microsecond), keys[i%len(keys)], 1)
		if i%100 == 0 {
			h.AddBatchAt(at.Add(time.Duration(i)*50*time.Microsecond), batch)
			h.Add(5)
			h.Estimate(5)
			h.Span()
		}
	})
	require.Zero(t, allocations)
	require.Positive(t, h.Stats().Turns)
	require.Positive(t, h.Stats().Late)
	require.Zero(t, testing.AllocsPerRun(100, func() { dst = h.AppendTopAt(dst[:0], at, 0) }))
	s := must(t, Config[string]{K: 10, Stripes: 1})
	key := []byte("a key of more than thirty-two bytes, tracked")
	AddBytesAt(s, at, key, 1)
	require.Zero(t, testing.AllocsPerRun(100, func() { AddBytesAt(s, at, key, 1) }))
}

// The figure of Stats is the memory that New takes, to within the allocator's
// rounding.
func TestBytes(t *testing.T) {
	for _, config := range []Config[uint64]{
		{K: 1000, Stripes: 1}, {K: 1000, Stripes: 4}, {K: 100, Slots: 500, Stripes: 2}, {K: 5000, Slots: 1, Candidates: 5000, Stripes: 1},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h := must(t, config)
		runtime.ReadMemStats(&after)
		require.InEpsilon(t, after.TotalAlloc-before.TotalAlloc, h.Stats().Bytes, 0.05, "%+v", config)
	}
}

func TestTopIsAPrefix(t *testing.T) {
	h := must(t, Config[int]{K: 5, Stripes: 3})
	at := time.Unix(1e9, 0)
	for i := range 300 {
		addTo(h, i%3, at, i%7, uint32(1+i%7))
	}
	all := h.TopAt(at, 5)
	require.Len(t, all, 5)
	for n := 1; n <= 5; n++ {
		require.Equal(t, all[:n], h.TopAt(at, n))
	}
	for _, n := range []int{math.MinInt, -1, 0, 6, math.MaxInt} {
		require.Equal(t, all, h.TopAt(at, n))
	}
}

// The candidates that have counted most stay; of ties at the limit those that
// came first.
func TestLimitOfCandidates(t *testing.T) {
	h := must(t, Config[int]{K: 1, Candidates: 2, Stripes: 1}) // so 4
	for _, test := range []struct {
		counts []uint64
		want   []int
	}{
		{[]uint64{1, 2, 3}, []int{0, 1, 2}},
		{[]uint64{1, 2, 3, 4}, []int{0, 1, 2, 3}},
		{[]uint64{9, 1, 8, 2, 7, 6}, []int{0, 2, 4, 5}},
		{[]uint64{5, 5, 9, 5, 5, 9, 5}, []int{0, 1, 2, 5}},
		{[]uint64{5, 5, 5, 5, 5}, []int{0, 1, 2, 3}},
	} {
		var items []heavykeeper.Item[int]
		var asked []bool
		for key, count := range test.counts {
			items = append(items, heavykeeper.Item[int]{Key: key, Estimate: heavykeeper.Estimate{Count: count}})
			asked = append(asked, key%2 == 0)
		}
		kept := h.limit(items, asked)
		require.Equal(t, len(test.want), kept, "%+v", test)
		for at, key := range test.want {
			require.Equal(t, key, items[at].Key, "%+v", test)
			require.Equal(t, key%2 == 0, asked[at], "%+v", test)
		}
	}
}

// After Reset nothing is left to take an update past the beginning of time.
func TestResetForgetsTheSlot(t *testing.T) {
	h := must(t, Config[string]{K: 2, Stripes: 1})
	at := time.Now()
	for range 3 {
		for range 2 {
			h.AddAt(at, "a", 7)
		}
		require.Equal(t, heavykeeper.Estimate{Count: 14, Lower: 14, Upper: 14}, h.EstimateAt(at, "a"))
		h.Reset()
		require.Zero(t, h.EstimateAt(at, "a"))
	}
}

// The sketch fades with each slot, by as much as Upper counts on.
func TestTurnsFadeTheSketch(t *testing.T) {
	h := must(t, Config[int]{K: 2, Slots: 5, Slot: time.Second, Stripes: 1})
	at := time.Unix(100, 0)
	h.AddAt(at, 1, 1e6)
	want := 1e6
	for _, passed := range []int{1, 1, 3, 2} {
		at = at.Add(time.Duration(passed) * time.Second)
		h.AddAt(at, 2, 1)
		want *= math.Exp(-2.0 / 5 * float64(passed))
		h.stripes.With(0, func(c *counter[int]) bool {
			lower, upper := c.sketch.Bounds(1, c.sketch.Hash(1))
			require.InEpsilon(t, want, lower, 0.01)
			require.InEpsilon(t, want, upper, 0.01)
			return true
		})
	}
}

// What was known of a key before its admission leaves with the slot of that,
// whichever position of the ring this has, and however far a read looks ahead.
func TestPastLeavesReads(t *testing.T) {
	for first := range int64(5) {
		h, at := crowd(t)
		at = at.Add(time.Duration(first) * time.Second)
		for i := range 200 {
			h.AddAt(at, 1+i%20, 1)
		}
		h.AddAt(at, 500, 1000)
		require.Greater(t, h.EstimateAt(at, 500).Upper, uint64(1000))
		for turned := range 4 {
			later := at.Add(time.Duration(turned) * time.Second)
			h.AddAt(later, 500, 1)
			for ahead := range 6 {
				read := later.Add(time.Duration(ahead) * time.Second)
				counted := sum(h.SeriesAt(read, 500))
				e := h.EstimateAt(read, 500)
				require.Equal(t, turned+ahead < 5, e.Upper > counted, "first %d, turned %d, ahead %d: %+v", first, turned, ahead, e)
				if turned+ahead >= 5 {
					require.Equal(t, counted, e.Count)
				}
			}
		}
	}
}

// Bounds that are kept in half the bits are rounded outwards.
func TestRoundOutwards(t *testing.T) {
	for _, x := range []float64{0, 1, 1 << 24, 1<<24 + 1, 1<<24 + 3, 0.1, 1.0 / 3, 1e15 + 1, 1<<62 + 1<<30} {
		down, up := roundDown(x), roundUp(x)
		require.LessOrEqual(t, float64(down), x)
		require.GreaterOrEqual(t, float64(up), x)
		if float64(float32(x)) == x {
			require.Equal(t, down, up)
			require.Equal(t, x, float64(up))
			continue
		}
		require.Equal(t, up, math.Nextafter32(down, float32(math.Inf(1))), "%v", x)
	}
}

// What came before all keys were lost to a gap does not lessen what is certain
// of those that came after.
func TestGapMakesTheWindowWhole(t *testing.T) {
	h, at := crowd(t)
	for range 3 {
		at = at.Add(time.Hour)
		for i := range 200 {
			h.AddAt(at, 1+i%20, 1)
		}
		h.stripes.With(0, func(c *counter[int]) bool {
			require.Equal(t, c.wheel.number, c.oldest)
			require.True(t, c.view(c.wheel.number).whole)
			return true
		})
	}
}

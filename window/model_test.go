package window

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// model counts the events of a window exactly, by the rules that HeavyKeeper
// documents. Which events are too late is up to the stripe that they come to.
type model struct {
	slots   int64
	present []int64 // by stripe, none before the first event
	counts  map[int64]map[int]uint64
	keys    map[int]bool
	total   uint64
	late    uint64
	tooLate uint64
}

func newModel(slots, stripes int) *model {
	m := &model{slots: int64(slots), counts: map[int64]map[int]uint64{}, keys: map[int]bool{}}
	for range stripes {
		m.present = append(m.present, none)
	}
	return m
}

func (m *model) add(stripe int, slot int64, key int, n uint32) {
	present := &m.present[stripe]
	*present = max(*present, slot)
	for at := range m.counts {
		if at <= m.latest()-m.slots {
			delete(m.counts, at) // no window holds it any more
		}
	}
	m.keys[key] = true
	switch behind := *present - slot; {
	case behind >= m.slots:
		m.tooLate += uint64(n)
		return
	case behind > 0:
		m.late += uint64(n)
	}
	if m.counts[slot] == nil {
		m.counts[slot] = map[int]uint64{}
	}
	m.counts[slot][key] += uint64(n)
	m.total += uint64(n)
}

// latest returns the latest slot of all stripes.
func (m *model) latest() int64 {
	latest := int64(none)
	for _, present := range m.present {
		latest = max(latest, present)
	}
	return latest
}

// weight returns the number of events in the window.
func (m *model) weight() uint64 {
	total := uint64(0)
	for slot, counts := range m.counts {
		if m.latest()-slot < m.slots {
			for _, n := range counts {
				total += n
			}
		}
	}
	return total
}

// series returns the counts of key in the window that ends with slot.
func (m *model) series(key int, slot int64) []uint64 {
	series := make([]uint64, m.slots)
	for at, counts := range m.counts {
		if i := at - slot + m.slots - 1; i >= 0 && i < m.slots {
			series[i] = counts[key]
		}
	}
	return series
}

func sum(series []uint64) uint64 {
	total := uint64(0)
	for _, n := range series {
		total += n
	}
	return total
}

// check requires that what h says of every key at time t, in a slot that is not
// before any other, is true.
func (m *model) check(t require.TestingT, h *HeavyKeeper[int], at time.Time, slot int64) {
	for _, slots := range []int64{1, 2, m.slots} {
		want := uint64(0)
		for key := range m.keys {
			want += sum(m.series(key, slot)[max(m.slots-slots, 0):])
		}
		got, _ := h.TotalAt(at, int(slots))
		require.Equal(t, want, got, "events of all keys in the latest %d slots", slots)
	}
	for key := range m.keys {
		want := m.series(key, slot)
		truth, e := sum(want), h.EstimateAt(at, key)
		if e.Lower > truth || e.Upper < truth || e.Count < e.Lower || e.Count > e.Upper {
			require.Failf(t, "bounds", "key %d has %d events, got %+v", key, truth, e)
		}
		got := h.SeriesAt(at, key)
		exact := e.Lower == e.Upper && sum(got) == e.Lower
		if len(got) != len(want) || sum(got) > e.Lower || exact && !slices.Equal(got, want) {
			require.Failf(t, "series", "key %d: got %v, want %v, %+v", key, got, want, e)
		}
		for i := range got {
			if got[i] > want[i] {
				require.Failf(t, "series", "key %d: got %v, want %v", key, got, want)
			}
		}
	}
}

// checkTop requires that the list is in order and says what EstimateAt does.
func checkTop(t require.TestingT, h *HeavyKeeper[int], at time.Time) {
	top := h.TopAt(at, 0)
	require.LessOrEqual(t, len(top), h.config.K)
	for i, item := range top {
		require.Positive(t, item.Count)
		require.Equal(t, h.EstimateAt(at, item.Key), item.Estimate, "key %d", item.Key)
		if i > 0 {
			require.True(t, top[i-1].Count > item.Count || top[i-1].Count == item.Count && top[i-1].Key < item.Key,
				"%v before %v", top[i-1], item)
		}
	}
}

// epoch is the beginning of a slot of whatever whole number of seconds.
var epoch = time.Unix(0, 0)

// program is a random stream of events.
type program struct {
	config Config[int]
	keys   int
	skew   float64
	heavy  bool    // weights up to 2^32-1
	jitter int     // events may come this many slots out of order
	turn   float64 // probability of time moving on
	steps  int
}

func (p program) String() string {
	c := p.config
	return fmt.Sprintf("K=%d candidates=%d rows=%d width=%d slots=%d stripes=%d keys=%d heavy=%v jitter=%d",
		c.K, c.Candidates, c.Rows, c.Width, c.Slots, c.Stripes, p.keys, p.heavy, p.jitter)
}

func (p program) run(t *testing.T, r *rand.Rand) {
	h, err := New(p.config)
	require.NoError(t, err)
	m := newModel(p.config.Slots, p.config.Stripes)
	slot := r.Int64N(1000) - 500
	time := func(slot int64) time.Time {
		return epoch.Add(time.Duration(slot) * h.config.Slot).Add(time.Duration(r.Int64N(int64(h.config.Slot))))
	}
	for step := range p.steps {
		if r.Float64() < p.turn {
			slot++
			if r.IntN(6) == 0 {
				slot += r.Int64N(2 * int64(p.config.Slots))
			}
		}
		key, n := int(float64(p.keys)*math.Pow(r.Float64(), p.skew)), uint32(1)
		switch {
		case p.heavy && r.IntN(8) == 0:
			n = r.Uint32() >> r.IntN(32)
		case r.IntN(4) == 0:
			n = 1 + r.Uint32N(20)
		}
		event, stripe := slot, r.IntN(p.config.Stripes)
		if p.jitter > 0 && r.IntN(3) == 0 {
			event -= r.Int64N(int64(p.jitter) + 1)
		}
		addTo(h, stripe, time(event), key, n)
		if n > 0 {
			m.add(stripe, event, key, n)
		}
		if m.latest() == none {
			continue
		}
		m.check(t, h, time(m.latest()), m.latest())
		if step%16 == 0 {
			ahead := m.latest() + r.Int64N(int64(p.config.Slots)+2)
			m.check(t, h, time(ahead), ahead)
			checkTop(t, h, time(ahead))
			s := h.Stats()
			require.Equal(t, []uint64{m.total, m.late, m.tooLate}, []uint64{s.Total, s.Late, s.TooLate})
			require.Equal(t, m.latest(), s.Slot)
			require.Equal(t, m.weight(), s.Weight)
		}
	}
}

// addTo counts an event in a stripe of the test's choice.
func addTo[K comparable](h *HeavyKeeper[K], stripe int, t time.Time, key K, n uint32) {
	if n == 0 {
		return
	}
	h.stripes.With(stripe, func(c *counter[K]) bool {
		h.count(c, t, h.grid.since(t), key, h.keys.Hash(key), n)
		return true
	})
}

func TestRandomProgramsKeepBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	runs := 200
	if testing.Short() {
		runs = 50
	}
	for i := range runs {
		p := program{
			config: Config[int]{
				K:       1 + r.IntN(3),
				Rows:    1 + r.IntN(4),
				Width:   1 + r.IntN(8),
				Slots:   []int{1, 2, 3, 5, 10, 30}[r.IntN(6)],
				Slot:    []time.Duration{1, time.Microsecond, time.Second, time.Hour}[r.IntN(4)],
				Stripes: []int{1, 1, 2, 3}[r.IntN(4)],
				Seed:    r.Uint64(),
			},
			keys:   1 + r.IntN(25),
			skew:   1 + 3*r.Float64(),
			heavy:  i%4 == 0,
			jitter: []int{0, 1, 4, 40}[r.IntN(4)],
			turn:   0.02 + 0.3*r.Float64(),
			steps:  250,
		}
		p.config.Candidates = p.config.K + r.IntN(4)
		t.Run(p.String(), func(t *testing.T) { p.run(t, r) })
	}
}

package hotspot

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
)

// exactSource is a Source that can do no more than it must, and knows nothing
// from above.
type exactSource struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func (s *exactSource) Add(key string) { s.AddN(key, 1) }

func (s *exactSource) AddN(key string, n uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[string]uint64)
	}
	s.counts[key] += uint64(n)
}

func (s *exactSource) Estimate(key string) heavykeeper.Estimate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return heavykeeper.Estimate{Count: s.counts[key], Lower: s.counts[key], Upper: unbounded}
}

func (s *exactSource) Top(int) []heavykeeper.Item[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []heavykeeper.Item[string]
	for key, n := range s.counts {
		items = append(items, heavykeeper.Item[string]{Key: key, Estimate: heavykeeper.Estimate{Count: n, Lower: n, Upper: unbounded}})
	}
	return items
}

// fadingSource fades, but does not say by how much.
type fadingSource struct {
	exactSource
	fades int
}

func (s *fadingSource) Fade() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fades++
	for key := range s.counts {
		s.counts[key] /= 2
	}
}

// looseSource knows some estimates and counts nothing.
type looseSource struct {
	exactSource
	known map[string]heavykeeper.Estimate
}

func (s *looseSource) Top(int) []heavykeeper.Item[string] {
	var items []heavykeeper.Item[string]
	for key, e := range s.known {
		items = append(items, heavykeeper.Item[string]{Key: key, Estimate: e})
	}
	return items
}

// A key that comes at a steady rate has that rate in a source that fades, from
// the first scan on, and one that stops cools down.
func TestFading(t *testing.T) {
	h, err := heavykeeper.New(heavykeeper.Config[string]{K: 10, Alpha: 0.2, Stripes: 1})
	require.NoError(t, err)
	d := must(t, Config[string]{Source: h, Rate: 50, Slot: 2 * time.Second})
	for i := range 30 {
		d.ObserveAt(second(float64(i)), "steady", 100)
		d.ObserveAt(second(float64(i)), "slow", 10)
		if i >= 20 {
			d.ObserveAt(second(float64(i)), "new", 100)
		}
		if i%2 == 1 {
			change := d.ScanAt(second(float64(i + 1)))
			require.InDelta(t, 100, change.Hot[0].Rate, 2, "at %d", i)
			hot, ok := d.Set().Find("steady")
			require.True(t, ok)
			require.InDelta(t, hot.Share*float64(change.Total), hot.Count, 1)
			if i < 20 {
				require.InDelta(t, 100.0/110, hot.Share, 0.01)
			}
		}
	}
	require.True(t, d.Hot("new"))
	require.False(t, d.Hot("slow"))
	// A fifth of the counts goes with each slot, and a fifth of the time.
	change := d.ScanAt(second(36))
	require.InDelta(t, 8, change.Span.Seconds(), 0.5, "2 s x 0.8 / 0.2")
	require.Equal(t, []string{"new"}, names(change.Left), "54 %, and half of that after 6 s")
	change = d.ScanAt(second(1e6))
	require.Zero(t, change.Total, "one scan after a long night")
	require.Empty(t, change.Hot)
	require.InDelta(t, 8, change.Span.Seconds(), 0.5)
}

// Explicit times: one fade for each slot that has passed, none when the clock
// steps back, and no more than 1024 in a row.
func TestFades(t *testing.T) {
	source := new(fadingSource)
	d := must(t, Config[string]{Source: source, Threshold: 1, Slot: time.Second})
	d.ObserveAt(second(0.5), "a", 1<<20)
	for _, step := range []struct {
		at    float64
		fades int
	}{
		{0.5, 0}, {1.4, 0}, {1.5, 1}, {1.5, 1}, {2.4, 1}, {4.6, 4}, {4, 4}, {4.9, 4}, {5, 5}, {1, 5}, {2, 6}, {1e7, 6 + maxFades}, {1e7 + 1, 7 + maxFades},
	} {
		d.ScanAt(second(step.at))
		require.Equal(t, step.fades, source.fades, "at %v", step.at)
	}
}

// A source that forgets nothing measures all time since its first update.
func TestAllTime(t *testing.T) {
	h, err := heavykeeper.New(heavykeeper.Config[string]{K: 10})
	require.NoError(t, err)
	require.Equal(t, 1.0, h.FadeFactor())
	for _, source := range []Source[string]{h, new(exactSource)} {
		d := must(t, Config[string]{Source: source, Rate: 5, Slot: time.Second})
		d.ObserveAt(second(0), "a", 50)
		d.ObserveAt(second(4), "b", 10)
		change := d.ScanAt(second(10))
		require.Equal(t, 10*time.Second, change.Span)
		require.Equal(t, []string{"a"}, names(change.Hot))
		require.InDelta(t, 5, change.Hot[0].Rate, 1e-9)
		change = d.ScanAt(second(20))
		require.Equal(t, []string{"a"}, names(change.Left))
		require.InDelta(t, 2.5, change.Left[0].Rate, 1e-9)
	}
}

// Centuries are more than a Duration has. Spans are as long as there are, and
// nothing becomes hot by them.
func TestCenturies(t *testing.T) {
	plain, err := heavykeeper.New(heavykeeper.Config[string]{K: 10})
	require.NoError(t, err)
	fading, err := heavykeeper.New(heavykeeper.Config[string]{K: 10, Alpha: 0.5, Stripes: 1})
	require.NoError(t, err)
	for i, source := range []Source[string]{plain, fading, new(exactSource), &fadingSource{}, &fadingSource{}} {
		config := Config[string]{Source: source, Threshold: 1, Rate: 40, Slot: time.Second}
		if i == 4 {
			config.Slot = math.MaxInt64
		}
		if _, ok := source.(*fadingSource); ok {
			config.Rate = 0 // it does not tell its factor
		}
		d := must(t, config)
		d.ObserveAt(time.Time{}, "a", 50)
		for i := range 4 {
			d.ObserveAt(start, "b", 1)
			change := d.ScanAt(second(float64(i)))
			require.Positive(t, change.Span, "%T", source)
			if config.Rate > 0 {
				require.Empty(t, change.Hot, "%T", source)
			}
			for _, key := range change.Hot {
				require.GreaterOrEqual(t, key.Rate, 0.0)
			}
		}
	}
}

// Observe starts the clock of a source without a window, too.
func TestAllTimeNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := must(t, Config[string]{Source: new(exactSource), Rate: 5, Slot: time.Second})
		time.Sleep(time.Hour)
		d.ObserveN("a", 50)
		time.Sleep(10 * time.Second)
		require.Equal(t, 10*time.Second, d.Scan().Span)
		require.True(t, d.Hot("a"))
	})
}

// seriesSource is a window that knows one series.
type seriesSource struct {
	Window[string]
	series []uint64
}

func (s seriesSource) SeriesAt(time.Time, string) []uint64 { return s.series }

// What is known of the latest slots: the occurrences in older ones are none of
// them, and those that may have been in any slot may have been in these.
func TestRecent(t *testing.T) {
	r := reader[string]{window: seriesSource{series: []uint64{1, 2, 4, 8}}}
	for _, test := range []struct {
		slots       int
		upper       uint64 // of the whole window
		lower, want uint64
	}{
		{1, 15, 8, 8}, {2, 15, 12, 12}, {4, 15, 15, 15}, {9, 15, 15, 15},
		{1, 20, 8, 13}, {3, 20, 14, 19}, {4, 20, 15, 20},
		{1, unbounded, 8, unbounded}, {4, unbounded, 15, unbounded},
		{2, 3, 12, 12}, {2, 2, 12, 12}, // the series was read later, and has more
	} {
		got := r.recent(start, "", test.slots, heavykeeper.Estimate{Upper: test.upper})
		require.Equal(t, heavykeeper.Estimate{Count: test.lower, Lower: test.lower, Upper: test.want}, got, "%+v", test)
	}
}

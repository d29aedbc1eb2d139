package hotspot

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func mustGroup(t testing.TB, config GroupConfig[string]) *Group[string] {
	t.Helper()
	g, err := NewGroup(config)
	require.NoError(t, err)
	return g
}

// in returns a detector of a group, which must have a place for it.
func in(t testing.TB, g *Group[string], name string) *Detector[string] {
	t.Helper()
	d, err := g.Detector(name)
	require.NoError(t, err)
	return d
}

func groupNames(g *Group[string]) []string {
	return slices.Sorted(maps.Keys(maps.Collect(g.All())))
}

func TestGroupConfig(t *testing.T) {
	source := func(_ string, c Config[string]) (Config[string], error) {
		c.Source = new(exactSource)
		return c, nil
	}
	good := Config[string]{Threshold: 1}
	for _, test := range []struct {
		config GroupConfig[string]
		want   string
	}{
		{GroupConfig[string]{Config: good}, ""},
		{GroupConfig[string]{Config: good, Configure: source}, ""},
		{GroupConfig[string]{}, "hotspot: Threshold, Rate and Share = 0: one of them must be set"},
		{GroupConfig[string]{Configure: source}, "hotspot: Threshold, Rate and Share = 0: one of them must be set"},
		{GroupConfig[string]{Config: good, Max: -1}, "hotspot: Max = -1: must be positive"},
		{GroupConfig[string]{Config: good, Idle: -1}, "hotspot: Idle = -1ns: must not be negative"},
		{GroupConfig[string]{Config: Config[string]{Threshold: 1, Source: new(exactSource)}}, "hotspot: Source: cannot be shared"},
		{GroupConfig[string]{Config: Config[string]{Threshold: 1, Rules: []Rule{{Window: 1 << 16}}}, Configure: source}, ""}, // one may have so many
		{GroupConfig[string]{Config: Config[string]{Threshold: 1, Rules: []Rule{{Name: "x", Match: Regexp, Pattern: "("}}}, Configure: source}, `hotspot: rule 1 ("x"): Pattern = "("`},
		{GroupConfig[string]{Config: Config[string]{Threshold: 1, Slots: -3}}, "hotspot: Slots = -3: must be positive"},
		{GroupConfig[string]{Config: Config[string]{Threshold: 1, Rules: []Rule{{Window: -1}}}}, `hotspot: rule 1 (""): Window = -1`},
	} {
		g, err := NewGroup(test.config)
		if test.want == "" {
			require.NoError(t, err)
			require.NotNil(t, g)
			continue
		}
		require.ErrorContains(t, err, test.want)
		require.Nil(t, g)
	}
}

func TestGroup(t *testing.T) {
	g := mustGroup(t, GroupConfig[string]{Config: Config[string]{Threshold: 10}, Max: 3, Idle: 10 * time.Second})
	shop := in(t, g, "shop")
	require.Same(t, shop, in(t, g, "shop"))
	shop.ObserveAt(start, "a", 10)
	in(t, g, "").ObserveAt(start, "a", 9)
	in(t, g, "search").ObserveAt(start, "b", 20)
	_, err := g.Detector("one more")
	require.ErrorIs(t, err, ErrGroupFull)
	require.EqualError(t, err, "hotspot: the group is full: 3 detectors")
	require.Equal(t, []string{"", "search", "shop"}, groupNames(g))

	hot := map[string][]string{}
	var order []string
	g.ScanAt(start, func(name string, c Change[string]) {
		hot[name] = names(c.Hot)
		order = append(order, name)
	})
	require.Equal(t, map[string][]string{"": {}, "shop": {"a"}, "search": {"b"}}, hot)
	require.Equal(t, []string{"", "search", "shop"}, order)

	s := g.Stats()
	require.Equal(t, []uint64{39, 3, 2}, []uint64{s.Observed, s.Scans, s.Entered})
	require.Equal(t, []int{3, 2}, []int{s.Detectors, s.Hot})
	require.Equal(t, []uint64{3, 0, 1}, []uint64{s.Made, s.Dropped, s.Refused})

	// shop observes through a kept pointer, search is asked for, "" is idle.
	g.ScanAt(second(5), nil)
	shop.ObserveAt(second(6), "a", 1)
	in(t, g, "search")
	g.ScanAt(second(9), nil)
	require.Equal(t, 3, g.Stats().Detectors)
	g.ScanAt(second(10), nil)
	require.Equal(t, []string{"search", "shop"}, groupNames(g))
	require.Equal(t, uint64(40), g.Stats().Observed, "totals outlive a detector")
	require.Equal(t, uint64(1), g.Stats().Dropped)
	g.ScanAt(second(18.9), nil)
	require.Equal(t, 2, g.Stats().Detectors)
	g.ScanAt(second(19), nil)
	require.Zero(t, g.Stats().Detectors)
	require.Equal(t, uint64(40), g.Stats().Observed)
	require.Zero(t, g.Stats().Hot)

	// A name that comes back starts anew.
	again := in(t, g, "shop")
	require.NotSame(t, shop, again)
	require.False(t, again.Hot("a"))
	require.True(t, g.Drop("shop"))
	require.False(t, g.Drop("shop"))
	require.Empty(t, groupNames(g))
}

func TestGroupClockBack(t *testing.T) {
	g := mustGroup(t, GroupConfig[string]{Config: Config[string]{Threshold: 10}, Idle: 10 * time.Second})
	in(t, g, "a")
	for _, step := range []struct {
		at   float64
		left int
	}{{1000, 1}, {1009, 1}, {5, 1}, {14, 1}, {15, 0}} {
		g.ScanAt(second(step.at), nil)
		require.Equal(t, step.left, g.Stats().Detectors, "at %v", step.at)
	}
}

// A group's Detectors can differ in anything.
func TestGroupConfigure(t *testing.T) {
	broken := errors.New("broken")
	made := map[string]*exactSource{}
	g := mustGroup(t, GroupConfig[string]{
		Config: Config[string]{Threshold: 5, Slot: time.Second, Rules: []Rule{{Action: Allow, Pattern: "free"}}},
		Configure: func(name string, c Config[string]) (Config[string], error) {
			switch name {
			case "bad":
				return c, broken
			case "none":
				c.Threshold = 0
			case "easy":
				c.Threshold = 3
				c.Rules = append(c.Rules, Rule{Action: Allow, Pattern: "own"})
			case "x", "y":
				made[name] = new(exactSource)
				c.Source = made[name]
			}
			return c, nil
		},
	})
	_, err := g.Detector("bad")
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, `hotspot: configuration of "bad": broken`)
	_, err = g.Detector("none")
	require.EqualError(t, err, "hotspot: Threshold, Rate and Share = 0: one of them must be set")
	in(t, g, "x").ObserveN("k", 3)
	in(t, g, "y").ObserveN("k", 4)
	require.Equal(t, uint64(3), made["x"].counts["k"])
	require.Equal(t, uint64(4), made["y"].counts["k"])
	require.Equal(t, 2, g.Stats().Detectors, "a failure takes no place")

	in(t, g, "easy").ObserveAt(start, "k", 3)
	in(t, g, "plain").ObserveAt(start, "k", 3)
	g.ScanAt(start, nil)
	require.True(t, in(t, g, "easy").Hot("k"))
	require.False(t, in(t, g, "plain").Hot("k"))
	require.True(t, in(t, g, "easy").Hot("own"))
	require.False(t, in(t, g, "plain").Hot("own"))
	require.True(t, in(t, g, "x").Hot("free"), "the group's rules")

	// Rules that one of the sources cannot have are in force for none.
	require.ErrorContains(t, g.SetRules([]Rule{{Action: Deny, Pattern: "k"}, {Name: "w", Window: 1}}), `hotspot: rule 2 ("w")`)
	require.True(t, in(t, g, "x").set.Load().verdict("k") != denied)
	require.NoError(t, g.SetRules(nil))
	g.ScanAt(start, nil)
	require.False(t, in(t, g, "easy").Hot("own"))
}

// Rules that no Detector could have are refused while there is none yet.
func TestGroupRulesOfNone(t *testing.T) {
	for _, configure := range []func(string, Config[string]) (Config[string], error){
		nil, func(_ string, c Config[string]) (Config[string], error) { return c, nil },
	} {
		g := mustGroup(t, GroupConfig[string]{Config: Config[string]{Threshold: 1}, Configure: configure})
		for _, bad := range []Rule{{Name: "bad", Match: 9}, {Name: "bad", Match: Regexp, Pattern: "("}, {Name: "bad", Rate: -1}} {
			require.ErrorContains(t, g.SetRules([]Rule{{Action: Deny, Pattern: "k"}, bad}), `hotspot: rule 2 ("bad")`)
		}
		require.False(t, in(t, g, "a").Observe("k"))
		require.Zero(t, in(t, g, "a").Stats().Denied, "all or nothing")
	}
}

// Only the Detector that was idle is dropped, not one that has come in its place.
func TestGroupDropsTheIdleOne(t *testing.T) {
	g := mustGroup(t, GroupConfig[string]{Config: Config[string]{Threshold: 1}, Idle: time.Second})
	in(t, g, "a")
	g.ScanAt(start, nil)
	var fresh *Detector[string]
	g.ScanAt(second(10), func(name string, c Change[string]) {
		require.True(t, g.Drop("a"))
		fresh = in(t, g, "a")
	})
	require.True(t, fresh == in(t, g, "a"), "the other was dropped")
	require.Equal(t, uint64(1), g.Stats().Dropped)
}

// A scan that waits for another is of the time at which it begins.
func TestGroupScanWaits(t *testing.T) {
	g := mustGroup(t, GroupConfig[string]{Config: Config[string]{Threshold: 1}})
	in(t, g, "a")
	under, proceed, done := make(chan bool), make(chan bool), make(chan time.Time)
	go g.Scan(func(string, Change[string]) {
		under <- true
		<-proceed
	})
	<-under
	go g.Scan(func(_ string, c Change[string]) { done <- c.At })
	time.Sleep(10 * time.Millisecond) // it waits by now, in all likelihood
	first := time.Now()
	proceed <- true
	require.False(t, (<-done).Before(first), "the time of the call")
}

func TestGroupRules(t *testing.T) {
	g := mustGroup(t, GroupConfig[string]{Config: Config[string]{Threshold: 1}})
	require.ErrorContains(t, g.SetRules([]Rule{{Name: "bad", Match: 9}}), `hotspot: rule 1 ("bad"): Match = 9`)
	a := in(t, g, "a")
	list := []Rule{{Action: Allow, Pattern: "free"}}
	require.NoError(t, g.SetRules(list))
	list[0].Pattern = "other"
	require.True(t, a.Hot("free"))
	require.True(t, in(t, g, "b").Hot("free"), "one to come")
	require.ErrorContains(t, g.SetRules([]Rule{{Action: Deny, Pattern: "free"}, {Name: "bad", TTL: -1}}), `hotspot: rule 2 ("bad")`)
	require.True(t, a.Hot("free"), "all or nothing")
	require.True(t, in(t, g, "c").Hot("free"))
}

// Many ask for many names, scans drop them, and the bound holds throughout.
func TestGroupConcurrentUse(t *testing.T) {
	g := mustGroup(t, GroupConfig[string]{Config: Config[string]{Threshold: 1, TopN: 2}, Max: 5, Idle: time.Second})
	var wg sync.WaitGroup
	var refused, observed sync.Map
	for w := range 4 {
		wg.Go(func() {
			full, seen := uint64(0), uint64(0)
			for i := range 500 {
				d, err := g.Detector(fmt.Sprint("tenant", (i*(w+1))%9))
				if err != nil {
					if !errors.Is(err, ErrGroupFull) {
						t.Error(err)
					}
					full++
					continue
				}
				d.Observe("k")
				seen++
			}
			refused.Store(w, full)
			observed.Store(w, seen)
		})
	}
	wg.Go(func() {
		for i := range 30 {
			g.ScanAt(second(float64(i)), nil)
			if n := len(groupNames(g)); n > 5 {
				t.Errorf("got %d detectors, want 5 at most", n)
			}
		}
	})
	wg.Wait()
	s := g.Stats()
	sum := func(m *sync.Map) (n uint64) {
		m.Range(func(_, v any) bool { n += v.(uint64); return true })
		return n
	}
	require.Equal(t, sum(&refused), s.Refused)
	require.LessOrEqual(t, s.Observed, sum(&observed), "more than was observed") // one may be dropped between the two
	require.Equal(t, s.Made-s.Dropped, uint64(s.Detectors))
}

func TestGroupRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := mustGroup(t, GroupConfig[string]{Config: Config[string]{Threshold: 1, Slot: time.Second}, Idle: 3 * time.Second})
		in(t, g, "a").Observe("k")
		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		scans := 0
		require.ErrorIs(t, g.Run(ctx, func(name string, c Change[string]) { scans++ }), context.DeadlineExceeded)
		require.Equal(t, 4, scans, "at 1, 2, 3 and 4 s, when it has been idle for 3")
		require.Zero(t, g.Stats().Detectors)
	})
}

func TestStats(t *testing.T) {
	d := must(t, Config[string]{Threshold: 10, Rules: []Rule{{Action: Deny, Pattern: "no"}}})
	require.Zero(t, d.Stats().Coverage())
	d.ObserveAt(start, "a", 10)
	d.ScanAt(start)
	d.ObserveAt(start, "a", 30)
	d.ObserveAt(start, "b", 5)
	d.ObserveAt(start, "no", 55)
	d.ScanAt(second(1))
	d.ScanAt(second(100))
	s := d.Stats()
	require.Positive(t, s.ScanTime)
	s.ScanTime = 0
	want := Stats{Observed: 100, Hits: 30, Denied: 55, Scans: 3, LastScan: second(100), Hot: 0, Entered: 1, Left: 1}
	require.Equal(t, want, s)
	require.Equal(t, 0.3, s.Coverage())

	var v expvar.Var = d
	var got struct {
		Observed, Hits uint64
		Coverage       float64
		LastScan       time.Time
	}
	require.NoError(t, json.Unmarshal([]byte(v.String()), &got), v.String())
	require.Equal(t, uint64(100), got.Observed)
	require.Equal(t, uint64(30), got.Hits)
	require.Equal(t, 0.3, got.Coverage)
	require.Equal(t, second(100), got.LastScan)
	d.ScanAt(time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC))
	require.True(t, json.Valid([]byte(v.String())), v.String())

	g := mustGroup(t, GroupConfig[string]{Config: Config[string]{Threshold: 1}})
	in(t, g, "x").ObserveN("k", 7)
	v = g
	var totals struct {
		Detectors int
		Observed  uint64
	}
	require.NoError(t, json.Unmarshal([]byte(v.String()), &totals), v.String())
	require.Equal(t, 1, totals.Detectors)
	require.Equal(t, uint64(7), totals.Observed)
}

// Stats never tells more hits than occurrences, whenever it is asked.
func TestStatsAddUp(t *testing.T) {
	d := must(t, Config[string]{Threshold: 1, Rules: []Rule{{Action: Allow, Pattern: "hot"}, {Action: Deny, Pattern: "no"}}})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				d.Observe("hot")
				d.Observe("no")
			}
		}
	})
	for range 20_000 {
		if s := d.Stats(); s.Hits+s.Denied > s.Observed {
			t.Errorf("got %d hits and %d denied of %d", s.Hits, s.Denied, s.Observed)
			break
		}
	}
	close(stop)
	wg.Wait()
}

func TestTally(t *testing.T) {
	tally := newTally()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				tally.add(cold, 1)
				tally.add(allowed, 2)
				tally.add(denied, 1<<31)
			}
		})
	}
	wg.Wait()
	require.Equal(t, []uint64{8000, 16000, 8000 << 31}, []uint64{tally.sum(cold), tally.sum(allowed), tally.sum(denied)})
}

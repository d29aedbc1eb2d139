package hotspot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func must[K comparable](t testing.TB, config Config[K]) *Detector[K] {
	t.Helper()
	d, err := New(config)
	require.NoError(t, err)
	return d
}

func names[K comparable](list []HotKey[K]) []K {
	keys := make([]K, 0, len(list))
	for _, k := range list {
		keys = append(keys, k.Key)
	}
	return keys
}

func TestDetector(t *testing.T) {
	d := must(t, Config[string]{Threshold: 100})
	require.False(t, d.Hot("a"))
	require.False(t, d.ObserveAt(start, "a", 99))
	d.ObserveAt(start, "b", 1)
	require.Empty(t, d.ScanAt(start.Add(time.Second)).Hot)
	require.False(t, d.ObserveAt(start.Add(time.Second), "a", 1))
	require.False(t, d.Hot("a"), "before the scan")

	change := d.ScanAt(start.Add(2 * time.Second))
	require.Equal(t, []string{"a"}, names(change.Hot))
	require.Equal(t, []string{"a"}, names(change.Entered))
	require.Empty(t, change.Left)
	require.Equal(t, uint64(101), change.Total)
	require.Equal(t, 2*time.Second, change.Span)
	require.True(t, d.Hot("a"))
	require.False(t, d.Hot("b"))
	require.True(t, d.ObserveAt(start.Add(2*time.Second), "a", 1))

	change = d.ScanAt(start.Add(time.Hour))
	require.Equal(t, []string{"a"}, names(change.Left))
	require.Empty(t, change.Hot)
	require.False(t, d.Hot("a"))
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

func second(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Second))) }

// The whole way through, with the window's bounds and rates.
func TestHotKey(t *testing.T) {
	d := must(t, Config[string]{Threshold: 50, Slots: 5, Slot: 2 * time.Second})
	for i := range 4 {
		d.ObserveAt(second(float64(i)), "a", 30)
		d.ObserveAt(second(float64(i)), "b", 10)
	}
	change := d.ScanAt(second(4))
	want := HotKey[string]{
		Key: "a", Estimate: heavykeeper.Estimate{Count: 120, Lower: 120, Upper: 120},
		Rank: 1, Rate: 30, Share: 0.75, Certain: true, Since: second(4),
	}
	require.Equal(t, []HotKey[string]{want}, change.Hot)
	require.Equal(t, change.Hot, change.Entered)
	require.Equal(t, second(4), change.At)
	require.Equal(t, uint64(160), change.Total)
	require.Equal(t, 4*time.Second, change.Span)
	require.Equal(t, second(4), d.Set().At())
	require.Equal(t, 1, d.Set().Len())
	got, ok := d.Set().Find("a")
	require.True(t, ok)
	require.Equal(t, want, got)
	_, ok = d.Set().Find("b")
	require.False(t, ok)

	// What is handed out is not what is published.
	change.Hot[0].Key, change.Entered[0].Key = "x", "y"
	d.Set().Keys()[0].Key = "z"
	require.True(t, d.Hot("a"))
	require.Equal(t, []string{"a"}, names(d.Set().Keys()))

	// It leaves with its slots, and the outcome tells how it stands then.
	old := d.Set()
	d.ObserveAt(second(11), "b", 1)
	change = d.ScanAt(second(11)) // slots 1 and the beginning have left: 60 of a remain
	require.Equal(t, []string{"a"}, names(change.Hot))
	require.Empty(t, change.Entered)
	change = d.ScanAt(second(12.5))
	require.Equal(t, []string{"a"}, names(change.Left))
	require.Zero(t, change.Left[0].Count)
	require.Equal(t, second(4), change.Left[0].Since)
	require.Equal(t, []string{"a"}, names(old.Keys()), "a set does not change")
}

func TestScanAtTheSameTime(t *testing.T) {
	d := must(t, Config[string]{Threshold: 10, EnterAfter: 2})
	d.ObserveAt(start, "a", 10)
	require.Empty(t, d.ScanAt(start).Hot)
	require.Empty(t, d.ScanAt(start).Hot, "not two scans in a row")
	require.Equal(t, []string{"a"}, names(d.ScanAt(second(1)).Entered))
	again := d.ScanAt(second(1))
	require.Empty(t, again.Entered)
	require.Empty(t, again.Left)
	require.Equal(t, []string{"a"}, names(again.Hot))
}

func TestClockBack(t *testing.T) {
	d := must(t, Config[string]{Threshold: 10, MinStay: time.Minute})
	d.ObserveAt(second(3600), "a", 10)
	require.Equal(t, []string{"a"}, names(d.ScanAt(second(3600)).Entered))
	for _, at := range []float64{0, 30, 59} {
		d.ObserveAt(second(at), "b", 100) // too late for the window, which stands still
		change := d.ScanAt(second(at))
		require.Equal(t, []string{"a"}, names(change.Hot), "at %v", at)
		require.Empty(t, change.Entered)
		require.Equal(t, start, change.Hot[0].Since)
	}
	// The window goes on when the clock is back where it was.
	d.ObserveAt(second(3700), "b", 100)
	change := d.ScanAt(second(3700))
	require.Equal(t, []string{"b"}, names(change.Hot))
	require.Equal(t, []string{"a"}, names(change.Left))
}

// In the first slot of all, a rate is as if all of it had been.
func TestEarlyRate(t *testing.T) {
	d := must(t, Config[string]{Rate: 10, Slot: 2 * time.Second})
	d.ObserveAt(second(0), "few", 3)
	d.ObserveAt(second(0), "many", 20)
	change := d.ScanAt(second(0.01))
	require.Equal(t, []string{"many"}, names(change.Hot), "20 in a slot of 2 s are 10 a second")
	require.InDelta(t, 2000, change.Hot[0].Rate, 1e-6, "what was measured is told")
	d.ObserveAt(second(2.5), "few", 22)
	require.Equal(t, []string{"few"}, names(d.ScanAt(second(2.5)).Entered))
	require.Equal(t, []string{"few"}, names(d.ScanAt(second(3)).Hot), "25 in 3 s are more than 8 a second, 20 are less")

	// A window of one slot never measures more than that.
	d = must(t, Config[string]{Rate: 10, Slots: 1, Slot: 2 * time.Second})
	d.ObserveAt(second(0), "x", 1)
	d.ScanAt(second(1))
	d.ObserveAt(second(10), "x", 10)
	require.Equal(t, []string{"x"}, names(d.ScanAt(second(11)).Hot))
}

// With Certain, a key is hot when it must be, and else it is possible.
func TestCertain(t *testing.T) {
	for _, certain := range []bool{false, true} {
		source := &looseSource{known: map[string]heavykeeper.Estimate{
			"sure":     {Count: 150, Lower: 100, Upper: 200},
			"likely":   {Count: 120, Lower: 90, Upper: 130},
			"possible": {Count: 90, Lower: 0, Upper: 100},
			"unknown":  {Count: 1, Lower: 0, Upper: unbounded},
			"no":       {Count: 99, Lower: 99, Upper: 99},
		}}
		d := must(t, Config[string]{Source: source, Threshold: 100, Certain: certain, Leave: 1})
		change := d.ScanAt(start)
		if certain {
			require.Equal(t, []string{"sure"}, names(change.Hot))
			require.Equal(t, []string{"likely", "possible", "unknown"}, names(change.Possible))
		} else {
			require.Equal(t, []string{"sure", "likely"}, names(change.Hot))
			require.False(t, change.Hot[1].Certain)
			require.Equal(t, []string{"possible", "unknown"}, names(change.Possible))
		}
		require.True(t, change.Hot[0].Certain)
	}
}

func TestKeysThatAreNotTheirOwn(t *testing.T) {
	d := must(t, Config[float64]{Threshold: 1, Rules: []Rule{{Action: Deny, Match: Prefix, Pattern: "-"}}})
	nan := math.NaN()
	require.False(t, d.ObserveAt(start, nan, 5))
	require.False(t, d.Hot(nan))
	d.ObserveAt(start, -1, 5)
	d.ObserveAt(start, 1, 5)
	require.Equal(t, []float64{1}, names(d.ScanAt(start).Hot))
	_, ok := d.Set().Find(nan)
	require.False(t, ok)

	a := must(t, Config[any]{Threshold: 1, Rules: []Rule{{Action: Allow, Match: Glob, Pattern: "x*"}, {Action: Deny, Pattern: "no"}}})
	require.False(t, a.ObserveAt(start, []int{1}, 5), "no panic")
	require.False(t, a.Hot(map[int]int{}))
	require.True(t, a.Hot("x1"))
	a.ObserveAt(start, 1, 5)
	a.ObserveAt(start, "1", 5)
	a.ObserveAt(start, "no", 5)
	require.ElementsMatch(t, []any{1, "1"}, names(a.ScanAt(start).Hot))
	require.True(t, a.Hot(1))
	require.False(t, a.Hot(int8(1)))
	require.False(t, a.Hot([]string{"1"}))

	// Nothing is said of one that another is told: rules do not make them hot.
	for _, d := range []*Detector[any]{a, must(t, Config[any]{Threshold: 1, Rules: []Rule{{Action: Allow, Match: Contains, Pattern: "1"}, {Action: Deny, Match: Glob, Pattern: "*"}}})} {
		before := d.Stats().Denied
		for range 2 {
			require.False(t, d.Hot([]int{1}))
			require.False(t, d.Hot([]int{2}))
			require.False(t, d.Observe([]int{1}))
		}
		require.Equal(t, before, d.Stats().Denied)
	}
	require.False(t, must(t, Config[float64]{Threshold: 1, Rules: []Rule{{Action: Allow, Match: Glob, Pattern: "*"}}}).Hot(nan))
}

// Keys of every length, all told apart.
func TestIndex(t *testing.T) {
	k, err := newKeys[string]()
	require.NoError(t, err)
	for _, n := range []int{0, 1, 2, 3, 4, 5, 100, 1000} {
		var list []string
		for i := range n {
			list = append(list, strings.Repeat("\x00", i))
		}
		x := newIndex(list, &k)
		require.GreaterOrEqual(t, len(x.words), 4*n)
		for at, key := range list {
			require.Equal(t, at, x.find(key, k.hash(key)))
			require.Equal(t, -1, x.find(key+"x", k.hash(key+"x")))
		}
	}
	// A chain that wraps around, of words with equal tags.
	x := newIndex([]string{"a", "b", "c"}, &k)
	x.words = make([]uint64, 16)
	tag := uint64(7)
	x.words[15], x.words[0], x.words[1] = tag<<32|1, tag<<32|2, tag<<32|3
	hash := uint64(15)<<60 | tag
	require.Equal(t, []int{0, 1, 2, -1}, []int{x.find("a", hash), x.find("b", hash), x.find("c", hash), x.find("d", hash)})
}

// Updates, reads, scans and changes of rules all at once: nothing is lost and
// nothing counted twice, and who sees a set sees a whole one.
func TestConcurrentUse(t *testing.T) {
	const writers, events = 4, 5000
	d := must(t, Config[string]{Threshold: 100, TopN: 5, Slots: 1000, Slot: time.Hour, MinStay: time.Second})
	rules := [][]Rule{nil, {
		{Action: Allow, Pattern: "allowed"},
		{Action: Deny, Match: Prefix, Pattern: "denied"},
		{Match: Glob, Pattern: "other*", Threshold: 7, Window: 3},
	}}
	stop := make(chan struct{})
	var others, writing sync.WaitGroup
	loop := func(f func(i int)) {
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					f(i)
				}
			}
		})
	}
	loop(func(i int) {
		if err := d.SetRules(rules[i%2]); err != nil {
			t.Error(err)
		}
		if i%2 == 1 && (!d.Hot("allowed") || d.Hot("denied/1")) {
			t.Error("rules are not in force when SetRules returns")
		}
		if err := d.SetRules([]Rule{{Match: Regexp, Pattern: "("}}); err == nil {
			t.Error("got no error")
		}
	})
	for range 2 {
		loop(func(int) {
			change := d.Scan()
			if len(change.Hot) > 5 {
				t.Errorf("got %d hot keys, want 5 at most", len(change.Hot))
			}
		})
	}
	loop(func(int) {
		set := d.Set()
		for key := range set.All() {
			if _, ok := set.Find(key.Key); !ok {
				t.Errorf("%s is in the set and is not found", key.Key)
			}
		}
		d.Stats()
		serve(Handler(d), "GET", "/", "")
	})
	for w := range writers {
		writing.Go(func() {
			for i := range events {
				d.Observe("hot")
				d.ObserveN("allowed", 2)
				d.Observe(fmt.Sprint("other", i%50))
				ObserveBytes(d, []byte("bytes"), 1)
				d.ObserveN("denied/1", 3)
				d.Hot(fmt.Sprint("w", w))
			}
		})
	}
	writing.Wait()
	close(stop)
	others.Wait()
	require.NoError(t, d.SetRules(nil))
	change := d.Scan()
	require.Contains(t, names(change.Hot), "allowed")
	s := d.Stats()
	require.Equal(t, uint64(writers*events*8), s.Observed)
	require.Equal(t, s.Observed-s.Denied, change.Total, "what is not denied is counted")
	require.Equal(t, s.Entered-s.Left, uint64(s.Hot))
	for key, want := range map[string]uint64{"hot": writers * events, "allowed": 2 * writers * events, "bytes": writers * events} {
		require.Equal(t, want, d.config.Source.Estimate(key).Count, key)
	}
}

// Looking and counting allocate nothing, whatever the rules, once the window
// has its keys.
func TestNoAllocation(t *testing.T) {
	for name, rules := range map[string][]Rule{
		"none":     nil,
		"exact":    {{Action: Deny, Pattern: "no"}, {Action: Allow, Pattern: "yes"}},
		"patterns": {{Action: Deny, Match: Prefix, Pattern: "no"}, {Action: Allow, Match: Glob, Pattern: "y*"}, {Action: Deny, Match: Regexp, Pattern: "^[0-9]+$"}},
	} {
		d := must(t, Config[string]{Threshold: 10, Rules: rules})
		c := must(t, Config[client]{Threshold: 10, Rules: rules, Text: func(c client) string { return c.path }})
		for i := range 1000 {
			d.Observe(fmt.Sprint("key", i%20))
			c.Observe(clientKey(i % 20))
		}
		d.Scan()
		c.Scan()
		now := time.Now()
		hot, cold, never := "key1", "key"+strconv.Itoa(19), "no"
		bytes := []byte("key7")
		require.True(t, d.Hot(hot))
		keys := []client{clientKey(1), clientKey(2), {"", "no"}}
		for what, f := range map[string]func(){
			"Hot":          func() { d.Hot(hot); d.Hot(cold); d.Hot(never); c.Hot(keys[0]); c.Hot(keys[2]) },
			"Observe":      func() { d.Observe(hot); d.Observe(cold); d.Observe(never); c.Observe(keys[1]) },
			"ObserveN":     func() { d.ObserveN(hot, 1<<20); c.ObserveN(keys[0], 3) },
			"ObserveAt":    func() { d.ObserveAt(now, hot, 1); c.ObserveAt(now, keys[0], 1) },
			"ObserveBytes": func() { ObserveBytes(d, bytes, 1) },
			"Find":         func() { d.Set().Find(hot); c.Set().Find(keys[0]) },
		} {
			require.Zero(t, testing.AllocsPerRun(100, f), "%s with rules %s", what, name)
		}
	}
}

// What a caller's function does not survive, a Detector does: all goes on where
// it was.
func TestPanics(t *testing.T) {
	panics := false
	text := func(key string) string {
		if panics && key == "b" {
			panic("no text")
		}
		return key
	}
	rules := []Rule{{Action: Deny, Match: Prefix, Pattern: "no"}}
	d := must(t, Config[string]{Threshold: 10, Rules: rules, Text: text, EnterAfter: 2})
	same := must(t, Config[string]{Threshold: 10, Rules: rules, EnterAfter: 2})
	for i := range 6 {
		at := second(float64(i))
		for _, key := range []string{"a", "b", "no"} {
			d.ObserveAt(at, key, 10)
			same.ObserveAt(at, key, 10)
		}
		panics = true
		before := d.Set()
		require.Panics(t, func() { d.ScanAt(at) })
		require.True(t, d.Set() == before, "it has published something")
		if before.Len() > 0 {
			require.Panics(t, func() { d.SetRules(rules) })
			require.True(t, d.Set() == before, "it has published something")
			require.Panics(t, func() { serve(Handler(d), "GET", "/", "") })
		}
		panics = false
		want, got := same.ScanAt(at), d.ScanAt(at)
		require.Equal(t, want, got)
	}
	want, got := same.Stats(), d.Stats()
	want.ScanTime, got.ScanTime = 0, 0
	require.Equal(t, want, got)

	g := mustGroup(t, GroupConfig[string]{
		Config: Config[string]{Threshold: 10},
		Configure: func(name string, c Config[string]) (Config[string], error) {
			if panics {
				panic("no configuration")
			}
			return c, nil
		},
	})
	in(t, g, "a").ObserveAt(start, "k", 10)
	panics = true
	require.Panics(t, func() { g.Detector("b") })
	require.Panics(t, func() { g.ScanAt(start, func(string, Change[string]) { panic("no") }) })
	require.True(t, in(t, g, "a").Hot("k"), "what was found is in force")
	panics = false
	in(t, g, "b")
	g.ScanAt(second(1), nil)
	require.Equal(t, 2, g.Stats().Detectors)
}

// Run scans once a slot and ends when told to.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := must(t, Config[string]{Threshold: 10, Slots: 4, Slot: time.Second})
		ctx, cancel := context.WithCancelCause(t.Context())
		var scans []Change[string]
		done := make(chan error)
		go func() { done <- d.Run(ctx, func(c Change[string]) { scans = append(scans, c) }) }()
		begin := time.Now()
		time.Sleep(1500 * time.Millisecond)
		d.ObserveN("a", 10)
		time.Sleep(10 * time.Second)
		cancel(errors.New("enough"))
		require.ErrorIs(t, <-done, context.Canceled)
		require.Len(t, scans, 11)
		for i, c := range scans {
			require.Equal(t, time.Duration(i+1)*time.Second, c.At.Sub(begin))
			var entered, left []string
			switch i {
			case 1:
				entered = []string{"a"}
			case 4: // the slot of the tenth of a window that has moved on by four
				left = []string{"a"}
			}
			require.Equal(t, entered, slices.Clip(append([]string(nil), names(c.Entered)...)), "scan %d", i)
			require.Equal(t, left, slices.Clip(append([]string(nil), names(c.Left)...)), "scan %d", i)
		}
		require.ErrorIs(t, d.Run(ctx, nil), context.Canceled, "at once")
		require.Len(t, scans, 11)
	})
}

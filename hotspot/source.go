package hotspot

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/heavykeeper-go/heavykeeper"
	"github.com/heavykeeper-go/heavykeeper/window"
)

// Source is what a [Detector] counts in. It must be safe for concurrent use and
// must not retain keys that it is given, but copies. What else it can do is
// found out once, in [New]:
//
//   - A [Window] has time: it is given the time of every update and read.
//   - A source with a method Fade, a [heavykeeper.Fader], and no window fades
//     once for each slot between scans.
//   - Rates in a source without a window take a method FadeFactor() float64,
//     and shares one Stats() heavykeeper.Stats, of which they use Weight.
//
// [window.HeavyKeeper] and [heavykeeper.HeavyKeeper] have all of their kind.
type Source[K comparable] interface {
	heavykeeper.Counter[K]
	heavykeeper.Estimator[K]
	heavykeeper.Ranker[K]
}

// Window is a [Source] with a sliding window, as [window.HeavyKeeper] is, which
// describes the methods.
type Window[K comparable] interface {
	Source[K]
	AddAt(t time.Time, key K, n uint32)
	TopAt(t time.Time, n int) []heavykeeper.Item[K]
	EstimateAt(t time.Time, key K) heavykeeper.Estimate
	SeriesAt(t time.Time, key K) []uint64
	TotalAt(t time.Time, slots int) (events uint64, span time.Duration)
}

var (
	_ Window[string] = (*window.HeavyKeeper[string])(nil)
	_ Source[string] = (*heavykeeper.HeavyKeeper[string])(nil)
)

// reader reads a Source at a time, whatever its kind. Only add is safe for
// concurrent use.
type reader[K comparable] struct {
	source Source[K] // nil: not known yet, to see whether rules are good for any
	window Window[K] // nil if the source has none
	slots  int       // of the window
	slot   time.Duration

	// For a source without a window:
	stats interface{ Stats() heavykeeper.Stats } // nil if it has none
	age   age
}

func newReader[K comparable](source Source[K], slot time.Duration) *reader[K] {
	r := &reader[K]{source: source, slot: slot}
	if w, ok := source.(Window[K]); ok {
		r.window = w
		var key K
		r.slots = len(w.SeriesAt(time.Now(), key))
		return r
	}
	r.stats, _ = source.(interface{ Stats() heavykeeper.Stats })
	r.age.slot = slot
	r.age.fader, _ = source.(heavykeeper.Fader)
	r.age.factor, _ = source.(interface{ FadeFactor() float64 })
	return r
}

// able reports which of the limits the source has no measure for.
func (r *reader[K]) able(l limit) error {
	switch {
	case r.window != nil || r.source == nil:
		return nil
	case l.rate > 0 && r.age.fader != nil && r.age.factor == nil:
		return wrong("Rate", l.rate, "the Source has neither a window nor FadeFactor")
	case l.share > 0 && r.stats == nil:
		return wrong("Share", l.share, "the Source has neither a window nor Stats")
	}
	return nil
}

// add counts n occurrences of key now.
func (r *reader[K]) add(key K, n uint32) {
	if r.window == nil && !r.age.started.Load() {
		r.age.start(time.Now())
	}
	r.source.AddN(key, n)
}

// addAt counts n occurrences of key at time t.
func (r *reader[K]) addAt(t time.Time, key K, n uint32) {
	if r.window != nil {
		r.window.AddAt(t, key, n)
		return
	}
	if !r.age.started.Load() {
		r.age.start(t)
	}
	r.source.AddN(key, n)
}

// top returns the ranked keys.
func (r *reader[K]) top(t time.Time) []heavykeeper.Item[K] {
	if r.window != nil {
		return r.window.TopAt(t, 0)
	}
	return r.source.Top(0)
}

// estimate returns what is known of a key.
func (r *reader[K]) estimate(t time.Time, key K) heavykeeper.Estimate {
	if r.window != nil {
		return r.window.EstimateAt(t, key)
	}
	return r.source.Estimate(key)
}

// recent returns what is known of a key in the latest slots of the window,
// given what is known of it in all.
func (r *reader[K]) recent(t time.Time, key K, slots int, all heavykeeper.Estimate) heavykeeper.Estimate {
	series := r.window.SeriesAt(t, key)
	first := max(len(series)-slots, 0)
	recent, older := sum(series[first:]), sum(series[:first])
	e := heavykeeper.Estimate{Count: recent, Lower: recent, Upper: unbounded}
	if all.Upper != unbounded {
		// The series was read later, and may have more than all.
		e.Upper = max(all.Upper, recent+older) - older
	}
	return e
}

// total returns what was counted of all keys in the latest slots of the window,
// in all of it if slots is 0.
func (r *reader[K]) total(t time.Time, slots int) traffic {
	if r.window != nil {
		events, span := r.window.TotalAt(t, slots)
		return traffic{events: events, span: span}
	}
	out := traffic{span: r.age.span(t)}
	if r.stats != nil {
		out.events = r.stats.Stats().Weight
	}
	return out
}

// unbounded is an Upper that says nothing.
const unbounded = ^uint64(0)

func sum(series []uint64) uint64 {
	total := uint64(0)
	for _, n := range series {
		total += n
	}
	return total
}

// age is the time that a source without a window covers. Where it fades, an
// occurrence of i fades ago counts factor^i, and so does the time it took: a
// key that comes at a steady rate has count / span of that rate.
type age struct {
	fader  heavykeeper.Fader // nil: nothing fades
	factor interface{ FadeFactor() float64 }
	slot   time.Duration

	started atomic.Bool
	first   atomic.Pointer[time.Time]

	running bool
	last    time.Time     // the last fade, or the start
	past    time.Duration // faded time until last
}

// forgotten is a factor after which not one of 2^64 occurrences is left, and
// maxFades ends the fading of a source that does not tell its factor.
const (
	forgotten = 1.0 / (1 << 63) / 2
	maxFades  = 1 << 10
)

// start notes the time of the first update. It is safe for concurrent use.
func (a *age) start(t time.Time) {
	a.first.CompareAndSwap(nil, &t)
	a.started.Store(true)
}

// advance fades the source once for each slot that has passed until t.
func (a *age) advance(t time.Time) {
	if !a.running {
		a.running, a.last = true, t
		if first := a.first.Load(); first != nil && first.Before(t) {
			a.last = *first
		}
	}
	if t.Before(a.last) {
		a.last = t // the clock has stepped back
	}
	passed := t.Sub(a.last) / a.slot
	if a.last = a.last.Add(passed * a.slot); t.Sub(a.last) >= a.slot {
		a.last = t // centuries, more than a Duration has
	}
	if a.fader == nil {
		a.past = plus(a.past, passed*a.slot)
		return
	}
	left := 1.0
	for i := 0; passed > 0 && left > forgotten; i++ {
		factor := 1.0
		if a.factor != nil {
			factor = a.factor.FadeFactor()
		} else if i == maxFades {
			return
		}
		if factor == 1 && a.factor != nil {
			a.past = plus(a.past, passed*a.slot)
			return
		}
		a.fader.Fade()
		if a.past = plus(a.past, a.slot); factor < 1 {
			a.past = time.Duration(factor * float64(a.past))
		}
		left *= factor
		passed--
	}
}

// span returns how much time the counts cover at t, which must be that of the
// last advance.
func (a *age) span(t time.Time) time.Duration { return plus(a.past, t.Sub(a.last)) }

// plus returns the sum of two spans, or the longest there is.
func plus(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

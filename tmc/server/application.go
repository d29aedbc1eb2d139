package server

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
	"github.com/heavykeeper-go/heavykeeper/window"
)

// application is what a server knows of an application.
type application struct {
	name   string
	slots  int
	slot   time.Duration
	follow *live.Follower // nil: there is no live configuration
	stop   func()         // ends follow

	// state is replaced as a unit by configure.
	state atomic.Pointer[state]
	mu    sync.Mutex // of changes to state

	used                         atomic.Int64 // nanoseconds of the server's clock
	occurrences, dropped, late   atomic.Uint64
	reports                      atomic.Uint64
	pushes, pushFails, exchanges atomic.Uint64
	exchangeFails                atomic.Uint64

	elsewhere atomic.Uint64            // occurrences in the window of other servers
	latest    atomic.Pointer[combined] // nil: there was no exchange yet
}

// state is a configuration and the detector that has it.
type state struct {
	config   live.Config
	source   *window.HeavyKeeper[string]
	ranked   int // keys that source ranks
	detector *hotspot.Detector[string]
}

// rankedPerHot keys are ranked for each that can be hot, so that rules with
// thresholds of their own see beyond the first TopN.
const rankedPerHot = 2

func newApplication(name string, config live.Config, c *Config) (*application, error) {
	a := &application{name: name, slots: c.Slots, slot: c.Slot, stop: func() {}}
	next := &state{config: config}
	if err := a.build(next, nil, c.Heat); err != nil {
		return nil, err
	}
	a.state.Store(next)
	return a, nil
}

// configure takes on a configuration. Where only rules and thresholds change,
// the detector stays. Else there is a new one, which has the counts of the old,
// but finds out anew what is hot.
func (a *application) configure(config live.Config, heat int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.state.Load()
	next := *old
	next.config = config
	o := &old.config
	if o.TopN == config.TopN && o.Leave == config.Leave && o.MinStay == config.MinStay &&
		o.EnterAfter == config.EnterAfter && o.Certain == config.Certain {
		rules, err := a.rules(config, old.source)
		if err != nil {
			return err
		}
		if err := old.detector.SetRules(rules); err != nil {
			return err
		}
	} else if err := a.build(&next, old, heat); err != nil {
		return err
	}
	a.state.Store(&next)
	return nil
}

// build makes the detector of s, over the source of old if that will do.
func (a *application) build(s, old *state, heat int) error {
	s.ranked = max(rankedPerHot*s.config.TopN, heat)
	if old != nil && old.ranked >= s.ranked {
		s.ranked, s.source = old.ranked, old.source
	} else {
		source, err := window.New(window.Config[string]{K: s.ranked, Slots: a.slots, Slot: a.slot})
		if err != nil {
			return err
		}
		if old != nil {
			a.transfer(source, old.source, time.Now())
		}
		s.source = source
	}
	config, err := s.config.Detector(s.source)
	if err != nil {
		return err
	}
	if config.Rules, err = a.rules(s.config, s.source); err != nil {
		return err
	}
	config.Slot = a.slot
	if s.detector, err = hotspot.New(config); err == nil && old != nil {
		s.detector.Scan() // so that it does not begin with no hot keys
	}
	return err
}

// rules returns the rules of a configuration, and one more for all keys that has
// its thresholds, so that those can change without a new detector.
//
// A share is one of the traffic of all servers, which the detector does not
// see: it becomes the threshold that it comes to at this moment. Of fewer slots
// than the window has, the traffic is taken to be their part of it.
func (a *application) rules(config live.Config, source *window.HeavyKeeper[string]) ([]hotspot.Rule, error) {
	rules, err := config.HotspotRules()
	if err != nil {
		return nil, err
	}
	rules = append(rules, hotspot.Rule{Action: hotspot.Detect, Match: hotspot.Glob, Pattern: "*"})
	traffic := float64(a.elsewhere.Load())
	if config.HasShare() {
		traffic += float64(source.Stats().Weight)
	}
	for i := range rules {
		r := &rules[i]
		if r.Action == hotspot.Detect && r.Threshold == 0 && r.Rate == 0 && r.Share == 0 {
			r.Threshold, r.Rate, r.Share = config.Threshold, config.Rate, config.Share
		}
		if r.Share == 0 {
			continue
		}
		part := 1.0
		if r.Window > 0 {
			part = float64(r.Window) / float64(a.slots)
		}
		r.Threshold = max(r.Threshold, uint64(math.Ceil(r.Share*traffic*part)), 1)
		r.Share = 0
	}
	return rules, nil
}

// transfer counts in to what from knows of its heaviest keys, slot by slot.
func (a *application) transfer(to, from *window.HeavyKeeper[string], now time.Time) {
	for _, item := range from.TopAt(now, 0) {
		series := from.SeriesAt(now, item.Key)
		for i, n := range series {
			at := now.Add(-time.Duration(len(series)-1-i) * a.slot)
			for ; n > 0; n -= min(n, maxCount) {
				to.AddAt(at, item.Key, uint32(min(n, maxCount)))
			}
		}
	}
}

const maxCount = 1<<32 - 1

// observe counts a report that was received at now.
func (a *application) observe(r wire.Report, now time.Time) {
	a.used.Store(now.UnixNano())
	a.reports.Add(1)
	a.dropped.Add(r.Dropped)
	s := a.state.Load()
	if !s.config.Enabled {
		return
	}
	// By way of its age, so that all times have what time.Now has.
	age := max(now.Round(0).Sub(r.At), 0)
	at := now.Add(-age)
	var sum uint64
	for i := range r.Counts {
		sum += uint64(r.Counts[i].N)
	}
	if age >= time.Duration(a.slots)*a.slot {
		a.late.Add(sum)
		return
	}
	a.occurrences.Add(sum)
	for _, c := range r.Counts {
		s.detector.ObserveAt(at, c.Key, c.N)
	}
}

// refresh has shares mean what they do as of now.
func (a *application) refresh() {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.state.Load()
	if !s.config.HasShare() {
		return
	}
	if rules, err := a.rules(s.config, s.source); err == nil {
		s.detector.SetRules(rules) // as good as when they were set
	}
}

// scan finds what is hot at now, and the heat of the hottest keys.
func (a *application) scan(now time.Time, heat int) part {
	p := part{at: now}
	a.refresh()
	s := a.state.Load()
	if !s.config.Enabled {
		return p
	}
	change := s.detector.ScanAt(now)
	p.total = change.Total
	for _, allowed := range []bool{true, false} {
		for _, k := range change.Hot {
			if k.Allowed == allowed {
				p.hot = append(p.hot, wire.HotKey{Key: k.Key, Count: k.Count, Rate: k.Rate, TTL: k.TTL})
			}
		}
		if allowed {
			p.allowed = len(p.hot)
		}
	}
	for _, item := range s.source.TopAt(now, heat) {
		p.heat = append(p.heat, wire.HotKey{Key: item.Key, Count: item.Count})
	}
	return p
}

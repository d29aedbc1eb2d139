package hotspot

import (
	"time"

	"github.com/heavykeeper-go/heavykeeper"
)

// Scan ranks the keys as of now, publishes the hot set and returns what has
// changed. It is shorthand for ScanAt(time.Now()).
func (d *Detector[K]) Scan() Change[K] {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.scan(time.Now())
}

// ScanAt ranks the keys as of time t, publishes the hot set and returns what has
// changed since the scan before. One more scan at the same time, of the same
// traffic, changes nothing and is not one more in a row.
//
// It takes what the Source's Top does, and O(n log n) for the n keys ranked;
// those of rules with a Window take a Series each. Updates go on meanwhile.
func (d *Detector[K]) ScanAt(t time.Time) Change[K] {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.scan(t)
}

// scan does what ScanAt does. d.mu must be held.
func (d *Detector[K]) scan(t time.Time) Change[K] {
	start := time.Now()
	old := d.set.Load()
	s := d.look(t)
	list, barred := s.candidates(old)
	change := Change[K]{At: t, Total: s.whole.events, Span: s.whole.span}
	hot, possible := d.tracker.step(t, list)
	change.Possible = possible

	set := newSet(hot, old.rules, &d.keys)
	set.at, set.total, set.span = t, change.Total, change.Span
	before := newIndex(keysOf(d.reported), &d.keys)
	for _, key := range hot {
		if before.find(key.Key, d.keys.hash(key.Key)) < 0 {
			change.Entered = append(change.Entered, key)
		}
	}
	for _, c := range append(list, barred...) {
		at := before.find(c.Key, d.keys.hash(c.Key))
		if at >= 0 && !set.has(c.Key) {
			c.Since = d.reported[at].Since
			change.Left = append(change.Left, c.HotKey)
		}
	}
	change.Hot = set.Keys()
	d.set.Store(set)
	d.reported = set.hot
	d.scans.note(len(change.Entered), len(change.Left), d.tracker.flaps, t, time.Since(start))
	return change
}

func keysOf[K comparable](list []HotKey[K]) []K {
	keys := make([]K, len(list))
	for i := range list {
		keys[i] = list[i].Key
	}
	return keys
}

// look is the Source as a scan sees it.
type look[K comparable] struct {
	d     *Detector[K]
	t     time.Time
	whole traffic
	parts map[int]traffic // by Rule.Window
}

// look lets the Source come to time t and measures it. d.mu must be held.
func (d *Detector[K]) look(t time.Time) *look[K] {
	if d.reader.window == nil {
		d.reader.age.advance(t)
	}
	l := &look[K]{d: d, t: t, parts: make(map[int]traffic)}
	l.whole = d.reader.total(t, 0)
	if began := t.Add(-l.whole.span); l.whole.span > 0 && (d.began.IsZero() || began.Before(d.began)) {
		d.began = began
	}
	l.whole.measured = l.measured(l.whole.span)
	return l
}

// measured returns the span to judge rates by: in the first slot of all, that
// slot, so that a few early occurrences are no high rate.
func (l *look[K]) measured(span time.Duration) time.Duration {
	if slot := l.d.config.Slot; l.d.began.IsZero() || l.t.Sub(l.d.began) < slot {
		return max(span, slot)
	}
	return span
}

// traffic returns the traffic of the slots that a rule, or nil, has count.
func (l *look[K]) traffic(rule *Rule) traffic {
	if rule == nil || rule.Window == 0 {
		return l.whole
	}
	part, ok := l.parts[rule.Window]
	if !ok {
		part = l.d.reader.total(l.t, rule.Window+1)
		part.measured = l.measured(part.span)
		l.parts[rule.Window] = part
	}
	return part
}

// candidates returns the keys that are ranked, were hot or are allowed by name,
// in the order of rank, and apart those that are denied now but were hot.
func (l *look[K]) candidates(old *Set[K]) (list, barred []candidate[K]) {
	d := l.d
	items := d.reader.top(l.t)
	seen := make(map[K]bool, len(items))
	for _, item := range items {
		seen[item.Key] = false
	}
	add := func(key K, pinned bool) {
		if _, ok := seen[key]; !ok {
			items = append(items, heavykeeper.Item[K]{Key: key, Estimate: d.reader.estimate(l.t, key)})
		}
		seen[key] = pinned
	}
	for _, hot := range [][]HotKey[K]{d.reported, old.hot} {
		for i := range hot {
			add(hot[i].Key, false)
		}
	}
	for _, key := range old.rules.allowed {
		add(key, true)
	}
	list = make([]candidate[K], 0, len(items))
	rank := 0
	for _, item := range d.keys.rank(items) {
		rule := old.rules.of(item.Key)
		if rule != nil && rule.Action == Deny {
			barred = append(barred, candidate[K]{HotKey: HotKey[K]{Key: item.Key, Estimate: item.Estimate, Rule: rule.Name}})
			continue
		}
		c := l.judge(item, rule)
		c.pinned = seen[item.Key]
		if item.Count > 0 {
			rank++
			c.Rank = rank
		}
		list = append(list, c)
	}
	return list, barred
}

// judge says what the thresholds say of a key.
func (l *look[K]) judge(item heavykeeper.Item[K], rule *Rule) candidate[K] {
	limits, of, e := l.d.config.limits(), l.traffic(rule), item.Estimate
	if rule != nil {
		if own := rule.limits(); own != (limit{}) {
			limits = own
		}
		if rule.Window > 0 {
			e = l.d.reader.recent(l.t, item.Key, rule.Window+1, e)
		}
	}
	heat := e.Count
	if l.d.config.Certain {
		heat = e.Lower
	}
	c := candidate[K]{
		HotKey: HotKey[K]{
			Key:      item.Key,
			Estimate: item.Estimate,
			Rate:     of.rate(e.Count),
			Share:    of.share(e.Count),
			Certain:  limits.met(e.Lower, of, 1),
		},
		meets:    limits.met(heat, of, 1),
		stays:    limits.met(heat, of, l.d.config.Leave),
		possible: limits.met(e.Upper, of, 1),
	}
	c.label(rule)
	return c
}

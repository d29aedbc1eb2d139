package hotspot

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Detector counts keys and knows which of them are hot.
//
// [Detector.Observe] counts a key and tells whether it is hot, which is decided
// by scans: [Detector.Run] scans once a slot, and [Detector.ScanAt] when it is
// called. A key is hot from the scan on that finds it at its thresholds, for
// EnterAfter scans in a row, until one finds it below Leave of them, after
// MinStay at least. So a key at the edge does not flap.
//
// The zero value is not usable; see [New]. All methods are safe for concurrent
// use. Scans wait for one another. Looks at the hot set wait for nothing, and
// updates for no more than the Source's own reads have them wait.
type Detector[K comparable] struct {
	set    atomic.Pointer[Set[K]] // with the rules: an update sees both of one moment
	tally  tally
	reader *reader[K]
	keys   keys[K]
	config Config[K] // resolved, without Rules

	mu       sync.Mutex // of scans
	tracker  tracker[K]
	reported []HotKey[K] // by the latest scan
	began    time.Time   // what the source has measured
	scans    scanStats
}

// New returns a Detector without hot keys, but those that rules allow by name.
// It fails if a parameter is out of range; for one of a rule the error names
// the rule.
func New[K comparable](config Config[K]) (*Detector[K], error) {
	config, err := config.resolve()
	if err != nil {
		return nil, err
	}
	d := &Detector[K]{config: config, tally: newTally(), reader: newReader(config.Source, config.Slot)}
	if err := d.reader.able(config.limits()); err != nil {
		return nil, prefixed(err)
	}
	if d.keys, err = newKeys[K](); err != nil {
		return nil, prefixed(err)
	}
	rules, err := d.compile(config.Rules)
	if err != nil {
		return nil, err
	}
	d.config.Rules = nil
	d.tracker = tracker[K]{
		topN:       config.TopN,
		leave:      config.Leave,
		minStay:    config.MinStay,
		enterAfter: config.EnterAfter,
	}
	d.publish(nil, rules, nil)
	d.use(rules)
	return d, nil
}

// Observe counts one occurrence of key now and reports whether it is hot. It is
// shorthand for ObserveN(key, 1).
func (d *Detector[K]) Observe(key K) bool { return d.ObserveN(key, 1) }

// ObserveN counts n occurrences of key now, or one of weight n, and reports
// whether it is hot. A denied key is not counted. Nothing is counted if n is 0.
//
// It allocates nothing but what the Source does and, for keys that rules by
// pattern are tried on, what Text does.
func (d *Detector[K]) ObserveN(key K, n uint32) bool {
	v := d.set.Load().verdict(key)
	d.tally.add(v, n)
	if v != denied {
		d.reader.add(key, n)
	}
	return v == allowed
}

// ObserveAt is ObserveN at time t. A key is hot or not as of the latest scan,
// whatever t is. Of times that are late, or wrongly far ahead, see
// [window.HeavyKeeper]. In a Source without a window, the time of the first
// update is of account alone.
func (d *Detector[K]) ObserveAt(t time.Time, key K, n uint32) bool {
	v := d.set.Load().verdict(key)
	d.tally.add(v, n)
	if v != denied {
		d.reader.addAt(t, key, n)
	}
	return v == allowed
}

// ObserveBytes is ObserveN of the string that key holds, without converting it.
// The caller may change it as soon as ObserveBytes returns, which is why the
// Source and Text must not retain it.
func ObserveBytes(d *Detector[string], key []byte, n uint32) bool {
	return d.ObserveN(unsafe.String(unsafe.SliceData(key), len(key)), n)
}

// Hot reports whether key is hot: whether it is in the hot set or a rule allows
// it. It counts nothing, takes no lock and allocates nothing but what Text
// does for keys that rules by pattern are tried on.
func (d *Detector[K]) Hot(key K) bool { return d.set.Load().verdict(key) == allowed }

// Set returns the hot set, as the latest scan or SetRules has published it. Not
// all that rules allow is in it; see [Allow].
func (d *Detector[K]) Set() *Set[K] { return d.set.Load() }

// Text returns how rules and pages see a key; see Config.Text.
func (d *Detector[K]) Text(key K) string { return d.set.Load().rules.text(key) }

// SetRules replaces the rules, all of them or, if one is bad, none; the error
// names it. From when it returns, denied keys are not counted or hot, and keys
// that are allowed by name are in the hot set. What else changes does so at the
// next scan, which also reports the whole change. O(TopN) and the length of the
// rules. The slice is not retained.
func (d *Detector[K]) SetRules(rules []Rule) error {
	ready, err := d.compile(rules)
	if err != nil {
		return err
	}
	d.use(ready)
	return nil
}

// compile makes rules ready for use.
func (d *Detector[K]) compile(rules []Rule) (*ruleset[K], error) {
	return newRuleset(rules, d.config.Text, d.reader, d.config.TopN)
}

// use publishes the hot set as other rules have it.
func (d *Detector[K]) use(rules *ruleset[K]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.set.Load()
	pinned := make(map[K]bool, len(rules.allowed))
	for _, key := range rules.allowed {
		pinned[key] = true
	}
	left := d.config.TopN - len(pinned)
	var hot []HotKey[K]
	for _, key := range old.hot {
		rule := rules.of(key.Key)
		isPinned := pinned[key.Key]
		if rule != nil && rule.Action == Deny || !isPinned && left == 0 {
			continue
		}
		delete(pinned, key.Key)
		if !isPinned {
			left--
		}
		key.label(rule)
		hot = append(hot, key)
	}
	for _, key := range rules.allowed {
		if pinned[key] {
			added := HotKey[K]{Key: key, Since: old.at}
			added.label(rules.of(key))
			hot = append(hot, added)
		}
	}
	d.publish(hot, rules, old)
}

// label notes what a rule, or nil, says of a key.
func (k *HotKey[K]) label(rule *Rule) {
	k.Allowed, k.TTL, k.Rule = false, 0, ""
	if rule != nil {
		k.Allowed, k.TTL, k.Rule = rule.Action == Allow, rule.TTL, rule.Name
	}
}

// publish publishes a hot set, which has the time of old if that is not nil.
func (d *Detector[K]) publish(hot []HotKey[K], rules *ruleset[K], old *Set[K]) {
	s := newSet(hot, rules, &d.keys)
	if old != nil {
		s.at, s.total, s.span = old.at, old.total, old.span
	}
	d.set.Store(s)
}

// Run scans once a slot, and calls f with each outcome if f is not nil, until
// ctx ends, whose error it returns. f is called by the goroutine that calls Run,
// and delays the next scan for as long as it takes.
func (d *Detector[K]) Run(ctx context.Context, f func(Change[K])) error {
	return every(ctx, d.config.Slot, func() {
		if change := d.Scan(); f != nil {
			f(change)
		}
	})
}

// every calls f once per period until ctx ends, whose error it returns.
func every(ctx context.Context, period time.Duration, f func()) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f()
	}
}

package hotspot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const defaultMax = 1000

// ErrGroupFull is what the error of [Group.Detector] wraps if the group has no
// place for one more.
var ErrGroupFull = errors.New("hotspot: the group is full")

// GroupConfig holds the parameters of a [Group]: those of its Detectors, and
// how many there can be.
type GroupConfig[K comparable] struct {
	Config[K]

	// Configure, if not nil, returns the parameters of the Detector of a name,
	// given those above with the rules of the Group: for thresholds of its own,
	// or a Source, which those above cannot have, as no two Detectors can share
	// one. It must not call the Group, which scans all at one pace, that of the
	// Slot above.
	Configure func(name string, config Config[K]) (Config[K], error)

	// Max is the most Detectors at a time. What the group can take is Max
	// times what one takes, nearly all of it the Source's; BenchmarkScan
	// reports that. Default 1000.
	Max int

	// Idle is how long a Detector may go without being asked for or observing
	// anything before a scan drops it. 0: none is dropped.
	Idle time.Duration
}

// Group has a [Detector] for each of a number of applications, or tenants, by
// name. They are made when first asked for and dropped when idle.
//
// Names may come from outside: an unknown one costs a place in the group, and
// its own length, until it is idle, and no more.
//
// The zero value is not usable; see [NewGroup]. All methods are safe for
// concurrent use.
type Group[K comparable] struct {
	config  GroupConfig[K]
	members sync.Map // by name, of *groupMember[K]

	mu      sync.Mutex // of changes to members
	rules   []Rule
	count   int
	made    uint64
	refused uint64
	dropped uint64
	past    Stats // of those that were dropped

	scanning sync.Mutex // of scans
}

// groupMember is a Detector and when it was last of use.
type groupMember[K comparable] struct {
	detector *Detector[K]
	asked    atomic.Bool // since the latest scan

	// Of scans:
	seen     uint64 // Observed
	known    bool
	lastUsed time.Time
}

// NewGroup returns an empty Group. It fails if a parameter is out of range.
func NewGroup[K comparable](config GroupConfig[K]) (*Group[K], error) {
	if config.Max == 0 {
		config.Max = defaultMax
	}
	switch {
	case config.Max < 1:
		return nil, invalid("Max", config.Max, "must be positive")
	case config.Idle < 0:
		return nil, invalid("Idle", config.Idle, "must not be negative")
	case config.Source != nil:
		return nil, errors.New("hotspot: Source: cannot be shared by a group; set Configure")
	}
	config.Config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	g := &Group[K]{config: config, rules: slices.Clone(config.Rules)}
	var err error
	if config.Configure == nil {
		_, err = New(config.Config)
	} else {
		err = g.check(g.rules)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// check reports which of the rules none of the Detectors could have.
func (g *Group[K]) check(rules []Rule) error {
	slots, topN := cmp.Or(g.config.Slots, defaultSlots), g.config.TopN
	if g.config.Configure != nil {
		slots, topN = math.MaxInt, maxTopN
	}
	_, err := newRuleset(rules, g.config.Text, &reader[K]{slots: slots}, topN)
	return err
}

// Detector returns the Detector of a name, which is new if there was none. The
// error wraps [ErrGroupFull] if there are Max others; another can only be that
// of Configure, or of New with what that returns.
//
// Ask again rather than keep a Detector for longer than Idle: one that was
// dropped works, but the group does not scan it. O(1).
func (g *Group[K]) Detector(name string) (*Detector[K], error) {
	m, err := g.member(name)
	if err != nil {
		return nil, err
	}
	if !m.asked.Load() { // seldom written, so that its cache line is shared
		m.asked.Store(true)
	}
	return m.detector, nil
}

func (g *Group[K]) member(name string) (*groupMember[K], error) {
	if m, ok := g.members.Load(name); ok {
		return m.(*groupMember[K]), nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, ok := g.members.Load(name); ok {
		return m.(*groupMember[K]), nil
	}
	if g.count == g.config.Max {
		g.refused++
		return nil, fmt.Errorf("%w: %d detectors", ErrGroupFull, g.count)
	}
	name = strings.Clone(name) // it may be a small part of a large text
	config := g.config.Config
	config.Rules = g.rules
	if g.config.Configure != nil {
		var err error
		config.Rules = slices.Clone(g.rules)
		if config, err = g.config.Configure(name, config); err != nil {
			return nil, fmt.Errorf("hotspot: configuration of %q: %w", name, err)
		}
	}
	d, err := New(config)
	if err != nil {
		return nil, err
	}
	m := &groupMember[K]{detector: d}
	g.members.Store(name, m)
	g.count++
	g.made++
	return m, nil
}

// All iterates over the Detectors by name, in the order of names.
func (g *Group[K]) All() iter.Seq2[string, *Detector[K]] {
	return func(yield func(string, *Detector[K]) bool) {
		for _, entry := range g.sorted() {
			if !yield(entry.name, entry.detector) {
				return
			}
		}
	}
}

type namedMember[K comparable] struct {
	name string
	*groupMember[K]
}

// sorted returns the members in the order of their names.
func (g *Group[K]) sorted() []namedMember[K] {
	var list []namedMember[K]
	for name, m := range g.members.Range {
		list = append(list, namedMember[K]{name.(string), m.(*groupMember[K])})
	}
	slices.SortFunc(list, func(a, b namedMember[K]) int { return strings.Compare(a.name, b.name) })
	return list
}

// Drop forgets the Detector of a name and reports whether there was one.
func (g *Group[K]) Drop(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, ok := g.members.Load(name)
	return ok && g.drop(name, m.(*groupMember[K]))
}

// drop forgets m, unless there is another of that name by now. g.mu must be
// held.
func (g *Group[K]) drop(name string, m *groupMember[K]) bool {
	if !g.members.CompareAndDelete(name, m) {
		return false
	}
	g.count--
	g.dropped++
	past := m.detector.Stats()
	past.Hot = 0
	g.past = g.past.plus(past)
	return true
}

// Scan is shorthand for ScanAt(time.Now(), f).
func (g *Group[K]) Scan(f func(name string, change Change[K])) {
	g.scanning.Lock()
	defer g.scanning.Unlock()
	g.scan(time.Now(), f)
}

// ScanAt scans one Detector after another as of time t, in the order of names,
// calls f with the outcome of each if f is not nil, and then drops those that
// have been idle. A Detector that is dropped reports no keys that left. Scans
// wait for one another, so f must not call Scan or ScanAt.
func (g *Group[K]) ScanAt(t time.Time, f func(name string, change Change[K])) {
	g.scanning.Lock()
	defer g.scanning.Unlock()
	g.scan(t, f)
}

// scan does what ScanAt does. g.scanning must be held.
func (g *Group[K]) scan(t time.Time, f func(name string, change Change[K])) {
	for _, m := range g.sorted() {
		change := m.detector.ScanAt(t)
		if f != nil {
			f(m.name, change)
		}
		if m.idle(t) >= g.config.Idle && g.config.Idle > 0 {
			g.mu.Lock()
			g.drop(m.name, m.groupMember)
			g.mu.Unlock()
		}
	}
}

// idle returns how long m has not been of use at t. g.scanning must be held.
func (m *groupMember[K]) idle(t time.Time) time.Duration {
	observed := m.detector.observed()
	if m.asked.Swap(false) || !m.known || observed != m.seen || t.Before(m.lastUsed) {
		m.known, m.seen, m.lastUsed = true, observed, t
	}
	return t.Sub(m.lastUsed)
}

// Run scans all Detectors once a slot, as ScanAt does, until ctx ends, whose
// error it returns.
func (g *Group[K]) Run(ctx context.Context, f func(name string, change Change[K])) error {
	return every(ctx, g.config.Slot, func() { g.Scan(f) })
}

// SetRules replaces the rules of all Detectors, those of Configure too, and what
// Configure is given for those to come, as [Detector.SetRules] does, or of none;
// the error names the rule.
func (g *Group[K]) SetRules(rules []Rule) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.check(rules); err != nil {
		return err
	}
	list := g.sorted()
	ready := make([]*ruleset[K], len(list))
	for i, m := range list {
		var err error
		if ready[i], err = m.detector.compile(rules); err != nil {
			return err
		}
	}
	g.rules = slices.Clone(rules)
	for i, m := range list {
		m.detector.use(ready[i])
	}
	return nil
}

// GroupStats tells what a [Group] has done since it was new.
type GroupStats struct {
	// Stats are the totals of all Detectors, those dropped included: ScanTime
	// is the longest, LastScan the latest.
	Stats

	// Detectors is the number of Detectors now. Made and Dropped count those
	// that were; Refused counts the calls of Detector that found the group
	// full.
	Detectors              int
	Made, Dropped, Refused uint64
}

// Stats returns the totals of the group. O(Max).
func (g *Group[K]) Stats() GroupStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := GroupStats{Stats: g.past, Detectors: g.count, Made: g.made, Dropped: g.dropped, Refused: g.refused}
	for _, m := range g.members.Range {
		s.Stats = s.Stats.plus(m.(*groupMember[K]).detector.Stats())
	}
	return s
}

// String returns Stats as JSON, with Coverage: it makes a Group an expvar.Var.
func (g *Group[K]) String() string {
	s := g.Stats()
	return asJSON(struct {
		GroupStats
		Coverage float64
	}{s, s.Coverage()})
}

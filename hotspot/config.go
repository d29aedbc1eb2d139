package hotspot

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/heavykeeper-go/heavykeeper/window"
)

const (
	defaultTopN  = 100
	defaultLeave = 0.8
	defaultSlots = 10
	defaultSlot  = 3 * time.Second
	maxTopN      = 1 << 20

	// rankedPerHot keys are ranked for each that can be hot, so that rules with
	// thresholds of their own see beyond the first TopN.
	rankedPerHot = 2
)

// Config holds the parameters of a [Detector]. One of Threshold, Rate and Share
// is required; those that are set must all be met. The zero value of every
// other field selects its default.
type Config[K comparable] struct {
	// Source counts and ranks the keys. Default: a [window.HeavyKeeper] that
	// ranks twice TopN keys. A Source serves one Detector.
	Source Source[K]

	// Slots and Slot are those of the default Source: see [window.Config].
	// With another Source, Slots must be 0, and Slot is how often Run scans
	// and, if the Source has no window, how often it fades. Default 10 x 3 s.
	Slots int
	Slot  time.Duration

	// TopN is the most keys that are in the hot set at a time, 1 to 2^20.
	// Default 100.
	TopN int

	// Threshold is the heat from which a key is hot: its number of
	// occurrences in the window, or what fading has left of them.
	Threshold uint64

	// Rate is the same in occurrences a second of the time that the window has
	// measured. In the first slot of all, which may have measured next to
	// nothing, it is as if a whole slot had been.
	Rate float64

	// Share is the same as a share of everything that was counted, 0 to 1.
	// Denied keys are not counted.
	Share float64

	// Leave is the share of its threshold below which a hot key is hot no
	// more, and by which a newcomer must exceed a hot key to take its place
	// among TopN: more than 0, at most 1. At 1 a key at the edge flaps.
	// Default 0.8.
	Leave float64

	// MinStay is how long a key stays hot at least. Default 0.
	MinStay time.Duration

	// EnterAfter is the number of scans in a row that must find a key at its
	// threshold before it is hot. Default 1.
	EnterAfter int

	// Certain compares the thresholds with Lower, so that hot keys are
	// certainly so, rather than with Count.
	Certain bool

	// Rules are exceptions; see [Rule].
	Rules []Rule

	// Text is how rules and pages see a key. It must be safe for concurrent
	// use, and must neither retain the key nor call the Detector. Default: a string itself, [fmt.Sprint]
	// of other types.
	Text func(K) string
}

// wrong reports a bad parameter by name and value.
func wrong(field string, value, want any) error {
	return fmt.Errorf("%s = %v: %v", field, value, want)
}

// invalid is wrong with the name of the package before it.
func invalid(field string, value any, want string) error {
	return prefixed(wrong(field, value, want))
}

func prefixed(err error) error { return fmt.Errorf("hotspot: %w", err) }

// withDefaults fills in the defaults of c's zero fields, but for the Source.
func (c Config[K]) withDefaults() Config[K] {
	if c.TopN == 0 {
		c.TopN = defaultTopN
	}
	if c.Leave == 0 {
		c.Leave = defaultLeave
	}
	if c.EnterAfter == 0 {
		c.EnterAfter = 1
	}
	if c.Slot == 0 {
		c.Slot = defaultSlot
	}
	return c
}

// resolve fills in the defaults of c's zero fields and reports the first
// parameter that is out of its range, but for the rules.
func (c Config[K]) resolve() (Config[K], error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return c, err
	}
	if c.Source != nil {
		return c, nil
	}
	if c.Slots == 0 {
		c.Slots = defaultSlots
	}
	source, err := window.New(window.Config[K]{K: rankedPerHot * c.TopN, Slots: c.Slots, Slot: c.Slot})
	if err != nil {
		return c, errors.New("hotspot: " + strings.TrimPrefix(err.Error(), "window: "))
	}
	c.Source = source
	return c, nil
}

// validate reports the first parameter that is out of its range.
func (c Config[K]) validate() error {
	switch {
	case c.TopN < 1:
		return invalid("TopN", c.TopN, "must be positive")
	case c.TopN > maxTopN:
		return invalid("TopN", c.TopN, fmt.Sprintf("must be at most %d", maxTopN))
	case !(c.Leave > 0 && c.Leave <= 1):
		return invalid("Leave", c.Leave, "must be more than 0 and at most 1")
	case c.EnterAfter < 1:
		return invalid("EnterAfter", c.EnterAfter, "must be positive")
	case c.MinStay < 0:
		return invalid("MinStay", c.MinStay, "must not be negative")
	case c.Slot < 0:
		return invalid("Slot", c.Slot, "must be positive")
	case c.Source != nil && c.Slots != 0:
		return invalid("Slots", c.Slots, "is for the default Source")
	}
	if err := c.limits().fault(); err != nil {
		return prefixed(err)
	}
	if c.limits() == (limit{}) {
		return errors.New("hotspot: Threshold, Rate and Share = 0: one of them must be set")
	}
	return nil
}

// limits returns the thresholds for keys that no rule has others for.
func (c *Config[K]) limits() limit { return limit{c.Threshold, c.Rate, c.Share} }

// limit is what a key must reach to be hot: all that are not 0.
type limit struct {
	threshold   uint64
	rate, share float64
}

// fault reports which field is out of range.
func (l limit) fault() error {
	switch {
	case !(l.rate >= 0) || math.IsInf(l.rate, 1):
		return wrong("Rate", l.rate, "must be finite and not negative")
	case !(l.share >= 0 && l.share <= 1):
		return wrong("Share", l.share, "must be at least 0 and at most 1")
	}
	return nil
}

// met reports whether count reaches a share, at most 1, of the limits.
func (l limit) met(count uint64, of traffic, share float64) bool {
	if count < scale(l.threshold, share) {
		return false
	}
	if l.rate > 0 && window.Rate(count, of.measured) < share*l.rate {
		return false
	}
	return l.share == 0 || of.events > 0 && float64(count) >= share*l.share*float64(of.events)
}

// scale returns a share of n, rounded up.
func scale(n uint64, share float64) uint64 {
	if share == 1 {
		return n
	}
	return uint64(math.Ceil(share * float64(n)))
}

// traffic is what was counted of all keys, and in how much time.
type traffic struct {
	events   uint64
	span     time.Duration
	measured time.Duration // for decisions: span, but for the first slot
}

// rate returns count as occurrences a second.
func (t traffic) rate(count uint64) float64 { return window.Rate(count, t.span) }

// share returns count as a share of everything.
func (t traffic) share(count uint64) float64 {
	if t.events == 0 {
		return 0
	}
	return min(float64(count)/float64(t.events), 1)
}

package hotspot

import (
	"fmt"
	"time"
)

// Action is what a [Rule] does with the keys that it matches.
type Action int

const (
	// Detect finds out whether a key is hot by the thresholds of the rule, or
	// those of [Config] if the rule has none.
	Detect Action = iota

	// Allow makes a key hot always, counted or not. By an Exact rule, a key
	// that is a string with the default Text is in the [Set] always, too;
	// others are while they are among the TopN most frequent. A key that does
	// not equal itself is never hot.
	Allow

	// Deny makes a key never hot, and has it not counted.
	Deny
)

// String returns the name of the constant.
func (a Action) String() string { return name(int(a), "Detect", "Allow", "Deny") }

// Match is how the Pattern of a [Rule] is compared with the text of a key.
type Match int

const (
	Exact    Match = iota // the pattern is the text
	Prefix                // the text begins with the pattern
	Suffix                // the text ends with the pattern
	Contains              // the pattern is somewhere in the text
	Glob                  // * is any text, ? any character, [a-z] and [^a-z] one of a class, \ takes the next as it is
	Regexp                // the text contains what package regexp matches
)

// String returns the name of the constant.
func (m Match) String() string {
	return name(int(m), "Exact", "Prefix", "Suffix", "Contains", "Glob", "Regexp")
}

func name(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("unknown (%d)", i)
	}
	return names[i]
}

// Rule makes an exception for keys by their text; see Config.Text. The first
// rule that matches a key decides about it, and [Config] about keys that none
// matches.
//
// Exact rules for string keys with the default Text cost an update nothing.
// An allow or deny rule of another kind must be tried on keys that are not in
// the hot set. What comes of that is remembered for the 2^13 hashes seen last,
// near enough; a key that is not among them takes its Text, a map lookup and,
// one after another, the matches of all rules up to the one that decides.
// BenchmarkRules measures it. Two keys of which 62 bits of the hash are the
// same share what is remembered.
type Rule struct {
	// Name stands in errors and in HotKey.Rule. It may be empty.
	Name string

	// Action is what to do with keys that match.
	Action Action

	// Match and Pattern tell which those are. Only an Exact pattern can be
	// empty.
	Match   Match
	Pattern string

	// Threshold, Rate and Share are thresholds as those of Config, which they
	// replace, all of them, if one is set. For Detect only.
	Threshold   uint64
	Rate, Share float64

	// Window is the number of slots that count: those before the present
	// slot, which counts too as far as it has come. At most the window's
	// slots less one. 0: the whole window. For Detect only.
	Window int

	// TTL is how long a copy of what the key stands for can be used without
	// being told again that it is hot. It is handed on, in HotKey.TTL. Not
	// for Deny.
	TTL time.Duration
}

// fault reports which field of r is out of range in a window of some slots, 0
// for a source without a window.
func (r *Rule) fault(slots int) error {
	switch {
	case r.Action < Detect || r.Action > Deny:
		return wrong("Action", int(r.Action), "must be Detect, Allow or Deny")
	case r.Match < Exact || r.Match > Regexp:
		return wrong("Match", int(r.Match), "must be Exact, Prefix, Suffix, Contains, Glob or Regexp")
	case r.Pattern == "" && r.Match != Exact:
		return wrong("Pattern", `""`, "would match every key; say so with Glob and *")
	case r.Action != Detect && r.limits() != (limit{}):
		return wrong("Action", r.Action, "has no Threshold, Rate or Share")
	case r.Action != Detect && r.Window != 0:
		return wrong("Window", r.Window, "is for Detect only")
	case r.Window < 0:
		return wrong("Window", r.Window, "must not be negative")
	case r.Window > 0 && slots == 0:
		return wrong("Window", r.Window, "the Source has no window")
	case r.Window > 0 && r.Window >= slots:
		return wrong("Window", r.Window, fmt.Sprintf("must be less than the %d slots of the window", slots))
	case r.TTL < 0:
		return wrong("TTL", r.TTL, "must not be negative")
	case r.Action == Deny && r.TTL != 0:
		return wrong("TTL", r.TTL, "is not for Deny")
	}
	return r.limits().fault()
}

func (r *Rule) limits() limit { return limit{r.Threshold, r.Rate, r.Share} }

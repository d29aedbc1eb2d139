package heavykeeper

import (
	"fmt"
	"math"

	"github.com/heavykeeper-go/heavykeeper/internal/stripe"
)

// Limits of the parameters. They keep every size of a stripe within 32 bits, so
// that a sketch behaves alike on every platform, and the sum of the stripes
// within what a machine may have: more is an error and not a crash.
const (
	maxK        = 1 << 24
	maxRows     = 16
	maxCells    = 1 << 27
	maxStripes  = 1 << 12
	maxAllKeys  = 1 << 30 // of all stripes
	maxAllCells = 1 << 30
	minBase     = 1.001
)

const (
	defaultRows  = 4
	defaultBase  = 1.08
	cellsPerKey  = 9
	minimumWidth = 256
)

// Config holds the parameters of a [Sketch] or a [HeavyKeeper]. Only K is
// required: the zero value of every other field selects its default.
type Config[K comparable] struct {
	// K is the number of keys to report, 1 to 2^24.
	K int

	// Rows is the number of hash rows, m in the paper, 1 to 16. A key collides
	// with the same heavier key in all of them with probability Width^-Rows.
	// Default 4.
	Rows int

	// Width is the number of cells in a row, used as given: any number will
	// do, powers of two are not special. A cell takes 12 bytes. A row's share
	// of error is 1/Width of the untracked weight. Rows times Width is at most
	// 2^27. Default 9 K, at least 256 and no more than fits.
	Width int

	// Stripes is the number of independent sketches that a HeavyKeeper spreads
	// its updates over, each with Rows x Width cells and K tracked keys, at
	// most 4096; times K, or the cells, at most 2^30. 1 takes the least memory
	// and makes results depend on the order of updates alone. NewSketch does
	// not use it: a Sketch is one stripe. Default: the smallest power of two
	// that is at least GOMAXPROCS.
	Stripes int

	// Base is b of the collision decay: an occurrence of a colliding key takes
	// one off an owner's count c with probability Base^-c. At least 1.001.
	// Default 1.08, the paper's.
	Base float64

	// Alpha is the share of every weight that a call of Fade takes away,
	// 0 <= Alpha < 1. A weight halves in ln 2 / Alpha fades, near enough: in
	// 69 at 0.01, in 14 at 0.05. Default 0: nothing fades.
	Alpha float64

	// Seed chooses the row positions and the random numbers of the collision
	// decay. Sketches merge only if their seeds are equal.
	Seed uint64

	// Hash maps a key to 64 bits; equal keys must have equal hashes. What it
	// returns is mixed with Seed, so it need not be uniform, but keys that
	// share all 64 bits count as one until they are tracked. It must be
	// safe for concurrent use, must not retain the key (AddBytes passes the
	// caller's memory), and must not call the object it is configured for,
	// whose locks may be held. An update takes time in proportion to the
	// tracked keys that share its key's hash.
	//
	// Default: xxhash for strings, the value itself for integers, and
	// [hash/maphash.Comparable] with a seed of the process for other types:
	// MarshalBinary needs a Hash for those.
	// See the package comment on security for keys that strangers choose.
	Hash func(K) uint64

	// OnAdmit and OnEvict, if not nil, are called when a key starts and stops
	// being tracked, before the update that caused it returns. They must not
	// call the object they are configured for. A HeavyKeeper calls them for
	// each stripe by itself, with the stripe's lock held, so a key may be
	// admitted by several stripes. Reset and UnmarshalBinary call neither. If
	// one panics the update has been counted, but the other hook is not called,
	// nor are the rest of a batch, or of a Merge's stripes, counted.
	OnAdmit, OnEvict func(K)
}

// invalid reports a bad parameter by name and value.
func invalid(field string, value any, want string) error {
	return fmt.Errorf("heavykeeper: %s = %v: %s", field, value, want)
}

// resolve fills in the defaults of c's zero fields and reports the first
// parameter that is out of its range.
func (c Config[K]) resolve() (Config[K], error) {
	if c.Rows == 0 {
		c.Rows = defaultRows
	}
	if c.Stripes == 0 {
		c.Stripes = stripe.Default(maxStripes)
	}
	if c.Width == 0 {
		c.Width = max(cellsPerKey*c.K, minimumWidth)
		if c.Rows > 0 && c.Stripes > 0 {
			c.Width = max(min(c.Width, maxCells/c.Rows, maxAllCells/c.Rows/c.Stripes), 1)
		}
	}
	if c.Base == 0 {
		c.Base = defaultBase
	}
	c.Alpha += 0 // makes -0, which would be encoded, 0
	return c, c.validate()
}

// validate reports the first parameter that is out of its range.
func (c Config[K]) validate() error {
	for _, p := range []struct {
		field      string
		value, max int
	}{
		{"K", c.K, maxK},
		{"Rows", c.Rows, maxRows},
		{"Width", c.Width, maxCells},
		{"Stripes", c.Stripes, maxStripes},
	} {
		if p.value < 1 {
			return invalid(p.field, p.value, "must be positive")
		}
		if p.value > p.max {
			return invalid(p.field, p.value, fmt.Sprintf("must be at most %d", p.max))
		}
	}
	switch {
	case c.Width > maxCells/c.Rows:
		return invalid("Width", c.Width, fmt.Sprintf("Rows x Width must be at most %d", maxCells))
	case c.Stripes > maxAllCells/(c.Rows*c.Width):
		return invalid("Stripes", c.Stripes, fmt.Sprintf("times Rows x Width = %d x %d must be at most %d", c.Rows, c.Width, maxAllCells))
	case c.Stripes > maxAllKeys/c.K:
		return invalid("Stripes", c.Stripes, fmt.Sprintf("times K = %d must be at most %d", c.K, maxAllKeys))
	case !(c.Base >= minBase) || math.IsInf(c.Base, 1):
		return invalid("Base", c.Base, fmt.Sprintf("must be finite and at least %v", minBase))
	case !(c.Alpha >= 0 && c.Alpha < 1):
		return invalid("Alpha", c.Alpha, "must be at least 0 and less than 1")
	}
	return nil
}

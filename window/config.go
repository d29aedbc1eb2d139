package window

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/heavykeeper-go/heavykeeper"
	"github.com/heavykeeper-go/heavykeeper/internal/stripe"
)

// Limits of the parameters, beside those of package heavykeeper.
const (
	maxK          = 1 << 22
	maxCandidates = 1 << 24
	maxSlots      = 1 << 16
	maxCounts     = 1 << 28
	maxStripes    = 1 << 12
	maxAllCounts  = 1 << 32 // of all stripes
	maxRows       = 16      // from here on those of package heavykeeper
	maxCells      = 1 << 27
	maxAllCells   = 1 << 30 // of all stripes
)

const (
	defaultRows       = 4
	defaultBase       = 1.08
	defaultSlots      = 10
	defaultSlot       = 3 * time.Second
	candidatesPerKey  = 4
	cellsPerCandidate = 1
	minimumWidth      = 256
)

// Config holds the parameters of a [HeavyKeeper]. Only K is required: the zero
// value of every other field selects its default.
type Config[K comparable] struct {
	// K is the number of keys to report, 1 to 2^22.
	K int

	// Slots is the number of slots in the window, 1 to 65536. The window
	// moves on by a slot at a time, so it covers between Slots - 1 and Slots
	// of them. Default 10.
	Slots int

	// Slot is the length of a slot, positive; Slots x Slot is at most 73
	// years. Slots begin at multiples of Slot since 1970, by the wall clock at
	// the time of New; see [HeavyKeeper] for how to follow it from then on.
	// Default 3 s.
	Slot time.Duration

	// Candidates is the number of keys whose slots are counted, in each
	// stripe. At least K and at most 2^24; Candidates x Slots is at most 2^28.
	// A candidate takes 60 to 75 bytes, 4 x Slots more, and for a string key 8
	// more and its text. More help where many keys are nearly as frequent as
	// the K-th, and where keys come and go. Default 4 K.
	Candidates int

	// Rows and Width are the shape of the sketch that nominates candidates,
	// in each stripe; a cell takes 12 bytes. Defaults: 4 rows of Candidates
	// cells, at least 256 and no more than fits.
	Rows, Width int

	// Stripes is the number of independent parts that updates are spread
	// over, at most 4096; times Candidates x Slots at most 2^32, and times
	// Rows x Width at most 2^30. 1 takes the least memory and makes results
	// depend on the order of updates alone. Default: the smallest power of two
	// that is at least GOMAXPROCS.
	Stripes int

	// Base, Seed and Hash are those of [heavykeeper.Config].
	Base float64
	Seed uint64
	Hash func(K) uint64
}

// invalid reports a bad parameter by name and value.
func invalid(field string, value any, want string) error {
	return fmt.Errorf("window: %s = %v: %s", field, value, want)
}

// resolve fills in the defaults of c's zero fields and reports the first
// parameter that is out of its range. Base is left to the sketch.
func (c Config[K]) resolve() (Config[K], error) {
	if c.Slots == 0 {
		c.Slots = defaultSlots
	}
	if c.Slot == 0 {
		c.Slot = defaultSlot
	}
	if c.Rows == 0 {
		c.Rows = defaultRows
	}
	if c.Base == 0 {
		c.Base = defaultBase
	}
	if c.Candidates == 0 {
		c.Candidates = candidatesPerKey * c.K
	}
	if c.Stripes == 0 {
		c.Stripes = stripe.Default(maxStripes)
	}
	if c.Width == 0 {
		c.Width = max(cellsPerCandidate*c.Candidates, minimumWidth)
		if c.Rows > 0 && c.Stripes > 0 {
			c.Width = max(min(c.Width, maxCells/c.Rows, maxAllCells/c.Rows/c.Stripes), 1)
		}
	}
	return c, c.validate()
}

// validate reports the first parameter that is out of its range.
func (c Config[K]) validate() error {
	for _, p := range []struct {
		field      string
		value, max int
	}{
		{"K", c.K, maxK},
		{"Slots", c.Slots, maxSlots},
		{"Candidates", c.Candidates, maxCandidates},
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
	case c.Slot <= 0:
		return invalid("Slot", c.Slot, "must be positive")
	case c.Slot > maxSpan/time.Duration(c.Slots):
		return invalid("Slot", c.Slot, fmt.Sprintf("Slots x Slot must be at most %v", time.Duration(maxSpan)))
	case c.Candidates < c.K:
		return invalid("Candidates", c.Candidates, fmt.Sprintf("must be at least K = %d", c.K))
	case c.Candidates > maxCounts/c.Slots:
		return invalid("Candidates", c.Candidates, fmt.Sprintf("Candidates x Slots must be at most %d", maxCounts))
	case uint64(c.Stripes) > maxAllCounts/uint64(c.Candidates*c.Slots):
		return invalid("Stripes", c.Stripes, fmt.Sprintf("times Candidates x Slots = %d x %d must be at most %d",
			c.Candidates, c.Slots, uint64(maxAllCounts)))
	case c.Width > maxCells/c.Rows:
		return invalid("Width", c.Width, fmt.Sprintf("Rows x Width must be at most %d", maxCells))
	case c.Stripes > maxAllCells/(c.Rows*c.Width):
		return invalid("Stripes", c.Stripes, fmt.Sprintf("times Rows x Width = %d x %d must be at most %d", c.Rows, c.Width, maxAllCells))
	}
	return nil
}

// alpha returns the share of every weight that the sketch lets go at each turn
// of the wheel. Fading as slowly as this keeps e^-2 of what is about to leave
// the window. Much slower, and keys of the past hold their places; much
// faster, and steady keys lose theirs to bursts. Of e^-0.5 to e^-4, over 5, 10
// and 60 slots, between e^-1.5 and e^-3 makes little difference.
func (c Config[K]) alpha() float64 {
	if c.Slots == 1 {
		return 0 // each turn empties the window
	}
	// Rounded, for Expm1 is not the same to the last bit on all machines, and
	// what is encoded on one must fit another: TestAlphaIsPortable.
	return float64(float32(-math.Expm1(-2 / float64(c.Slots))))
}

// newKeys returns a sketch that counts nothing but knows keys.
func (c Config[K]) newKeys() (*heavykeeper.Sketch[K], error) {
	c.Candidates, c.Rows, c.Width = 1, 1, 1
	return c.newSketch()
}

// newSketch returns a sketch that tracks Candidates keys, or one more.
func (c Config[K]) newSketch() (*heavykeeper.Sketch[K], error) {
	// A Sketch for k keys tracks k + k/4 + 1.
	k := max(4*(c.Candidates-1)/5, 1)
	for k+k/4+1 < c.Candidates {
		k++
	}
	s, err := heavykeeper.NewSketch(heavykeeper.Config[K]{
		K:     k,
		Rows:  c.Rows,
		Width: c.Width,
		Base:  c.Base,
		Alpha: c.alpha(),
		Seed:  c.Seed,
		Hash:  c.Hash,
	})
	if err != nil {
		return nil, errors.New("window: " + strings.TrimPrefix(err.Error(), "heavykeeper: "))
	}
	return s, nil
}

package heavykeeper

import (
	"math"
	"math/bits"
	"sync"
)

// decay is the count-with-exponential-decay of Yang, Gong, Zhang et al.
// (USENIX ATC 2018): an occurrence that meets a cell of another key takes one
// off the owner's count c with probability b^-c, so that mice leave at once
// and elephants all but never. The cell is that of the paper's minimum
// version; weights are the deviation: rather than toss a coin for each of n
// occurrences, contest draws how many the next success takes, from the
// geometric distribution, which is the same law in one draw a success.
type decay struct {
	lnBase float64
	table  *decayTable
}

// decayTable holds b^-c as thresholds for a uniform 64-bit number, exact to
// 2^-53. At b = 1.08 it ends at 3e-9; what lies beyond is computed.
type decayTable [256]uint64

// defaultDecayTable serves every sketch of the default base.
var defaultDecayTable = sync.OnceValue(func() *decayTable { return newDecayTable(defaultBase) })

func newDecayTable(base float64) *decayTable {
	t := new(decayTable)
	for c := range t {
		// c = 0 saturates: a cell without a count has no owner to protect.
		t[c] = math.MaxUint64
		if c > 0 {
			t[c] = uint64(math.Ldexp(math.Exp(-float64(c)*math.Log(base)), 64))
		}
	}
	return t
}

func newDecay(base float64) decay {
	d := decay{lnBase: math.Log(base)}
	if base == defaultBase {
		d.table = defaultDecayTable()
	} else {
		d.table = newDecayTable(base)
	}
	return d
}

// probability returns b^-c.
func (d *decay) probability(c uint64) float64 {
	if c < uint64(len(d.table)) && d.table[c] >= 1<<53 {
		return float64(d.table[c]) * 0x1p-64 // as exact as the other
	}
	return math.Exp(-float64(c) * d.lnBase)
}

// hit reports whether one occurrence removes one from a count of c, given the
// uniform number r.
func (d *decay) hit(c, r uint64) bool {
	if c < uint64(len(d.table)) {
		return r < d.table[c]
	}
	// Exp only for the one in 2^28 that the table's last entry lets through.
	return r < d.table[len(d.table)-1] && float64(r) < math.Ldexp(d.probability(c), 64)
}

// contest lets n occurrences of another key meet a count of c. It returns what
// they leave of c and, once that is 0, how many of them remain, the one that
// removed the last included. It takes O(log n) draws: a count that n
// occurrences can bring down is at most about log n to the base b.
func (d *decay) contest(c uint64, n uint32, g *generator) (rest uint64, remain uint32) {
	if c == 0 {
		return 0, n
	}
	if n == 1 {
		if !d.hit(c, g.next()) {
			return c, 0
		}
		if c == 1 {
			return 0, 1
		}
		return c - 1, 0
	}
	for left := float64(n); c > 0; c-- {
		// Misses before the next hit; compared as floats, for at a large c
		// they exceed every integer.
		misses := math.Floor(math.Log(g.uniform()) / math.Log1p(-d.probability(c)))
		if !(misses < left) {
			return c, 0
		}
		left -= misses + 1
		remain = uint32(left) + 1
	}
	return 0, remain
}

// generator is xorshift64* (Vigna, "An experimental exploration of
// Marsaglia's xorshift generators, scrambled", 2016).
type generator uint64

func newGenerator(seed uint64) generator {
	return generator(mix(seed) | 1)
}

func (g *generator) next() uint64 {
	x := *g
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*g = x
	return uint64(x) * 0x2545f4914f6cdd1d
}

// uniform returns a number in (0, 1].
func (g *generator) uniform() float64 {
	return (float64(g.next()>>11) + 1) * 0x1p-53
}

// Fading is forward decay (Cormode, Shkapenyuk, Srivastava, Xu, "Forward
// Decay: A Practical Time Decay Model for Streaming Systems", ICDE 2009): old
// weights stay as they are and new ones grow. Weights are stored in units; an
// occurrence now weighs unit of them. When the unit has grown by 2^8 it is set
// back, and every stored weight is scaled down by as much.
const (
	firstUnit = 1 << 8
	limitUnit = 1 << 16
)

// fading is the weight of an occurrence now. The rounded unit defines what a
// fade does, so that bounds on faded weights are exact; setting the unit back
// changes no weight, as that is stored weight over unit.
type fading struct {
	alpha float64
	exact float64
	unit  uint64 // exact, rounded; always 1 if alpha is 0
}

func newFading(alpha float64) fading {
	f := fading{alpha: alpha}
	if alpha == 0 {
		f.set(1)
	} else {
		f.set(firstUnit)
	}
	return f
}

func (f *fading) set(exact float64) {
	f.exact = exact
	f.unit = max(uint64(math.RoundToEven(exact)), 1)
}

// fade moves on by one fade.
func (f *fading) fade() {
	// 2^62 is beyond what any weight survives.
	f.set(min(f.exact/(1-f.alpha), 1<<62))
}

// setBack divides the unit by about 2^bits and returns by what stored weights
// are to be multiplied.
func (f *fading) setBack(bits int) ratio {
	before := f.unit
	f.set(math.Ldexp(f.exact, -bits))
	return ratio{f.unit, before}
}

// interval is a lower and an upper bound of a weight in today's occurrences,
// whatever the unit of the sketch: in 2^-fractionBits of them where weights
// fade, else in whole ones. Intervals of several sketches add.
type interval struct{ lower, upper uint64 }

const fractionBits = 16

// interval returns bounds in units as an interval.
func (f *fading) interval(lower, upper uint64) interval {
	if f.alpha == 0 {
		return interval{lower, upper}
	}
	low, _ := mulDiv(lower, 1<<fractionBits, f.unit)
	high, rest := mulDiv(upper, 1<<fractionBits, f.unit)
	if upper == math.MaxUint64 {
		high = upper
	} else if rest > 0 {
		high = addSaturated(high, 1)
	}
	return interval{low, high}
}

func (a interval) plus(b interval) interval {
	return interval{addSaturated(a.lower, b.lower), addSaturated(a.upper, b.upper)}
}

// estimate returns a in whole occurrences: the lower bound rounded down, the
// upper up and the count, the lower, to nearest.
func (a interval) estimate(alpha float64) Estimate {
	if alpha == 0 {
		return Estimate{Count: a.lower, Lower: a.lower, Upper: a.upper}
	}
	e := Estimate{Lower: a.lower >> fractionBits, Upper: a.upper}
	e.Count = e.Lower + a.lower>>(fractionBits-1)&1
	if a.upper != math.MaxUint64 {
		e.Upper = a.upper >> fractionBits
		if a.upper&(1<<fractionBits-1) > 0 {
			e.Upper++
		}
	}
	return e
}

// mulDiv returns x*y/z and the remainder, or the largest uint64 where that
// overflows.
func mulDiv(x, y, z uint64) (quotient, remainder uint64) {
	hi, lo := bits.Mul64(x, y)
	if hi >= z {
		return math.MaxUint64, 0
	}
	return bits.Div64(hi, lo, z)
}

// ratio is a factor of at most 1 for stored weights.
type ratio struct{ num, den uint64 }

// down returns x times r, rounded down.
func (r ratio) down(x uint64) uint64 {
	y, _ := mulDiv(x, r.num, r.den)
	return y
}

// up returns x times r, rounded up.
func (r ratio) up(x uint64) uint64 {
	y, rest := mulDiv(x, r.num, r.den)
	if rest > 0 {
		y++
	}
	return y
}

// mulSaturated returns x*y, or the largest uint64 where that overflows.
func mulSaturated(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	if hi != 0 {
		return math.MaxUint64
	}
	return lo
}

// addSaturated returns x+y, or the largest uint64 where that overflows.
func addSaturated(x, y uint64) uint64 {
	sum, carry := bits.Add64(x, y, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

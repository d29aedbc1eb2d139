package window

import (
	"math"
	"math/bits"

	"github.com/heavykeeper-go/heavykeeper"
)

// view is what a counter's wheel holds of the window that ends with some slot,
// the current one or a later.
type view struct {
	left  int     // slots of the ring that are in the window: the latest ones
	least float64 // of their weights, that of the oldest
	whole bool    // every event of the sketch is in the window
}

// view returns what c holds of the window that ends with slot number, or with
// its own current slot if that is later.
func (c *counter[K]) view(number int64) view {
	if !c.started {
		return view{}
	}
	number = max(number, c.wheel.number)
	v := view{left: c.wheel.left(number)}
	if v.left > 0 {
		v.least = c.weights[c.wheel.position(v.left-1)]
		v.whole = uint64(number-c.oldest) < uint64(c.wheel.size)
	}
	return v
}

// most returns how many events can weigh no more than weight together, of
// which each weighs least or more. Neither is exact: the factor covers the
// rounding of products of up to 65536 of Sketch.FadeFactor.
func most(weight, least float64) uint64 {
	n := weight / least * (1 + 1e-10)
	if !(n < 1<<63) {
		return math.MaxUint64
	}
	return uint64(n)
}

// count returns the count of the key in a slot of the sketch in the slot of the
// window of an age.
func (c *counter[K]) count(age, slot int) uint64 {
	return uint64(c.counts[c.wheel.position(age)*c.stride+slot])
}

// tracked returns what is known of the key in a slot of the sketch: its counts
// and, as long as it was not tracked through the whole window, what the sketch
// knew of it before.
func (c *counter[K]) tracked(slot int, v view) heavykeeper.Estimate {
	sum, open := uint64(0), false
	for age := range v.left {
		n := c.count(age, slot)
		sum += n
		open = open || n == math.MaxUint32
	}
	e := heavykeeper.Estimate{Count: sum, Lower: sum, Upper: sum}
	if open {
		e.Upper = math.MaxUint64
	}
	b := &c.before[slot]
	age := c.wheel.at - int(b.at)
	if age < 0 {
		age += c.wheel.size
	}
	if b.upper == 0 || age >= v.left {
		return e
	}
	// Weights are those of now; the ratio is what it was when b was noted.
	least := v.least / c.weights[b.at]
	return plus(e, c.earlier(float64(b.lower), float64(b.upper), least, age, v))
}

// untracked returns what is known of a key that the sketch does not track.
func (c *counter[K]) untracked(key K, hash uint64, v view) heavykeeper.Estimate {
	if v.left == 0 {
		return heavykeeper.Estimate{}
	}
	lower, upper := c.sketch.Bounds(key, hash)
	return c.earlier(lower, upper, v.least, 0, v)
}

// earlier returns how many events are in the window of those that a sketch
// knew by their weight alone, between lower and upper, when the slot of an age
// was the current one and an event in the window weighed least or more.
//
// The count is that of a key that has always come at the same rate, whose
// weight is 1/alpha of a slot's events: a share of alpha lies in each slot up
// to that age, and they leave one by one. But a key that has just begun has
// fewer, and a count below the weight is closer for both than one above it.
// Also tried, on five streams: nothing; the whole weight until its slot
// leaves, which does better where keys change and worse where they are many;
// the steady share without the limit; half of each; a share that falls with
// age; and each of them from the middle of the bounds, or from upper, which
// are far worse: the error of a cell is other keys'.
func (c *counter[K]) earlier(lower, upper, least float64, age int, v view) heavykeeper.Estimate {
	e := heavykeeper.Estimate{Upper: most(upper, least)}
	if v.whole {
		e.Lower = min(uint64(math.Ceil(lower)), e.Upper)
	}
	steady := lower * min(c.alpha*float64(v.left-age), 1)
	e.Count = min(max(uint64(math.Round(steady)), e.Lower), e.Upper)
	return e
}

// estimate returns what is known of a key.
func (c *counter[K]) estimate(key K, hash uint64, v view) heavykeeper.Estimate {
	if slot := c.sketch.Slot(key, hash); slot >= 0 {
		return c.tracked(slot, v)
	}
	return c.untracked(key, hash, v)
}

// plus returns the sum of what two stripes know of a key.
func plus(a, b heavykeeper.Estimate) heavykeeper.Estimate {
	return heavykeeper.Estimate{
		Count: addSaturated(a.Count, b.Count),
		Lower: addSaturated(a.Lower, b.Lower),
		Upper: addSaturated(a.Upper, b.Upper),
	}
}

// addSaturated returns x+y, or the largest uint64 where that overflows.
func addSaturated(x, y uint64) uint64 {
	sum, carry := bits.Add64(x, y, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

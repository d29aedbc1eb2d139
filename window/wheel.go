package window

import (
	"math"
	"math/bits"
	"time"
)

// grid divides time into slots of equal length: slot n is
// [n*slot, (n+1)*slot) since 1970, whatever happens when, and n is negative
// before that.
//
// Times are placed by their monotonic reading if they have one, as the
// difference to start, so that setting the clock moves no boundary.
type grid struct {
	slot   time.Duration // at most maxSpan
	start  time.Time
	number int64         // of the slot that start is in
	offset time.Duration // of start in that slot
}

// maxSpan leaves room for adding two such durations.
const maxSpan = math.MaxInt64 / 4

func newGrid(start time.Time, slot time.Duration) grid {
	g := grid{slot: slot, start: start}
	g.number, g.offset = g.divide(start)
	return g
}

// since returns the time from start to t; where that is beyond maxSpan either
// way, only t itself is to be relied on.
func (g *grid) since(t time.Time) time.Duration { return t.Sub(g.start) }

// near reports whether since says all about a time.
func near(since time.Duration) bool { return since <= maxSpan && since >= -maxSpan }

// locate returns the slot that t is in, and t's offset in it. since must be
// g.since(t); t itself does not matter if that is near.
func (g *grid) locate(t time.Time, since time.Duration) (number int64, offset time.Duration) {
	if !near(since) {
		return g.divide(t)
	}
	n, rest := floorDiv(int64(since+g.offset), int64(g.slot))
	return addSigned(g.number, n), time.Duration(rest)
}

// divide locates t by its wall clock alone. Slots of a few nanoseconds run out
// of numbers some centuries from 1970; what lies beyond is in the last one.
func (g *grid) divide(t time.Time) (number int64, offset time.Duration) {
	seconds, nanoseconds := t.Unix(), uint64(t.Nanosecond())
	negative := seconds < 0
	if negative {
		// -x-1 of the nanoseconds x since 1970, which is not negative.
		seconds, nanoseconds = -(seconds + 1), 1e9-1-nanoseconds
	}
	hi, lo := bits.Mul64(uint64(seconds), 1e9)
	lo, carry := bits.Add64(lo, nanoseconds, 0)
	hi += carry
	quotient, remainder := uint64(math.MaxInt64), uint64(0)
	if hi < uint64(g.slot) {
		q, r := bits.Div64(hi, lo, uint64(g.slot))
		if q <= math.MaxInt64 {
			quotient, remainder = q, r
		}
	}
	if negative {
		return -int64(quotient) - 1, g.slot - 1 - time.Duration(remainder)
	}
	return int64(quotient), time.Duration(remainder)
}

// floorDiv returns the quotient rounded towards negative infinity, and the
// remainder, which is not negative. y must be positive.
func floorDiv(x, y int64) (quotient, remainder int64) {
	quotient, remainder = x/y, x%y
	if remainder < 0 {
		quotient, remainder = quotient-1, remainder+y
	}
	return quotient, remainder
}

// addSigned returns x+y, or the largest or smallest int64 where that overflows.
func addSigned(x, y int64) int64 {
	sum := x + y
	switch {
	case y > 0 && sum < x:
		return math.MaxInt64
	case y < 0 && sum > x:
		return math.MinInt64
	}
	return sum
}

// wheel is a ring of the latest slots of a grid. Each slot has a position in
// the ring, which passes to another slot when it has left the window.
//
// Numbers are compared by unsigned differences, which do not overflow however
// far they are apart.
type wheel struct {
	size   int
	number int64 // of the current slot, the latest
	at     int   // its position
}

// turn makes a later slot the current one and returns how many positions that
// has passed on to new slots, size at most: those of the ages below it.
func (w *wheel) turn(number int64) (passed int) {
	passed = w.size
	if ahead := uint64(number - w.number); ahead < uint64(w.size) {
		passed = int(ahead)
	}
	w.number = number
	if w.at += passed; w.at >= w.size {
		w.at -= w.size
	}
	return passed
}

// age returns how many slots number lies before the current one. ok is false
// if it has left the window. number must not be later than the current slot.
func (w *wheel) age(number int64) (age int, ok bool) {
	if behind := uint64(w.number - number); behind < uint64(w.size) {
		return int(behind), true
	}
	return 0, false
}

// position returns the ring position of the slot of an age, 0 <= age < size.
func (w *wheel) position(age int) int {
	if age <= w.at {
		return w.at - age
	}
	return w.at - age + w.size
}

// left returns how many of the ring's slots are in the window that ends with
// slot number: those of the ages below it.
func (w *wheel) left(number int64) int {
	if number <= w.number {
		return w.size
	}
	if ahead := uint64(number - w.number); ahead < uint64(w.size) {
		return w.size - int(ahead)
	}
	return 0
}

package window

import (
	"math"
	"time"

	"github.com/heavykeeper-go/heavykeeper"
)

// counter is one stripe of a HeavyKeeper: a fading sketch that nominates
// candidates, the keys it tracks, and a wheel that counts them slot by slot.
//
// What comes of a key before the sketch tracks it is in the sketch alone, with
// what it weighed then. An event that arrived during the slot at ring position
// i weighs at least weights[i] now; one that belongs to that slot arrived then
// or later.
type counter[K comparable] struct {
	// An event at a time of the grid in [from, to) belongs to the current
	// slot, and is not the first. from == to: that cannot be told so easily.
	from, to time.Duration

	sketch *heavykeeper.Sketch[K]
	wheel  wheel
	alpha  float64   // the sketch's
	stride int       // slots of the sketch
	counts []uint32  // by ring position and then sketch slot; saturated
	totals []uint64  // by ring position, of all keys
	before []carried // by sketch slot

	weights []float64 // by ring position
	started bool      // wheel has turned to the first event
	first   time.Time // of all events
	oldest  int64     // slot with an event since the sketch was empty

	past                 heavykeeper.Stats // sums of the sketch before it was last empty
	late, tooLate, turns uint64
}

// carried is what the sketch knew of a key's earlier events when it admitted
// it: bounds on their weight, upper 0 if there were none. It is of no more use
// when the slot of the admission has left the window.
type carried struct {
	lower, upper float32
	at           uint32 // ring position of the slot of the admission
}

// init makes a new counter of c, of a sketch that has no other.
func (c *counter[K]) init(sketch *heavykeeper.Sketch[K], slots int, alpha float64) {
	stride := sketch.Slots()
	*c = counter[K]{
		sketch:  sketch,
		wheel:   wheel{size: slots},
		alpha:   alpha,
		stride:  stride,
		counts:  make([]uint32, slots*stride),
		totals:  make([]uint64, slots),
		weights: make([]float64, slots),
		before:  make([]carried, stride),
	}
	c.clearRing()
}

// reset forgets everything.
func (c *counter[K]) reset() {
	c.empty()
	c.started, c.first = false, time.Time{}
	c.wheel, c.oldest = wheel{size: c.wheel.size}, 0
	c.from, c.to = 0, 0
	c.past = heavykeeper.Stats{}
	c.late, c.tooLate, c.turns = 0, 0, 0
}

// empty forgets all keys.
func (c *counter[K]) empty() {
	c.sketch.Reset()
	c.clearRing()
}

// clearRing forgets all that is known by ring position.
func (c *counter[K]) clearRing() {
	clear(c.counts)
	clear(c.totals)
	clear(c.before)
	for i := range c.weights {
		c.weights[i] = 1
	}
}

// add counts n occurrences of key in the slot at a ring position.
func (c *counter[K]) add(at int, key K, hash uint64, n uint32) {
	slot, admitted := c.sketch.Update(key, hash, n)
	if slot < 0 {
		if !c.sketch.Valid(key) {
			return
		}
	} else {
		if admitted {
			c.admit(slot, key, hash, n)
		}
		count := &c.counts[at*c.stride+slot]
		if *count += n; *count < n {
			*count = math.MaxUint32
		}
	}
	c.totals[at] = addSaturated(c.totals[at], uint64(n))
}

// admit gives the sketch's slot to a key which it tracks since an update with
// n occurrences.
func (c *counter[K]) admit(slot int, key K, hash uint64, n uint32) {
	for i := slot; i < len(c.counts); i += c.stride {
		c.counts[i] = 0
	}
	lower, upper := c.sketch.Bounds(key, hash)
	// Some of the n may have been spent on the decay of a cell: then lower
	// has less than n of them.
	c.before[slot] = carried{
		lower: roundDown(max(lower-float64(n), 0)),
		upper: roundUp(max(upper-float64(n), 0)),
		at:    uint32(c.wheel.at),
	}
}

// enter returns the ring position of the slot of an event that is not in
// [from, to), having turned the wheel if that slot is to come. ok is false if
// the slot has left the window. t need not be set if since is near.
func (c *counter[K]) enter(g *grid, t time.Time, since time.Duration, n uint32) (at int, ok bool) {
	number, offset := g.locate(t, since)
	if near(since) {
		t = g.start.Add(since)
	}
	if !c.started {
		c.started, c.first = true, t
		c.wheel.number, c.oldest = number, number
	}
	if number > c.wheel.number {
		c.turn(number)
	}
	age, ok := c.wheel.age(number)
	if !ok {
		c.tooLate = addSaturated(c.tooLate, uint64(n))
		return 0, false
	}
	if age > 0 {
		c.late = addSaturated(c.late, uint64(n))
	}
	if t.Before(c.first) {
		c.first = t
	}
	c.oldest = min(c.oldest, number)
	if age == 0 {
		c.remember(g, since, offset)
	}
	return c.wheel.position(age), true
}

// remember sets from and to for the slot of an event, the current one.
func (c *counter[K]) remember(g *grid, since, offset time.Duration) {
	c.from, c.to = 0, 0
	if !near(since) {
		return
	}
	// The first event ever may yet be found to have come later than another.
	c.from = max(since-offset, g.since(c.first))
	c.to = since - offset + g.slot
}

// turn moves on to a later slot. O(1 + Candidates x the slots that leave the
// window), and O(Rows x Width) if that is all of them.
func (c *counter[K]) turn(number int64) {
	c.turns++
	passed := c.wheel.turn(number)
	if passed == c.wheel.size {
		c.retire()
		c.oldest = number
		return
	}
	factor := 1.0
	for range passed {
		factor *= c.sketch.FadeFactor()
		c.sketch.Fade()
	}
	for i := range c.weights {
		c.weights[i] *= factor
	}
	for age := range passed {
		c.clear(c.wheel.position(age))
	}
}

// clear makes a ring position ready for another slot.
func (c *counter[K]) clear(at int) {
	clear(c.counts[at*c.stride : (at+1)*c.stride])
	c.totals[at], c.weights[at] = 0, 1
	for i := range c.before {
		if c.before[i].at == uint32(at) {
			c.before[i] = carried{}
		}
	}
}

// retire forgets all keys, but not how many there were.
func (c *counter[K]) retire() {
	c.past = c.stats()
	c.empty()
}

// stats returns the Stats of the sketch, with sums since the counter was new.
func (c *counter[K]) stats() heavykeeper.Stats {
	s := c.sketch.Stats()
	s.Total = addSaturated(s.Total, c.past.Total)
	s.Admissions = addSaturated(s.Admissions, c.past.Admissions)
	s.Evictions = addSaturated(s.Evictions, c.past.Evictions)
	s.Ignored = addSaturated(s.Ignored, c.past.Ignored)
	return s
}

// roundDown returns x as a float32 that is not larger.
func roundDown(x float64) float32 {
	y := float32(x)
	if float64(y) > x {
		y = math.Nextafter32(y, 0)
	}
	return y
}

// roundUp returns x as a float32 that is not smaller.
func roundUp(x float64) float32 {
	y := float32(x)
	if float64(y) < x {
		y = math.Nextafter32(y, float32(math.Inf(1)))
	}
	return y
}

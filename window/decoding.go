package window

import (
	"fmt"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/heavykeeper-go/heavykeeper"
	"github.com/heavykeeper-go/heavykeeper/internal/stripe"
)

// UnmarshalBinary makes h the HeavyKeeper that data encodes. The zero value
// takes on its parameters, with the default Hash; one of [New] must have been
// made with the same, and any Hash that gives equal hashes; as the default of
// Stripes goes by the machine, give a number if another is to decode it so. On
// error,
// [heavykeeper.ErrFormat], [heavykeeper.ErrMismatch] or
// [heavykeeper.ErrKeyType], h is as it was. Nothing of data is retained. It
// allocates at most about twice what data is long, and some KB for each stripe,
// whatever data says of sizes.
//
// Slots are numbered from 1970, so that time goes on meanwhile: what has left
// the window since it was encoded is not reported any more, wherever and
// whenever it is decoded.
//
// Stripes are replaced one after another. It must not run while other
// goroutines use a zero value.
func (h *HeavyKeeper[K]) UnmarshalBinary(data []byte) error {
	var own *Config[K]
	if h.stripes != nil {
		own = &h.config
	}
	d, err := newDecoder(data, own)
	if err != nil {
		return err
	}
	restored := make([]counter[K], d.config.Stripes)
	for i := range restored {
		if err := d.counter(&restored[i]); err != nil {
			return err
		}
		restored[i].sketch.Stream(uint64(i))
	}
	if len(d.data) > 0 {
		return fmt.Errorf("%w: %d bytes too many", heavykeeper.ErrFormat, len(d.data))
	}
	if own != nil {
		for i, c := range h.stripes.Locked() {
			*c = restored[i]
		}
		h.restart()
		return nil
	}
	keys, err := d.config.newKeys()
	if err != nil {
		return err
	}
	h.config, h.grid, h.keys = d.config, newGrid(time.Now(), d.config.Slot), keys
	next := 0
	h.stripes = stripe.New(len(restored), func(c *counter[K]) {
		*c = restored[next]
		next++
	})
	h.restart()
	return nil
}

// decoder reads an encoding from front to back.
type decoder[K comparable] struct {
	data   []byte // what is left, without the trailer
	config Config[K]
	sketch *heavykeeper.Sketch[K] // one with the parameters of all stripes
}

// newDecoder checks what is known of data before any stripe is decoded: its
// checksum, the header, and that as much follows as that says. own is the
// configuration of the receiver, nil for a zero value.
func newDecoder[K comparable](data []byte, own *Config[K]) (*decoder[K], error) {
	if len(data) < headerBytes+trailerBytes {
		return nil, fmt.Errorf("%w: %d bytes, a header and trailer take %d",
			heavykeeper.ErrFormat, len(data), headerBytes+trailerBytes)
	}
	body := data[:len(data)-trailerBytes]
	if string(data[:4]) != magic || data[4] != version {
		return nil, fmt.Errorf("%w: starts with %q, version %d", heavykeeper.ErrFormat, data[:4], data[4])
	}
	if got, want := little.Uint64(data[len(body):]), xxhash.Sum64(body); got != want {
		return nil, fmt.Errorf("%w: checksum %016x, the data's is %016x", heavykeeper.ErrFormat, got, want)
	}
	if data[5] != object {
		return nil, fmt.Errorf("%w: object %d, want %d", heavykeeper.ErrMismatch, data[5], object)
	}
	if data[6] != 0 || data[7] != 0 {
		return nil, fmt.Errorf("%w: %d, %d instead of zeros", heavykeeper.ErrFormat, data[6], data[7])
	}
	d := &decoder[K]{data: body[8:]}
	if err := d.header(own); err != nil {
		return nil, err
	}
	return d, d.sizes()
}

// header reads the parameters.
func (d *decoder[K]) header(own *Config[K]) error {
	c := &d.config
	for _, field := range []*int{&c.K, &c.Slots, &c.Candidates, &c.Rows, &c.Width, &c.Stripes} {
		*field = int(min(d.uint32(), math.MaxInt32))
	}
	c.Slot = time.Duration(d.uint64())
	c.Base = math.Float64frombits(d.uint64())
	c.Seed = d.uint64()
	if c.Base == 0 { // which a sketch would take for its default
		return fmt.Errorf("%w: Base = 0", heavykeeper.ErrFormat)
	}
	if err := c.validate(); err != nil {
		return fmt.Errorf("%w: %w", heavykeeper.ErrFormat, err)
	}
	if own == nil {
		return nil
	}
	for i, p := range own.parameters() {
		if got := c.parameters()[i]; got != p {
			return fmt.Errorf("%w: %s = %v, the receiver's is %v", heavykeeper.ErrMismatch, p.field, got.value, p.value)
		}
	}
	d.config = *own
	return nil
}

// parameter is a field of a Config with its value.
type parameter struct {
	field string
	value any
}

// parameters returns all but Hash.
func (c *Config[K]) parameters() []parameter {
	return []parameter{
		{"K", c.K}, {"Slots", c.Slots}, {"Slot", c.Slot}, {"Candidates", c.Candidates}, {"Rows", c.Rows},
		{"Width", c.Width}, {"Stripes", c.Stripes}, {"Base", c.Base}, {"Seed", c.Seed},
	}
}

// sizes checks that as many bytes follow as the header says at least, and sets
// sketch.
func (d *decoder[K]) sizes() error {
	c, have := &d.config, uint64(len(d.data))
	if uint64(c.Rows)*uint64(c.Width) > have/cellBytes {
		return fmt.Errorf("%w: %d bytes, %d x %d cells take more", heavykeeper.ErrFormat, have, c.Rows, c.Width)
	}
	sketch, err := c.newSketch()
	if err != nil {
		return fmt.Errorf("%w: %w", heavykeeper.ErrFormat, err)
	}
	stride, slots := uint64(sketch.Slots()), uint64(c.Slots)
	need := uint64(c.Stripes) * (8 + stripeBytes + uint64(c.Rows)*uint64(c.Width)*cellBytes +
		slots*ringBytes + stride*carriedBytes + slots*stride*countBytes)
	if need > have {
		return fmt.Errorf("%w: %d bytes, %d stripes of %d x %d cells and %d x %d counts take %d",
			heavykeeper.ErrFormat, have, c.Stripes, c.Rows, c.Width, slots, stride, need)
	}
	d.sketch = sketch
	return nil
}

// take returns the next n bytes, which must be there.
func (d *decoder[K]) take(n int) []byte {
	b := d.data[:n:n]
	d.data = d.data[n:]
	return b
}

func (d *decoder[K]) uint32() uint32   { return little.Uint32(d.take(4)) }
func (d *decoder[K]) uint64() uint64   { return little.Uint64(d.take(8)) }
func (d *decoder[K]) float32() float32 { return math.Float32frombits(d.uint32()) }

// counter makes c the next stripe.
func (d *decoder[K]) counter(c *counter[K]) error {
	n, have := uint64(0), uint64(len(d.data))
	if have >= 8 {
		n = d.uint64()
	}
	stride, slots := d.sketch.Slots(), d.config.Slots
	rest := stripeBytes + uint64(slots)*ringBytes + uint64(stride)*carriedBytes + uint64(slots)*uint64(stride)*countBytes
	if have < 8+rest || n > have-8-rest {
		return fmt.Errorf("%w: %d bytes left, a sketch of %d and its counts take more", heavykeeper.ErrFormat, have, n)
	}
	if err := d.sketch.UnmarshalBinary(d.take(int(n))); err != nil {
		return err
	}
	sketch := *d.sketch // the next one shares nothing with it
	c.init(&sketch, slots, d.config.alpha())
	if err := d.time(c); err != nil {
		return err
	}
	for _, field := range []*uint64{
		&c.past.Total, &c.past.Admissions, &c.past.Evictions, &c.past.Ignored, &c.late, &c.tooLate, &c.turns,
	} {
		*field = d.uint64()
	}
	if err := d.ring(c); err != nil {
		return err
	}
	if err := d.before(c); err != nil {
		return err
	}
	return d.counts(c)
}

// time reads where the wheel stands.
func (d *decoder[K]) time(c *counter[K]) error {
	number, oldest, seconds := int64(d.uint64()), int64(d.uint64()), int64(d.uint64())
	nanoseconds, at := d.uint32(), d.uint32()
	started := d.uint64()
	if started == 0 && (number != 0 || oldest != 0 || seconds != 0 || nanoseconds != 0 || at != 0) ||
		started > 1 || at >= uint32(c.wheel.size) || nanoseconds >= 1e9 || oldest > number {
		return fmt.Errorf("%w: slot %d, earliest %d, at %d, first event at %d s and %d ns, flags %#x",
			heavykeeper.ErrFormat, number, oldest, at, seconds, nanoseconds, started)
	}
	if started == 0 {
		if total := c.sketch.Stats().Total; total != 0 {
			return fmt.Errorf("%w: no event, in a total of %d", heavykeeper.ErrFormat, total)
		}
		return nil
	}
	c.started = true
	c.wheel.number, c.wheel.at, c.oldest = number, int(at), oldest
	c.first = time.Unix(seconds, int64(nanoseconds))
	return nil
}

// ring reads what there is for each slot of the window.
func (d *decoder[K]) ring(c *counter[K]) error {
	for i := range c.totals {
		c.totals[i], c.weights[i] = d.uint64(), math.Float64frombits(d.uint64())
	}
	sum, later := uint64(0), 1.0
	for age := range c.totals {
		at := c.wheel.position(age)
		sum = addSaturated(sum, c.totals[at])
		// No event weighs more than a later one, nor than one of now.
		if w := c.weights[at]; !(w > 0 && w <= later) || age == 0 && w != 1 {
			return fmt.Errorf("%w: an event of %d slots ago weighs %v, a later one %v", heavykeeper.ErrFormat, age, w, later)
		}
		later = c.weights[at]
	}
	if total := c.sketch.Stats().Total; sum > total {
		return fmt.Errorf("%w: a window of %d in a total of %d", heavykeeper.ErrFormat, sum, total)
	}
	return nil
}

// before reads what was known of each tracked key when it was admitted.
func (d *decoder[K]) before(c *counter[K]) error {
	for slot := range c.before {
		b := carried{lower: d.float32(), upper: d.float32(), at: d.uint32()}
		_, tracked := c.sketch.Key(slot)
		if !(b.lower >= 0 && b.lower <= b.upper && b.lower < 1<<63) || b.at >= uint32(c.wheel.size) ||
			!tracked && b != (carried{}) {
			return fmt.Errorf("%w: in slot %d, tracked %v, before: %+v", heavykeeper.ErrFormat, slot, tracked, b)
		}
		c.before[slot] = b
	}
	return nil
}

// counts reads the counts of tracked keys.
func (d *decoder[K]) counts(c *counter[K]) error {
	tracked := 0
	for _, ok := c.sketch.Key(tracked); ok; _, ok = c.sketch.Key(tracked) {
		tracked++
	}
	for at := range c.totals {
		sum := uint64(0)
		for slot := range c.stride {
			n := d.uint32()
			if slot >= tracked && n != 0 {
				return fmt.Errorf("%w: a count of %d in slot %d of %d", heavykeeper.ErrFormat, n, slot, tracked)
			}
			sum += uint64(n)
			c.counts[at*c.stride+slot] = n
		}
		if sum > c.totals[at] {
			return fmt.Errorf("%w: tracked keys count %d of %d at ring position %d", heavykeeper.ErrFormat, sum, c.totals[at], at)
		}
	}
	return nil
}

package heavykeeper

import (
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/heavykeeper-go/heavykeeper/internal/stripe"
)

// UnmarshalBinary makes s the sketch that data encodes. The zero value takes
// on its parameters, with the default Hash and no hooks; a sketch of
// [NewSketch] must have been made with the same, and any Hash that gives equal
// hashes. On error, [ErrFormat], [ErrMismatch] or [ErrKeyType], s is as it was.
// Nothing of data is retained. It allocates little more than data is long,
// whatever data says of sizes, and takes time in proportion: thousands of keys
// that share their hashes are refused.
func (s *Sketch[K]) UnmarshalBinary(data []byte) error {
	var own *Config[K]
	if s.config.K > 0 {
		own = &s.config
	}
	d, err := newDecoder(data, sketchObject, own)
	if err != nil {
		return err
	}
	restored, err := d.stripe()
	if err != nil {
		return err
	}
	if err := d.end(); err != nil {
		return err
	}
	*s = *restored
	return nil
}

// UnmarshalBinary makes h the HeavyKeeper that data encodes; see
// [Sketch.UnmarshalBinary]. The number of stripes may differ, as it does by
// default on machines of other sizes: h keeps its own, and stripes that it does
// not have are merged into those it has. Stripes are replaced one after
// another. It must not run while other goroutines use a zero value.
func (h *HeavyKeeper[K]) UnmarshalBinary(data []byte) error {
	var own *Config[K]
	if h.stripes != nil {
		own = &h.config
	}
	d, err := newDecoder(data, keeperObject, own)
	if err != nil {
		return err
	}
	restored := make([]*Sketch[K], d.config.Stripes)
	for i := range restored {
		if restored[i], err = d.stripe(); err != nil {
			return err
		}
	}
	if err := d.end(); err != nil {
		return err
	}
	if own == nil {
		h.config, h.keys = d.config, d.keys
		next := 0
		h.stripes = stripe.New(len(restored), func(s *Sketch[K]) {
			*s = *restored[next]
			next++
		})
		return nil
	}
	// The first of those that share a stripe of h, and then the rest as by Merge.
	n := h.stripes.Len()
	for _, s := range restored {
		s.config.OnAdmit, s.config.OnEvict = nil, nil // no update, no call
	}
	for i := len(restored) - 1; i >= n; i-- {
		restored[i%n].merge(restored[i])
	}
	for i, s := range h.stripes.Locked() {
		if i < len(restored) {
			*s = *restored[i]
			s.config = h.config
		} else {
			s.Reset()
		}
	}
	return nil
}

// decoder reads an encoding from front to back.
type decoder[K comparable] struct {
	data   []byte // what is left, without the trailer
	config Config[K]
	keys   keys[K]
	codec  codec[K]
	decay  decay

	stripes uint64 // read so far
}

// newDecoder checks what is known of data before any stripe is decoded: its
// checksum, the header, and that as much follows as that says. own is the
// configuration of the receiver, nil for a zero value.
func newDecoder[K comparable](data []byte, object byte, own *Config[K]) (*decoder[K], error) {
	var hash func(K) uint64
	if own != nil {
		hash = own.Hash
	}
	c, err := newCodec(hash)
	if err != nil {
		return nil, err
	}
	if len(data) < headerBytes+trailerBytes {
		return nil, fmt.Errorf("%w: %d bytes, a header and trailer take %d", ErrFormat, len(data), headerBytes+trailerBytes)
	}
	body := data[:len(data)-trailerBytes]
	if string(data[:4]) != magic || data[4] != version {
		return nil, fmt.Errorf("%w: starts with %q, version %d", ErrFormat, data[:4], data[4])
	}
	if got, want := little.Uint64(data[len(body):]), xxhash.Sum64(body); got != want {
		return nil, fmt.Errorf("%w: checksum %016x, the data's is %016x", ErrFormat, got, want)
	}
	if data[5] != object || data[6] != c.form || data[7] != c.size {
		return nil, fmt.Errorf("%w: object %d with keys of form %d and size %d, want %d, %d and %d",
			ErrMismatch, data[5], data[6], data[7], object, c.form, c.size)
	}
	d := &decoder[K]{data: body[8:], codec: c}
	if err := d.header(own); err != nil {
		return nil, err
	}
	if object == sketchObject && d.config.Stripes != 1 {
		return nil, fmt.Errorf("%w: a sketch of %d stripes", ErrFormat, d.config.Stripes)
	}
	stripeSize := stripeBytes + cellBytes*uint64(d.config.Rows)*uint64(d.config.Width)
	if need := stripeSize * uint64(d.config.Stripes); need > uint64(len(d.data)) {
		return nil, fmt.Errorf("%w: %d bytes, %d stripes of %d x %d cells take %d",
			ErrFormat, len(d.data), d.config.Stripes, d.config.Rows, d.config.Width, need)
	}
	d.decay = newDecay(d.config.Base)
	return d, nil
}

// header reads the parameters and the hash of the zero key.
func (d *decoder[K]) header(own *Config[K]) error {
	var c Config[K]
	for _, field := range []*int{&c.K, &c.Rows, &c.Width, &c.Stripes} {
		*field = int(min(d.uint32(), math.MaxInt32))
	}
	c.Base, c.Alpha = math.Float64frombits(d.uint64()), math.Float64frombits(d.uint64())
	c.Seed = d.uint64()
	if err := c.validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if math.Signbit(c.Alpha) {
		return fmt.Errorf("%w: Alpha = -0", ErrFormat)
	}
	if own != nil {
		if err := requireEqual(ErrMismatch, c.shape(), own.shape()); err != nil {
			return err
		}
		stripes := c.Stripes
		c = *own
		c.Stripes = stripes
	}
	d.config, d.keys = c, newKeys(c)
	var zero K
	if got, want := d.uint64(), d.keys.hash(zero); got != want {
		return fmt.Errorf("%w: the zero key hashes to %016x, here to %016x", ErrMismatch, got, want)
	}
	return nil
}

// take returns the next n bytes, which must be there.
func (d *decoder[K]) take(n int) []byte {
	b := d.data[:n:n]
	d.data = d.data[n:]
	return b
}

func (d *decoder[K]) uint32() uint32 { return little.Uint32(d.take(4)) }
func (d *decoder[K]) uint64() uint64 { return little.Uint64(d.take(8)) }

// need reports whether n items of the given size can follow.
func (d *decoder[K]) need(what string, n, size uint64) error {
	if n*size > uint64(len(d.data)) {
		return fmt.Errorf("%w: %d bytes left, %d %s take %d", ErrFormat, len(d.data), n, what, n*size)
	}
	return nil
}

func (d *decoder[K]) end() error {
	if len(d.data) > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrFormat, len(d.data))
	}
	return nil
}

// stripe reads one stripe.
func (d *decoder[K]) stripe() (*Sketch[K], error) {
	if err := d.need("stripes", 1, stripeBytes); err != nil {
		return nil, err
	}
	s := &Sketch[K]{start: newGenerator(d.config.Seed + d.stripes), keys: d.keys, decay: d.decay, config: d.config, fading: fading{alpha: d.config.Alpha}}
	exact := math.Float64frombits(d.uint64())
	if !(exact >= 0.5 && exact < limitUnit) || d.config.Alpha == 0 && exact != 1 {
		return nil, fmt.Errorf("%w: unit %v", ErrFormat, exact)
	}
	d.stripes++
	s.fading.set(exact)
	s.random = generator(d.uint64())
	for _, field := range []*uint64{
		&s.total, &s.faded, &s.quantum, &s.misses, &s.excess, &s.admissions, &s.evictions, &s.ignored, &s.fraction,
	} {
		*field = d.uint64()
	}
	flags, n := d.uint32(), d.uint32()
	s.inexact, s.merged = flags&inexactFlag != 0, flags&mergedFlag != 0
	if s.excess/max(s.misses, 1) > math.MaxUint32 {
		return nil, fmt.Errorf("%w: %d misses with an excess of %d", ErrFormat, s.misses, s.excess)
	}
	if s.random == 0 || s.quantum-1 > math.MaxUint32 || flags > inexactFlag|mergedFlag|saturatedFlag {
		return nil, fmt.Errorf("%w: random state %d, quantum %d, flags %#x", ErrFormat, s.random, s.quantum, flags)
	}
	if err := d.entries(s, n); err != nil {
		return nil, err
	}
	if err := d.heap(s); err != nil {
		return nil, err
	}
	if err := d.cells(s); err != nil {
		return nil, err
	}
	if s.flags() != flags {
		return nil, fmt.Errorf("%w: flags %#x of a stripe with %#x", ErrFormat, flags, s.flags())
	}
	return s, nil
}

// Tracked keys may be this far from their homes in the index, in sum. The mean
// of what hashes well is below one; a thousand keys of one hash are let pass.
const (
	freeDistance   = 1 << 20
	distancePerKey = 64
)

// entries reads n tracked keys.
func (d *decoder[K]) entries(s *Sketch[K], n uint32) error {
	if int64(n) > int64(slots(d.config.K)) {
		return fmt.Errorf("%w: %d tracked keys with K = %d", ErrFormat, n, d.config.K)
	}
	if err := d.need("tracked keys", uint64(n), entryBytes+nodeBytes); err != nil {
		return err
	}
	s.tracked = newTracked[K](slots(d.config.K), max(int(n), 1), ample(d.config.Rows*d.config.Width))
	sum, distance := uint64(0), 0
	for range n {
		if err := d.need("tracked keys", 1, entryBytes); err != nil {
			return err
		}
		h := d.uint64()
		e := entry[K]{home: uint32(h >> 32), count: d.uint64(), slack: d.uint32()}
		size := d.uint32()
		if err := d.need("bytes of a key", uint64(size), 1); err != nil {
			return err
		}
		var err error
		if e.key, err = d.codec.decode(d.take(int(size))); err != nil {
			return err
		}
		if !s.keys.valid(e.key) {
			return fmt.Errorf("%w: key %s does not equal itself", ErrFormat, quoted(e.key))
		}
		if here := s.keys.hash(e.key); here != h {
			return fmt.Errorf("%w: key %s hashes to %016x, here to %016x", ErrMismatch, quoted(e.key), h, here)
		}
		if s.tracked.find(e.key, h) >= 0 {
			return fmt.Errorf("%w: key %s twice", ErrFormat, quoted(e.key))
		}
		sum = addSaturated(sum, e.count)
		s.tracked.entries = append(s.tracked.entries, e)
		// Keys chosen to share a place in the index would take minutes.
		distance += s.tracked.link(len(s.tracked.entries)-1, h)
		if distance > freeDistance+distancePerKey*len(s.tracked.entries) {
			return fmt.Errorf("%w: %d tracked keys whose hashes are alike", ErrFormat, len(s.tracked.entries))
		}
	}
	// Otherwise keys that share a fingerprint may have been credited with more.
	if d.config.Alpha == 0 && !s.inexact && sum != s.total {
		return fmt.Errorf("%w: exact, with tracked keys of %d in a total of %d", ErrFormat, sum, s.total)
	}
	return nil
}

// heap reads the heap's nodes, one for each entry.
func (d *decoder[K]) heap(s *Sketch[K]) error {
	t := &s.tracked
	n := len(t.entries)
	if err := d.need("heap nodes", uint64(n), nodeBytes); err != nil {
		return err
	}
	used := make([]bool, n)
	for i := range n {
		seen, slot := d.uint64(), d.uint32()
		if slot >= uint32(n) || used[slot] {
			return fmt.Errorf("%w: heap node %d is of slot %d of %d", ErrFormat, i, slot, n)
		}
		used[slot] = true
		if seen > t.entries[slot].count || i > 0 && seen < t.seen[(i-1)/2] {
			return fmt.Errorf("%w: heap node %d has seen %d of %d", ErrFormat, i, seen, t.entries[slot].count)
		}
		t.seen, t.heap = append(t.seen, seen), append(t.heap, slot)
	}
	return nil
}

// cells reads the rows.
func (d *decoder[K]) cells(s *Sketch[K]) error {
	if err := d.need("cells", uint64(d.config.Rows)*uint64(d.config.Width), cellBytes); err != nil {
		return err
	}
	s.rows = newRows(d.config.Rows, d.config.Width, d.config.Seed)
	for i := range s.rows.cells {
		c := &s.rows.cells[i]
		c.fingerprint, c.count, c.err = d.uint32(), d.uint32(), d.uint32()
		s.rows.saturated = s.rows.saturated || c.err == saturated
		if !s.inexact && *c != (cell{}) {
			return fmt.Errorf("%w: exact, with cell %d in use: %+v", ErrFormat, i, *c)
		}
	}
	return nil
}

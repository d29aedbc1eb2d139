package window

import (
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"
)

// The encoding, version 1. Integers are little-endian, floats IEEE 754. Ring
// positions, and slots of the sketch, come from 0 upwards.
//
//	header
//	   4  "HKpr"
//	   1  version, 1
//	   1  object: 3 window (1 and 2 are those of package heavykeeper)
//	   2  zero
//	   4  K
//	   4  Slots
//	   4  Candidates
//	   4  Rows
//	   4  Width
//	   4  Stripes
//	   8  Slot, in nanoseconds
//	   8  Base
//	   8  Seed
//	for each stripe
//	   8  bytes of the sketch
//	   n  the sketch: what heavykeeper.Sketch.MarshalBinary returns
//	   8  number of the current slot
//	   8  number of the earliest slot with an event that the sketch has seen
//	   8  time of the first event, in seconds since 1970
//	   4  and nanoseconds
//	   4  ring position of the current slot
//	   4  1 if there was an event, else all of these are 0
//	   4  zero
//	   8  total weight before the sketch was last empty
//	   8  admissions before
//	   8  evictions before
//	   8  ignored updates before
//	   8  weight that came late
//	   8  weight that came too late
//	   8  turns
//	   for each ring position
//	      8  weight of all events
//	      8  least weight of an event there, in those of now
//	   for each slot of the sketch
//	      4  lower bound of the key's weight when it was admitted
//	      4  upper bound
//	      4  ring position of the slot of the admission
//	   for each ring position
//	      for each slot of the sketch
//	         4  count
//	trailer
//	   8  xxhash of everything before
const (
	magic   = "HKpr"
	version = 1
	object  = 3

	headerBytes  = 56
	stripeBytes  = 96 // without the sketch, and what there is many of
	ringBytes    = 16
	carriedBytes = 12
	countBytes   = 4
	cellBytes    = 12 // in the encoding of a sketch
	trailerBytes = 8
)

var little = binary.LittleEndian

// MarshalBinary returns an encoding of h that UnmarshalBinary restores: with
// equal answers at equal times and, given equal updates, an equal future on
// machines of the same architecture. It takes a little more than the sizes of
// the package comment. It fails with [heavykeeper.ErrKeyType], or with an error
// of a key's own encoding.
//
// Stripes are encoded one after another while updates go on: each as it is at
// one moment, so that an update that runs meanwhile is in the encoding or not,
// in full.
func (h *HeavyKeeper[K]) MarshalBinary() ([]byte, error) { return h.AppendBinary(nil) }

// AppendBinary appends what MarshalBinary returns to dst.
func (h *HeavyKeeper[K]) AppendBinary(dst []byte) ([]byte, error) {
	start := len(dst)
	out := h.config.appendHeader(dst)
	var err error
	for _, c := range h.stripes.Locked() {
		if out, err = c.append(out); err != nil {
			return dst, err
		}
	}
	return little.AppendUint64(out, xxhash.Sum64(out[start:])), nil
}

func (c *Config[K]) appendHeader(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = append(dst, version, object, 0, 0)
	for _, x := range []int{c.K, c.Slots, c.Candidates, c.Rows, c.Width, c.Stripes} {
		dst = little.AppendUint32(dst, uint32(x))
	}
	dst = little.AppendUint64(dst, uint64(c.Slot))
	dst = little.AppendUint64(dst, math.Float64bits(c.Base))
	return little.AppendUint64(dst, c.Seed)
}

// append appends a stripe.
func (c *counter[K]) append(dst []byte) ([]byte, error) {
	dst = little.AppendUint64(dst, 0)
	start := len(dst)
	dst, err := c.sketch.AppendBinary(dst)
	if err != nil {
		return dst, err
	}
	little.PutUint64(dst[start-8:], uint64(len(dst)-start))
	dst = c.appendTime(dst)
	for _, x := range []uint64{
		c.past.Total, c.past.Admissions, c.past.Evictions, c.past.Ignored, c.late, c.tooLate, c.turns,
	} {
		dst = little.AppendUint64(dst, x)
	}
	for i := range c.totals {
		dst = little.AppendUint64(dst, c.totals[i])
		dst = little.AppendUint64(dst, math.Float64bits(c.weights[i]))
	}
	for i := range c.before {
		b := &c.before[i]
		dst = little.AppendUint32(dst, math.Float32bits(b.lower))
		dst = little.AppendUint32(dst, math.Float32bits(b.upper))
		dst = little.AppendUint32(dst, b.at)
	}
	for _, n := range c.counts {
		dst = little.AppendUint32(dst, n)
	}
	return dst, nil
}

// appendTime appends where the wheel stands. The wall clock's reading of first
// says all: counter.enter took it from the grid, which goes by that of start.
func (c *counter[K]) appendTime(dst []byte) []byte {
	if !c.started {
		return append(dst, make([]byte, 40)...)
	}
	dst = little.AppendUint64(dst, uint64(c.wheel.number))
	dst = little.AppendUint64(dst, uint64(c.oldest))
	dst = little.AppendUint64(dst, uint64(c.first.Unix()))
	dst = little.AppendUint32(dst, uint32(c.first.Nanosecond()))
	dst = little.AppendUint32(dst, uint32(c.wheel.at))
	return little.AppendUint64(dst, 1)
}

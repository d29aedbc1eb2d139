package heavykeeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Errors of the encoding. They come wrapped, with the figures.
var (
	// ErrFormat means that data is not what MarshalBinary returns: cut short,
	// damaged, or made up. UnmarshalBinary returns it.
	ErrFormat = errors.New("heavykeeper: bad encoding")
	// ErrMismatch means that data is of an object with other parameters or
	// another key type, Seed or Hash. UnmarshalBinary returns it.
	ErrMismatch = errors.New("heavykeeper: encoding of another object")
	// ErrKeyType means that keys of a type have no encoding: it is neither a
	// string nor an integer type, and does not implement
	// [encoding.BinaryAppender] or [encoding.BinaryMarshaler] and
	// [encoding.BinaryUnmarshaler], or there is no Config.Hash for it: the
	// default one is of the process, and no other could decode what it has
	// encoded. All methods of the encoding return it.
	ErrKeyType = errors.New("heavykeeper: keys have no encoding")
)

// The encoding, version 1. Integers are little-endian, floats IEEE 754.
//
//	header
//	   4  "HKpr"
//	   1  version, 1
//	   1  object: 1 Sketch, 2 HeavyKeeper
//	   1  form of a key: 1 string, 2 integer, 3 its own
//	   1  bytes of an integer key, 0 for the other forms
//	   4  K
//	   4  Rows
//	   4  Width
//	   4  Stripes, 1 for a Sketch
//	   8  Base
//	   8  Alpha
//	   8  Seed
//	   8  hash of the zero key, mixed with Seed
//	for each stripe
//	   8  exact unit of the fading
//	   8  state of the random generator
//	   8  total weight seen, unfaded
//	   8  the same faded, in units
//	   8  quantum
//	   8  updates that missed
//	   8  their weight beyond 1 each
//	   8  admissions
//	   8  evictions
//	   8  ignored updates
//	   8  fraction
//	   4  flags: 1 inexact, 2 merged, 4 saturated
//	   4  number of tracked keys
//	   for each tracked key, by slot
//	      8  its hash
//	      8  count
//	      4  slack
//	      4  bytes of the key
//	      n  key
//	   for each tracked key, by position in the heap
//	      8  count last seen
//	      4  slot
//	   for each cell, row by row
//	      4  fingerprint
//	      4  owner's count
//	      4  error
//	trailer
//	   8  xxhash of everything before
const (
	magic   = "HKpr"
	version = 1

	sketchObject = 1
	keeperObject = 2

	headerBytes  = 56
	stripeBytes  = 96
	entryBytes   = 24 // without the key
	nodeBytes    = 12
	cellBytes    = 12
	trailerBytes = 8

	inexactFlag   = 1
	mergedFlag    = 2
	saturatedFlag = 4
)

var little = binary.LittleEndian

// MarshalBinary returns an encoding of s that UnmarshalBinary restores: with
// equal answers and, as the state of the random generator is part of it, an
// equal future. It takes 12 bytes a cell and 36 and the key for each
// tracked key. It fails with [ErrKeyType], or with an error of a key's own
// encoding.
//
// Only the process itself can restore what hashes with [KeyedHash].
func (s *Sketch[K]) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// AppendBinary appends what MarshalBinary returns to dst.
func (s *Sketch[K]) AppendBinary(dst []byte) ([]byte, error) {
	c, err := newCodec(s.config.Hash)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	out := appendHeader(dst, sketchObject, c, &s.config, &s.keys)
	if out, err = s.appendState(out, c); err != nil {
		return dst, err
	}
	return little.AppendUint64(out, xxhash.Sum64(out[start:])), nil
}

// MarshalBinary returns an encoding of h; see [Sketch.MarshalBinary]. Stripes
// are encoded one after another while updates go on: each as it is at one
// moment, so that an update that runs meanwhile is in the encoding or not, in
// full.
func (h *HeavyKeeper[K]) MarshalBinary() ([]byte, error) { return h.AppendBinary(nil) }

// AppendBinary appends what MarshalBinary returns to dst.
func (h *HeavyKeeper[K]) AppendBinary(dst []byte) ([]byte, error) {
	c, err := newCodec(h.config.Hash)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	out := appendHeader(dst, keeperObject, c, &h.config, &h.keys)
	for _, s := range h.stripes.Locked() {
		if out, err = s.appendState(out, c); err != nil {
			return dst, err
		}
	}
	return little.AppendUint64(out, xxhash.Sum64(out[start:])), nil
}

func appendHeader[K comparable](dst []byte, object byte, c codec[K], config *Config[K], keys *keys[K]) []byte {
	var zero K
	stripes := config.Stripes
	if object == sketchObject {
		stripes = 1
	}
	dst = append(dst, magic...)
	dst = append(dst, version, object, c.form, c.size)
	for _, x := range []int{config.K, config.Rows, config.Width, stripes} {
		dst = little.AppendUint32(dst, uint32(x))
	}
	dst = little.AppendUint64(dst, math.Float64bits(config.Base))
	dst = little.AppendUint64(dst, math.Float64bits(config.Alpha))
	dst = little.AppendUint64(dst, config.Seed)
	return little.AppendUint64(dst, keys.hash(zero))
}

// appendState appends a stripe.
func (s *Sketch[K]) appendState(dst []byte, c codec[K]) ([]byte, error) {
	total, faded := s.totals()
	for _, x := range []uint64{
		math.Float64bits(s.fading.exact), uint64(s.random), total, faded, s.quantum, s.misses,
		s.excess, s.admissions, s.evictions, s.ignored, s.fraction,
	} {
		dst = little.AppendUint64(dst, x)
	}
	dst = little.AppendUint32(dst, s.flags())
	dst = little.AppendUint32(dst, uint32(len(s.tracked.entries)))
	for i := range s.tracked.entries {
		e := &s.tracked.entries[i]
		dst = little.AppendUint64(dst, s.keys.hash(e.key))
		dst = little.AppendUint64(dst, e.count)
		dst = little.AppendUint32(dst, e.slack)
		dst = little.AppendUint32(dst, 0)
		start := len(dst)
		var err error
		if dst, err = c.append(dst, e.key); err != nil {
			return dst, fmt.Errorf("heavykeeper: key %s: %w", quoted(e.key), err)
		}
		if uint64(len(dst)-start) > math.MaxUint32 {
			return dst, fmt.Errorf("heavykeeper: a key of %d bytes is too long to encode", len(dst)-start)
		}
		little.PutUint32(dst[start-4:], uint32(len(dst)-start))
	}
	for i, slot := range s.tracked.heap {
		dst = little.AppendUint64(dst, s.tracked.seen[i])
		dst = little.AppendUint32(dst, slot)
	}
	for i := range s.rows.cells {
		cell := &s.rows.cells[i]
		dst = little.AppendUint32(dst, cell.fingerprint)
		dst = little.AppendUint32(dst, cell.count)
		dst = little.AppendUint32(dst, cell.err)
	}
	return dst, nil
}

func (s *Sketch[K]) flags() uint32 {
	var f uint32
	if s.inexact {
		f |= inexactFlag
	}
	if s.merged {
		f |= mergedFlag
	}
	if s.rows.saturated {
		f |= saturatedFlag
	}
	return f
}

package heavykeeper

import (
	"hash/maphash"
	"math/bits"
	"reflect"
	"unsafe"

	"golang.org/x/exp/constraints"
)

// KeyedHash returns a Hash for [Config] for keys that an adversary may choose:
// that of package [hash/maphash], which nobody can predict who does not know
// seed. A string and a []byte of equal bytes have equal hashes; see [AddBytes].
//
// A seed cannot leave its process. What hashes with it merges with all else in
// the process that does, but nothing can decode its encoding once the process
// has ended: see [SipHash].
func KeyedHash[K comparable](seed maphash.Seed) func(K) uint64 {
	t := reflect.TypeFor[K]()
	switch {
	case t.Kind() == reflect.String:
		return func(key K) uint64 { return maphash.String(seed, *(*string)(unsafe.Pointer(&key))) }
	case holdsInterface(t):
		return func(key K) uint64 {
			if !isComparable(key) {
				return 0
			}
			return maphash.Comparable(seed, key)
		}
	}
	return func(key K) uint64 { return maphash.Comparable(seed, key) }
}

// SipHash returns a Hash for [Config] for keys that an adversary may choose
// where encodings are to outlive the process, or to merge with those of others:
// SipHash-2-4 (Aumasson, Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT
// 2012) with a secret of the caller's, 128 bits that must be as random as those
// of crypto/rand. It is slower than [KeyedHash]: BenchmarkKeyedHash compares
// them. A string and a []byte of equal bytes have equal hashes.
func SipHash[K interface{ ~string | constraints.Integer }](secret [16]byte) func(K) uint64 {
	c, err := newCodec[K](nil)
	if err != nil {
		panic(err) // strings and integers have an encoding
	}
	k0, k1 := little.Uint64(secret[:8]), little.Uint64(secret[8:])
	if c.form == stringForm {
		return func(key K) uint64 { return sipHash(k0, k1, *(*string)(unsafe.Pointer(&key))) }
	}
	return func(key K) uint64 {
		s := newSipState(k0, k1)
		s.word(c.load(unsafe.Pointer(&key)))
		return s.finish(8 << 56)
	}
}

// sipHash returns SipHash-2-4 of s under the key k0, k1.
func sipHash(k0, k1 uint64, s string) uint64 {
	state, rest := newSipState(k0, k1), unsafe.Slice(unsafe.StringData(s), len(s))
	for ; len(rest) >= 8; rest = rest[8:] {
		state.word(little.Uint64(rest))
	}
	last := uint64(len(s)) << 56
	for i, b := range rest {
		last |= uint64(b) << (8 * i)
	}
	return state.finish(last)
}

// sipState is v0 to v3 of the paper.
type sipState struct{ v0, v1, v2, v3 uint64 }

func newSipState(k0, k1 uint64) sipState {
	return sipState{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
}

func (s *sipState) round() {
	s.v0 += s.v1
	s.v2 += s.v3
	s.v1 = bits.RotateLeft64(s.v1, 13) ^ s.v0
	s.v3 = bits.RotateLeft64(s.v3, 16) ^ s.v2
	s.v0 = bits.RotateLeft64(s.v0, 32)
	s.v2 += s.v1
	s.v0 += s.v3
	s.v1 = bits.RotateLeft64(s.v1, 17) ^ s.v2
	s.v3 = bits.RotateLeft64(s.v3, 21) ^ s.v0
	s.v2 = bits.RotateLeft64(s.v2, 32)
}

// word takes in eight bytes.
func (s *sipState) word(m uint64) {
	s.v3 ^= m
	s.round()
	s.round()
	s.v0 ^= m
}

// finish takes in the last bytes, with the length above them, and returns the
// hash.
func (s *sipState) finish(last uint64) uint64 {
	s.word(last)
	s.v2 ^= 0xff
	for range 4 {
		s.round()
	}
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3
}

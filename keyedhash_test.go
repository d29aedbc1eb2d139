package heavykeeper

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/stretchr/testify/require"
)

// sipVectors are vectors_sip64 of the authors' reference implementation
// (github.com/veorq/SipHash, vectors.h), as little-endian numbers: of the bytes
// 0, 1, 2 and so on, none to 63 of them, under the key 0, 1, ... 15. All 64 were
// compared with goldenRef and the code of github.com/dchest/siphash v1.2.3.
var sipVectors = [64]uint64{
	0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
	0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
	0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
	0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5,
	0x3f2acc7f57c29bdb, 0x699ae9f52cbe4794, 0x4bc1b3f0968dd39c, 0xbb6dc91da77961bd,
	0xbed65cf21aa2ee98, 0xd0f2cbb02e3b67c7, 0x93536795e3a33e88, 0xa80c038ccd5ccec8,
	0xb8ad50c6f649af94, 0xbce192de8a85b8ea, 0x17d835b85bbb15f3, 0x2f2e6163076bcfad,
	0xde4daaaca71dc9a5, 0xa6a2506687956571, 0xad87a3535c49ef28, 0x32d892fad841c342,
	0x7127512f72f27cce, 0xa7f32346f95978e3, 0x12e0b01abb051238, 0x15e034d40fa197ae,
	0x314dffbe0815a3b4, 0x027990f029623981, 0xcadcd4e59ef40c4d, 0x9abfd8766a33735c,
	0x0e3ea96b5304a7d0, 0xad0c42d6fc585992, 0x187306c89bc215a9, 0xd4a60abcf3792b95,
	0xf935451de4f21df2, 0xa9538f0419755787, 0xdb9acddff56ca510, 0xd06c98cd5c0975eb,
	0xe612a3cb9ecba951, 0xc766e62cfcadaf96, 0xee64435a9752fe72, 0xa192d576b245165a,
	0x0a8787bf8ecb74b2, 0x81b3e73d20b49b6f, 0x7fa8220ba3b2ecea, 0x245731c13ca42499,
	0xb78dbfaf3a8d83bd, 0xea1ad565322a1a0b, 0x60e61c23a3795013, 0x6606d7e446282b93,
	0x6ca4ecb15c5f91e1, 0x9f626da15c9625f3, 0xe51b38608ef25f57, 0x958a324ceb064572,
}

// secret is the key of sipVectors.
var secret = [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func TestSipHashVectors(t *testing.T) {
	var input []byte
	for n, want := range sipVectors {
		require.Equal(t, want, SipHash[string](secret)(string(input)), "%d bytes", n)
		require.Equal(t, want, SipHash[namedString](secret)(namedString(input)), "%d bytes", n)
		if n == 8 {
			x := binary.LittleEndian.Uint64(input)
			require.Equal(t, want, SipHash[uint64](secret)(x), "an integer is its eight bytes")
		}
		input = append(input, byte(n))
	}
	require.Equal(t, SipHash[int64](secret)(-5), SipHash[int](secret)(-5))
}

// keyedHashes returns hashes of strings with keys that nobody knows.
func keyedHashes() map[string]func(string) uint64 {
	return map[string]func(string) uint64{
		"KeyedHash": KeyedHash[string](maphash.MakeSeed()),
		"SipHash":   SipHash[string](secret),
	}
}

func TestKeyedHashOfBytes(t *testing.T) {
	for name, hash := range keyedHashes() {
		t.Run(name, func(t *testing.T) {
			h := must(New(Config[string]{K: 10, Stripes: 3, Hash: hash}))
			buffer := make([]byte, 0, 64)
			for i := range 10 {
				h.AddN(oddKey(i), 2)
				buffer = append(buffer[:0], oddKey(i)...)
				AddBytes(h, buffer, 3)
			}
			clear(buffer[:cap(buffer)])
			for i := range 10 {
				require.Equal(t, Estimate{5, 5, 5}, h.Estimate(oddKey(i)), "%q", oddKey(i))
			}
			key := []byte("a key that is tracked")
			AddBytes(h, key, 100)
			require.Zero(t, testing.AllocsPerRun(100, func() { AddBytes(h, key, 1) }))
		})
	}
}

func TestKeyedHashDependsOnItsKey(t *testing.T) {
	seed := maphash.MakeSeed()
	require.Equal(t, KeyedHash[string](seed)("a"), KeyedHash[namedString](seed)("a"))
	require.Equal(t, KeyedHash[route](seed)(route{"a", 1, "b"}), KeyedHash[route](seed)(route{"a", 1, "b"}))
	require.NotEqual(t, KeyedHash[string](seed)("a"), KeyedHash[string](maphash.MakeSeed())("a"))
	require.NotEqual(t, KeyedHash[int](seed)(1), KeyedHash[int](maphash.MakeSeed())(1))
	require.Zero(t, KeyedHash[any](seed)([]int{1}), "what cannot be compared must not panic")
	for i := range 128 {
		other := secret
		other[i/8] ^= 1 << (i % 8)
		require.NotEqual(t, SipHash[string](secret)(""), SipHash[string](other)(""), "bit %d", i)
		require.NotEqual(t, SipHash[int8](secret)(1), SipHash[int8](other)(1), "bit %d", i)
	}
}

// Encodings with SipHash travel and merge; those with KeyedHash do not leave
// those of their seed.
func TestKeyedHashEncodings(t *testing.T) {
	config := Config[string]{K: 2, Width: 10, Hash: SipHash[string](secret)}
	build := func() *Sketch[string] {
		s := must(NewSketch(config))
		s.AddN("a", 4)
		return s
	}
	data := must(build().MarshalBinary())
	config.Hash = SipHash[string](secret) // another process
	there := build()
	require.NoError(t, there.UnmarshalBinary(data))
	require.NoError(t, there.Merge(build()))
	require.Equal(t, uint64(8), there.Estimate("a").Lower)
	require.ErrorIs(t, new(Sketch[string]).UnmarshalBinary(data), ErrMismatch, "without the secret")
	seed := maphash.MakeSeed()
	config.Hash = KeyedHash[string](seed)
	data = must(build().MarshalBinary())
	require.NoError(t, build().UnmarshalBinary(data))
	config.Hash = KeyedHash[string](maphash.MakeSeed())
	require.ErrorIs(t, build().UnmarshalBinary(data), ErrMismatch)
	require.ErrorIs(t, build().Merge(there), ErrMerge)
}

func BenchmarkKeyedHash(b *testing.B) {
	for _, length := range []int{8, 20, 100} {
		keys := make([]string, 1024)
		for i := range keys {
			keys[i] = fmt.Sprintf("%0*d", length, i)
		}
		hashes := keyedHashes()
		hashes["default"] = nil
		for _, name := range []string{"default", "KeyedHash", "SipHash"} {
			b.Run(fmt.Sprintf("length=%d/hash=%s", length, name), func(b *testing.B) {
				s := must(NewSketch(Config[string]{K: len(keys), Hash: hashes[name]}))
				s.AddBatch(keys)
				i := 0
				for b.Loop() {
					s.Add(keys[i%1024])
					i++
				}
			})
		}
	}
}

package heavykeeper

import (
	"encoding"
	"math"
	"math/rand/v2"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allocatedBy returns the bytes that f allocates, if that is more than most the
// least of several times: small objects of earlier times are counted late.
func allocatedBy(most uint64, f func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	least := uint64(math.MaxUint64)
	for range 5 {
		metrics.Read(sample)
		before := sample[0].Value.Uint64()
		f()
		metrics.Read(sample)
		if least = min(least, sample[0].Value.Uint64()-before); least <= most {
			break
		}
	}
	return least
}

// mutate returns data changed in up to eight places: bits, extreme integers,
// pieces cut out, doubled or moved; and mostly with a checksum that fits.
func mutate(r *rand.Rand, data []byte) []byte {
	data = append([]byte(nil), data...)
	for range r.IntN(9) {
		if len(data) < 32 {
			break
		}
		at := r.IntN(len(data) - 8)
		switch r.IntN(7) {
		case 0, 1:
			data[at] ^= 1 << r.IntN(8)
		case 2:
			put32(data, at&^3, []uint32{0, 1, math.MaxInt32, math.MaxUint32, 1 << r.IntN(32)}[r.IntN(5)])
		case 3:
			put32(data, 8+4*r.IntN(4), 1<<r.IntN(32)) // K, Rows, Width, Stripes
		case 4:
			put64(data, at&^7, r.Uint64()>>r.IntN(64))
		case 5:
			n := r.IntN(len(data) - at)
			data = append(data[:at], data[at+n:]...)
		case 6:
			n := r.IntN(len(data) - at)
			data = append(data[:at+n], data[at:]...)
		}
	}
	if len(data) >= trailerBytes && r.IntN(8) > 0 {
		data = seal(data)
	}
	return data
}

// noise returns random bytes, with or without the beginning of an encoding.
func noise(r *rand.Rand) []byte {
	data := make([]byte, r.IntN(2000))
	for i := range data {
		data[i] = byte(r.Uint32() >> r.IntN(32))
	}
	if len(data) > headerBytes+trailerBytes && r.IntN(2) == 0 {
		copy(data, magic)
		copy(data[4:], []byte{version, byte(1 + r.IntN(3)), byte(r.IntN(4)), byte(r.IntN(9))})
		data = seal(data)
	}
	return data
}

// Whatever the input says, decoding fails with an error that is documented or
// gives a sketch that works, and allocates at most twice as much as the input
// is long, and a constant, for a whole and for each stripe that the input has
// room for.
func TestDecodeAnything(t *testing.T) {
	const constant, perStripe, leastStripe = 64 << 10, 4 << 10, stripeBytes + cellBytes
	inputs := 600000
	if testing.Short() {
		inputs = 5000
	}
	seeds := append(goldenFiles(t, "sketch"), goldenFiles(t, "keeper")...)
	r := rand.New(rand.NewPCG(1, 2))
	worst, accepted := 0.0, 0
	for i := range inputs {
		data := noise(r)
		if i%8 > 0 {
			data = mutate(r, seeds[r.IntN(len(seeds))])
		}
		var o encoding.BinaryUnmarshaler
		var err error
		most, kind := uint64(2*len(data)+constant+len(data)/leastStripe*perStripe), r.IntN(4)
		took := allocatedBy(most, func() {
			switch kind {
			case 0:
				o = new(HeavyKeeper[string])
			case 1:
				o = new(Sketch[int])
			default:
				o = new(Sketch[string])
			}
			err = o.UnmarshalBinary(data)
		})
		require.LessOrEqual(t, took, most, "input %d of %d bytes", i, len(data))
		worst = max(worst, float64(took)/float64(most))
		if err != nil {
			continue
		}
		accepted++
		if s, ok := o.(*Sketch[string]); ok && i%64 == 1 {
			exercise(t, s)
		}
	}
	t.Logf("%d inputs, %d accepted; at most %.2f of what may be allocated was", inputs, accepted, worst)
	require.Greater(t, accepted, inputs/100)
}

// Large encodings, where the constant does not matter: most cells, most keys,
// and, so that the index takes most, just as many that it had to double.
func TestDecodeAllocates(t *testing.T) {
	for _, test := range []struct{ k, width, keys, length int }{
		{10, 1 << 17, 10, 5}, {1 << 17, 1, 87382, 8}, {1 << 17, 1, 87381, 8}, {1 << 17, 1, 120000, 9}, {1 << 17, 1, 120000, 30},
	} {
		if testing.Short() {
			test.k, test.width, test.keys = max(test.k/8, 10), max(test.width/8, 1), max(test.keys/8, 10)
		}
		s := must(NewSketch(Config[string]{K: test.k, Rows: 1, Width: test.width}))
		for i := range test.keys {
			s.Add(string([]byte{byte(i >> 16), byte(i >> 8), byte(i)}) + strings.Repeat("x", test.length-3))
		}
		data := must(s.MarshalBinary())
		most := uint64(2*len(data) + 64<<10)
		took := allocatedBy(most, func() { require.NoError(t, new(Sketch[string]).UnmarshalBinary(data)) })
		t.Logf("%+v: %d bytes take %.2f times as many", test, len(data), float64(took)/float64(len(data)))
		require.LessOrEqual(t, took, most)
	}
}

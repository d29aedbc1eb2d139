package window

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
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
// pieces cut out or doubled; and mostly with checksums that fit.
func mutate(r *rand.Rand, data []byte) []byte {
	data = append([]byte(nil), data...)
	for range r.IntN(9) {
		if len(data) < headerBytes {
			break
		}
		at := r.IntN(len(data) - 8)
		switch r.IntN(7) {
		case 0, 1:
			data[at] ^= 1 << r.IntN(8)
		case 2:
			put32(data, at&^3, []uint32{0, 1, math.MaxInt32, math.MaxUint32, 1 << r.IntN(32)}[r.IntN(5)])
		case 3:
			put32(data, 8+4*r.IntN(6), 1<<r.IntN(32)) // K to Stripes
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
	switch r.IntN(8) {
	case 0:
		return data
	case 1:
		if len(data) >= trailerBytes {
			return seal(data)
		}
	}
	return sealAll(data)
}

// Whatever the input says, decoding fails with an error that is documented or
// gives a window that works, and allocates at most twice as much as the input
// is long, and a constant, for a whole and for each stripe that the input has
// room for.
func TestDecodeAnything(t *testing.T) {
	const constant, perStripe, leastStripe = 64 << 10, 8 << 10, 300
	inputs := 400000
	if testing.Short() {
		inputs = 5000
	}
	names, err := filepath.Glob(filepath.Join("testdata", "*.hk"))
	require.NoError(t, err)
	var seeds [][]byte
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		seeds = append(seeds, data)
	}
	r := rand.New(rand.NewPCG(1, 2))
	worst, accepted := 0.0, 0
	for i := range inputs {
		data := mutate(r, seeds[r.IntN(len(seeds))])
		if i%16 == 0 {
			for j := range data {
				data[j] = byte(r.Uint32() >> r.IntN(32))
			}
		}
		var h *HeavyKeeper[string]
		most := uint64(2*len(data) + constant + len(data)/leastStripe*perStripe)
		took := allocatedBy(most, func() {
			h = new(HeavyKeeper[string])
			err = h.UnmarshalBinary(data)
		})
		require.LessOrEqual(t, took, most, "input %d of %d bytes", i, len(data))
		worst = max(worst, float64(took)/float64(most))
		if err != nil {
			require.True(t, errors.Is(err, heavykeeper.ErrFormat) || errors.Is(err, heavykeeper.ErrMismatch), "%v", err)
			continue
		}
		if accepted++; accepted%64 == 1 {
			exercise(t, h)
		}
	}
	t.Logf("%d inputs, %d accepted; at most %.2f of what may be allocated was", inputs, accepted, worst)
	require.Greater(t, accepted, inputs/100)
}

// Large encodings, where the constant does not matter: most cells, most counts,
// most candidates.
func TestDecodeAllocates(t *testing.T) {
	for _, config := range []Config[string]{
		{K: 10, Rows: 1, Width: 1 << 15, Slots: 2, Stripes: 1},
		{K: 10, Rows: 4, Width: 1 << 13, Slots: 2, Stripes: 4},
		{K: 1000, Rows: 1, Width: 1, Slots: 100, Stripes: 1},
		{K: 4000, Rows: 1, Width: 1, Slots: 1, Stripes: 2},
	} {
		h := must(t, config)
		for i := range 4 * config.K {
			h.AddAt(time.Unix(0, 0), string(binaryKey(i)), 1)
		}
		data, err := h.MarshalBinary()
		require.NoError(t, err)
		most := uint64(2*len(data) + 64<<10)
		took := allocatedBy(most, func() { require.NoError(t, new(HeavyKeeper[string]).UnmarshalBinary(data)) })
		t.Logf("%+v: %d bytes take %.2f times as many", config, len(data), float64(took)/float64(len(data)))
		require.LessOrEqual(t, took, most)
	}
}

// binaryKey returns a key of eight bytes.
func binaryKey(i int) []byte { return little.AppendUint64(nil, uint64(i)) }

package window

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
)

// FuzzPrograms reads a program of three bytes an event: a step in time, back
// where it is negative, a key, and a weight. Key 255 has the window saved and
// restored first, and key 254 moves time by as much as a thousand windows.
func FuzzPrograms(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 1, 1, 0, 2, 5, 9, 1, 1, 0xff, 1, 1, 127, 3, 255}, uint8(4), uint8(0))
	f.Add([]byte{0, 1, 1, 128, 1, 1, 4, 1, 2, 4, 2, 3, 4, 3, 3, 4, 4, 1}, uint8(0), uint8(1))
	f.Add([]byte{3, 1, 1, 3, 2, 1, 3, 3, 1, 3, 4, 1, 3, 1, 1, 3, 2, 1, 3, 3, 1}, uint8(9), uint8(2))
	f.Add([]byte{0, 1, 1, 0, 2, 2, 0, 3, 3, 0, 4, 4, 1, 255, 5, 4, 1, 1, 4, 255, 1, 9, 254, 2, 3, 255, 1, 0, 1, 7}, uint8(3), uint8(4))
	f.Fuzz(func(t *testing.T, events []byte, slots, width uint8) {
		h, err := New(Config[int]{K: 2, Candidates: 3, Width: 1 + int(width)%8, Slots: 1 + int(slots)%16, Stripes: 1, Slot: 4})
		require.NoError(t, err)
		m := newModel(h.config.Slots, 1)
		at := epoch
		for ; len(events) >= 3; events = events[3:] {
			at = at.Add(time.Duration(int8(events[0])))
			key, n := int(events[1]), uint32(events[2])
			switch key {
			case 255:
				data, err := h.MarshalBinary()
				require.NoError(t, err)
				h = must(t, h.config)
				require.NoError(t, h.UnmarshalBinary(data))
			case 254:
				at = at.Add(time.Duration(int8(events[0])) * 128 * 4)
			}
			if n > 250 {
				n = math.MaxUint32 - 255 + n
			}
			h.AddAt(at, key, n)
			if n == 0 {
				continue
			}
			slot, _ := floorDiv(at.UnixNano(), 4)
			m.add(0, slot, key, n)
			m.check(t, h, at, m.latest())
			checkTop(t, h, at)
		}
	})
}

var configError = regexp.MustCompile(`^window: (K|Rows|Width|Stripes|Base|Slots|Slot|Candidates) = \S+: \S.*$`)

// FuzzConfig feeds any values to New: an error that names a field, or a window
// that works.
func FuzzConfig(f *testing.F) {
	f.Add(10, 4, 100, 2, 40, 10, int64(time.Second), 1.08)
	f.Add(0, 0, 0, 0, 0, 0, int64(0), 0.0)
	f.Add(-1, -1, -1, -1, -1, -1, int64(-1), -1.0)
	f.Add(math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt, int64(math.MaxInt64), math.MaxFloat64)
	f.Add(math.MinInt, math.MinInt, math.MinInt, math.MinInt, math.MinInt, math.MinInt, int64(math.MinInt64), math.NaN())
	f.Add(maxK, 16, 1<<23, maxStripes, maxCandidates, maxSlots, int64(maxSpan), math.Inf(1))
	f.Add(maxK+1, 17, 1<<28, maxStripes+1, maxCandidates+1, maxSlots+1, int64(maxSpan)+1, 1.0)
	f.Add(1, 1, 1, 1, 1, 1, int64(1), 1.001)
	f.Fuzz(func(t *testing.T, k, rows, width, stripes, candidates, slots int, slot int64, base float64) {
		config := Config[int]{
			K: k, Rows: rows, Width: width, Stripes: stripes, Candidates: candidates, Slots: slots, Slot: time.Duration(slot), Base: base,
		}
		resolved, err := config.resolve()
		if err == nil && (resolved.Candidates > 1000 || resolved.Slots > 1000 || resolved.Stripes > 4 || resolved.Width > 10000) {
			return // more memory than a fuzz worker should take
		}
		h, err := New(config)
		if err != nil {
			require.Regexp(t, configError, err.Error())
			require.Nil(t, h)
			return
		}
		m := newModel(h.config.Slots, 1)
		for i := range int64(50) {
			at := time.Unix(0, i/7*int64(h.config.Slot))
			if i/7*int64(h.config.Slot)/int64(h.config.Slot) != i/7 {
				break // beyond what this test can write
			}
			addTo(h, 0, at, int(i%9), uint32(i*i))
			if i > 0 {
				m.add(0, i/7, int(i%9), uint32(i*i))
			}
		}
		at := time.Unix(0, 0).Add(time.Duration(m.latest()) * h.config.Slot)
		m.check(t, h, at, m.latest())
		require.Equal(t, m.total, h.Stats().Total)
		checkTop(t, h, at)
	})
}

// sealAll recomputes the checksums of a window and of its first stripe's sketch.
func sealAll(data []byte) []byte {
	if len(data) < headerBytes+trailerBytes {
		return data
	}
	data = append([]byte(nil), data...)
	if rest := data[headerBytes:]; len(rest) >= 8+trailerBytes {
		n, rest := little.Uint64(rest), rest[8:]
		if n >= trailerBytes && n <= uint64(len(rest)) {
			copy(rest, seal(rest[:n]))
		}
	}
	return seal(data)
}

// exercise uses a window of any origin. Its counts may be made up, and bounds
// of no meaning, but nothing may break.
func exercise(t require.TestingT, h *HeavyKeeper[string]) {
	slot := h.Stats().Slot
	for i := range int64(30) {
		// Of the present and about it, and of days about 1970.
		at := h.grid.start.Add(time.Duration(i) * time.Minute)
		if i%2 == 0 && h.config.Slot < time.Hour && slot > -1e6 && slot < 1e6 {
			at = time.Unix(0, 0).Add(time.Duration(slot+i/3) * h.config.Slot)
		}
		h.AddAt(at, oddKey(int(i*i%13)), math.MaxUint32>>i)
		h.SeriesAt(at, "a")
		h.SpanAt(at)
		for _, item := range h.TopAt(at, 0) {
			require.Positive(t, item.Count)
			require.LessOrEqual(t, item.Lower, item.Count)
			require.LessOrEqual(t, item.Count, item.Upper)
			require.Equal(t, h.EstimateAt(at, item.Key), item.Estimate)
		}
	}
	h.Stats()
	h.Reset()
	require.Zero(t, h.Stats().Total)
}

// FuzzDecode decodes windows from any bytes, as they are and with checksums
// that fit.
func FuzzDecode(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("testdata", "*.hk"))
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	good, err := twoKeys(f).MarshalBinary()
	require.NoError(f, err)
	for _, m := range malformed {
		f.Add(m.change(append([]byte(nil), good...)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for range 2 {
			var h HeavyKeeper[string]
			if err := h.UnmarshalBinary(data); err == nil {
				again, err := h.MarshalBinary()
				require.NoError(t, err)
				require.Equal(t, data, again)
				exercise(t, &h)
			} else {
				require.True(t, errors.Is(err, heavykeeper.ErrFormat) || errors.Is(err, heavykeeper.ErrMismatch), "%v", err)
				require.Nil(t, h.stripes)
			}
			kept := twoKeys(t)
			if err := kept.UnmarshalBinary(data); err != nil {
				again, err := kept.MarshalBinary()
				require.NoError(t, err)
				require.Equal(t, good, again)
			}
			data = sealAll(data)
		}
	})
}

package window

import (
	"encoding"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
)

var (
	_ encoding.BinaryMarshaler   = (*HeavyKeeper[int])(nil)
	_ encoding.BinaryAppender    = (*HeavyKeeper[int])(nil)
	_ encoding.BinaryUnmarshaler = (*HeavyKeeper[int])(nil)
)

// Whatever the last bits of Expm1 are on some machine, Alpha is the same.
func TestAlphaIsPortable(t *testing.T) {
	for slots := 2; slots <= maxSlots; slots++ {
		x := -math.Expm1(-2 / float64(slots))
		require.Equal(t, float32(x*(1-1e-14)), float32(x*(1+1e-14)), "%d slots", slots)
		require.Equal(t, float64(float32(x)), Config[int]{Slots: slots}.alpha())
	}
	require.Zero(t, Config[int]{Slots: 1}.alpha())
}

// player feeds equal events to several windows: each stripe by itself, early,
// late and far apart.
type player struct {
	r    *rand.Rand
	slot int64
}

func play[K comparable](p *player, steps int, key func(int) K, hs ...*HeavyKeeper[K]) {
	c := hs[0].config
	for range steps {
		if p.r.IntN(20) == 0 {
			p.slot++
		}
		if p.r.IntN(300) == 0 {
			p.slot += p.r.Int64N(2 * int64(c.Slots))
		}
		slot := p.slot - p.r.Int64N(3)
		at := time.Unix(1e9, 0).Add(time.Duration(slot)*c.Slot + time.Duration(p.r.Int64N(int64(c.Slot))))
		stripe, k, n := p.r.IntN(c.Stripes), key(int(40*math.Pow(p.r.Float64(), 2))), 1+p.r.Uint32N(4)
		for _, h := range hs {
			addTo(h, stripe, at, k, n)
		}
	}
}

// requireSame requires that windows answer alike, now and later.
func requireSame[K comparable](t *testing.T, p *player, key func(int) K, want, got *HeavyKeeper[K]) {
	a, b := want.Stats(), got.Stats()
	a.Bytes, b.Bytes = 0, 0
	require.Equal(t, a, b)
	for ahead := range int64(want.config.Slots + 1) {
		at := time.Unix(1e9, 0).Add(time.Duration(p.slot+ahead) * want.config.Slot)
		require.Equal(t, want.TopAt(at, 0), got.TopAt(at, 0))
		require.Equal(t, want.SpanAt(at), got.SpanAt(at))
		for i := range 40 {
			require.Equal(t, want.EstimateAt(at, key(i)), got.EstimateAt(at, key(i)))
			require.Equal(t, want.SeriesAt(at, key(i)), got.SeriesAt(at, key(i)))
		}
	}
}

func testRoundTrip[K comparable](t *testing.T, key func(int) K, hash func(K) uint64) {
	for name, config := range map[string]Config[K]{
		"plain":    {K: 3, Width: 5, Slots: 5, Slot: time.Second, Stripes: 1, Seed: 3, Hash: hash},
		"stripes":  {K: 3, Width: 9, Slots: 3, Slot: time.Minute, Stripes: 3, Base: 1.3, Hash: hash},
		"one slot": {K: 2, Rows: 1, Width: 3, Slots: 1, Slot: time.Hour, Stripes: 2, Hash: hash},
		"hashed": {K: 50, Rows: 2, Width: 1, Slots: 4, Slot: 7, Stripes: 1, Hash: func(k K) uint64 {
			return xxhash.Sum64String(fmt.Sprint(k))
		}},
	} {
		for _, steps := range []int{0, 2, 40, 3000} {
			t.Run(fmt.Sprintf("%s/steps=%d", name, steps), func(t *testing.T) {
				h := must(t, config)
				p := &player{r: rand.New(rand.NewPCG(1, uint64(steps)))}
				play(p, steps, key, h)
				data, err := h.MarshalBinary()
				require.NoError(t, err)
				appended, err := h.AppendBinary([]byte("x"))
				require.NoError(t, err)
				require.Equal(t, append([]byte("x"), data...), appended)

				used := must(t, config)
				used.Add(key(5))
				all := []*HeavyKeeper[K]{h, used}
				if config.Hash == nil {
					all = append(all, new(HeavyKeeper[K]))
				}
				for _, c := range all[1:] {
					require.NoError(t, c.UnmarshalBinary(data))
					again, err := c.MarshalBinary()
					require.NoError(t, err)
					require.Equal(t, data, again)
				}
				clear(data) // nothing may refer to it
				for range 2 {
					for _, c := range all[1:] {
						requireSame(t, p, key, h, c)
					}
					play(p, steps, key, all...)
				}
			})
		}
	}
}

// tile is a key type with an encoding of its own.
type tile struct{ x, y int8 }

func (p tile) MarshalBinary() ([]byte, error) { return []byte{byte(p.x), byte(p.y)}, nil }

func (p tile) hash() uint64 { return uint64(uint8(p.x))<<8 | uint64(uint8(p.y)) }

func (p *tile) UnmarshalBinary(data []byte) error {
	if len(data) != 2 {
		return fmt.Errorf("a tile of %d bytes", len(data))
	}
	p.x, p.y = int8(data[0]), int8(data[1])
	return nil
}

// oddKey makes keys that are easily mistaken for one another.
func oddKey(i int) string {
	odd := []string{"", "\x00", "a\x00b", "a", "\xff\xfe"}
	if i < len(odd) {
		return odd[i]
	}
	return fmt.Sprint("key ", i)
}

func TestRoundTrip(t *testing.T) {
	t.Run("string", func(t *testing.T) { testRoundTrip(t, oddKey, nil) })
	t.Run("int", func(t *testing.T) { testRoundTrip(t, func(i int) int { return -i }, nil) })
	t.Run("uint16", func(t *testing.T) { testRoundTrip(t, func(i int) uint16 { return uint16(i * 500) }, nil) })
	t.Run("tile", func(t *testing.T) { testRoundTrip(t, func(i int) tile { return tile{int8(i), 1} }, tile.hash) })
}

// Times near and far. None has a monotonic reading: two objects differ by what
// the machine's two clocks drifted apart between their makings.
func TestRoundTripOfTimes(t *testing.T) {
	for _, at := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(-1, 5), time.Now().Round(0), time.Now().Round(0).Add(maxSpan / 2), time.Unix(math.MaxInt64/4, 7), time.Unix(math.MinInt64/2, 0),
	} {
		h := must(t, Config[string]{K: 1, Slots: 3, Slot: time.Second, Stripes: 1})
		h.AddAt(at, "a", 4)
		h.AddAt(at.Add(500*time.Millisecond), "a", 1)
		data, err := h.MarshalBinary()
		require.NoError(t, err)
		c := new(HeavyKeeper[string])
		require.NoError(t, c.UnmarshalBinary(data))
		for i := range 5 {
			later := at.Add(time.Duration(i) * 700 * time.Millisecond)
			require.Equal(t, h.EstimateAt(later, "a"), c.EstimateAt(later, "a"))
			require.Equal(t, h.SeriesAt(later, "a"), c.SeriesAt(later, "a"))
			require.Equal(t, h.SpanAt(later), c.SpanAt(later))
			h.AddAt(later, "b", 1)
			c.AddAt(later, "b", 1)
		}
		require.Equal(t, h.Stats().Slot, c.Stats().Slot)
	}
}

// What was hot when the process ended is so when it is back, if not for long.
func TestRestoredLater(t *testing.T) {
	h := must(t, Config[string]{K: 1, Slots: 10, Slot: time.Minute})
	at := time.Unix(1e9, 0)
	h.AddAt(at, "a", 5)
	data, err := h.MarshalBinary()
	require.NoError(t, err)
	c := new(HeavyKeeper[string])
	require.NoError(t, c.UnmarshalBinary(data))
	require.Equal(t, uint64(5), c.EstimateAt(at.Add(9*time.Minute), "a").Count)
	require.Zero(t, c.EstimateAt(at.Add(10*time.Minute), "a"))
	require.Zero(t, c.Estimate("a"))
}

// A snapshot while updates go on holds each in full or not at all.
func TestSnapshotWhileWriting(t *testing.T) {
	const writers, events, each = 4, 3000, 7
	h := must(t, Config[int]{K: 20, Slots: 50, Slot: time.Millisecond, Stripes: 3})
	start := time.Unix(1e9, 0)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range events {
				h.AddAt(start.Add(time.Duration(i)*time.Microsecond), w*100+i%5, each)
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	last, running := uint64(0), true
	for running {
		select {
		case <-done:
			running = false
		default:
		}
		data, err := h.MarshalBinary()
		require.NoError(t, err)
		c := new(HeavyKeeper[int])
		require.NoError(t, c.UnmarshalBinary(data))
		s, listed := c.Stats(), uint64(0)
		for _, item := range c.TopAt(start, 0) {
			require.Zero(t, item.Count%each, "a part of an update")
			require.Equal(t, item.Lower, item.Upper)
			listed += item.Count
		}
		require.Equal(t, s.Total, listed)
		require.GreaterOrEqual(t, s.Total, last)
		last = s.Total
	}
	require.Equal(t, uint64(writers*events*each), last)
}

// seal recomputes the checksum of an encoding that a test has changed.
func seal(data []byte) []byte {
	body := data[:len(data)-trailerBytes]
	return little.AppendUint64(body[:len(body):len(body)], xxhash.Sum64(body))
}

func put32(d []byte, at int, x uint32) []byte { little.PutUint32(d[at:], x); return d }
func put64(d []byte, at int, x uint64) []byte { little.PutUint64(d[at:], x); return d }

// wheelAt is where the wheel of twoKeys' encoding begins.
func wheelAt(d []byte) int { return headerBytes + 8 + int(little.Uint64(d[headerBytes:])) }

// twoKeys is the window whose encoding malformed knows the places of.
func twoKeys(t testing.TB) *HeavyKeeper[string] {
	h := must(t, Config[string]{K: 1, Candidates: 3, Rows: 1, Width: 3, Slots: 3, Slot: time.Second, Stripes: 1})
	h.AddAt(time.Unix(1000, 0), "a", 5)
	h.AddAt(time.Unix(1001, 0), "b", 7)
	h.AddAt(time.Unix(1000, 0), "a", 1)
	return h
}

// malformed are changes to an encoding that have to be found out. FuzzDecode
// starts from them.
var malformed = []struct {
	name   string
	change func(data []byte) []byte
	want   error
}{
	{"empty", func([]byte) []byte { return nil }, heavykeeper.ErrFormat},
	{"only a header", func(d []byte) []byte { return d[:headerBytes] }, heavykeeper.ErrFormat},
	{"header sealed", func(d []byte) []byte { return seal(d[:headerBytes+8]) }, heavykeeper.ErrFormat},
	{"cut short", func(d []byte) []byte { return d[:len(d)-1] }, heavykeeper.ErrFormat},
	{"cut short and sealed", func(d []byte) []byte { return seal(d[:len(d)-4]) }, heavykeeper.ErrFormat},
	{"trailing bytes sealed", func(d []byte) []byte { return seal(append(d, 0)) }, heavykeeper.ErrFormat},
	{"a bit flipped", func(d []byte) []byte { d[len(d)/2] ^= 1; return d }, heavykeeper.ErrFormat},
	{"magic", func(d []byte) []byte { d[0] = 'h'; return seal(d) }, heavykeeper.ErrFormat},
	{"version", func(d []byte) []byte { d[4] = 2; return seal(d) }, heavykeeper.ErrFormat},
	{"object", func(d []byte) []byte { d[5] = 1; return seal(d) }, heavykeeper.ErrMismatch},
	{"zeros", func(d []byte) []byte { d[7] = 1; return seal(d) }, heavykeeper.ErrFormat},
	{"K zero", func(d []byte) []byte { return seal(put32(d, 8, 0)) }, heavykeeper.ErrFormat},
	{"K huge", func(d []byte) []byte { return seal(put32(d, 8, math.MaxUint32)) }, heavykeeper.ErrFormat},
	{"Slots huge", func(d []byte) []byte { return seal(put32(d, 12, 1<<16)) }, heavykeeper.ErrMismatch},
	{"Candidates huge", func(d []byte) []byte { return seal(put32(d, 16, 1<<24)) }, heavykeeper.ErrMismatch},
	{"Candidates x Slots huge", func(d []byte) []byte { return seal(put32(put32(d, 16, 1<<24), 12, 1<<16)) }, heavykeeper.ErrFormat},
	{"Rows zero", func(d []byte) []byte { return seal(put32(d, 20, 0)) }, heavykeeper.ErrFormat},
	{"Rows huge", func(d []byte) []byte { return seal(put32(d, 20, math.MaxUint32)) }, heavykeeper.ErrFormat},
	{"Width zero", func(d []byte) []byte { return seal(put32(d, 24, 0)) }, heavykeeper.ErrFormat},
	{"Width huge", func(d []byte) []byte { return seal(put32(d, 24, 1<<27)) }, heavykeeper.ErrMismatch},
	{"Stripes huge", func(d []byte) []byte { return seal(put32(d, 28, 4096)) }, heavykeeper.ErrMismatch},
	{"Slot negative", func(d []byte) []byte { return seal(put64(d, 32, 1<<63)) }, heavykeeper.ErrFormat},
	{"Base zero", func(d []byte) []byte { return seal(put64(d, 40, 0)) }, heavykeeper.ErrFormat},
	{"Base NaN", func(d []byte) []byte { return seal(put64(d, 40, math.Float64bits(math.NaN()))) }, heavykeeper.ErrMismatch},
	{"Seed", func(d []byte) []byte { return seal(put64(d, 48, 99)) }, heavykeeper.ErrMismatch},
	{"sketch of no bytes", func(d []byte) []byte { return seal(put64(d, 56, 0)) }, heavykeeper.ErrFormat},
	{"sketch of many bytes", func(d []byte) []byte { return seal(put64(d, 56, math.MaxUint64)) }, heavykeeper.ErrFormat},
	{"sketch damaged", func(d []byte) []byte { d[200] ^= 4; return seal(d) }, heavykeeper.ErrFormat},
	{"earliest after current", func(d []byte) []byte { return seal(put64(d, wheelAt(d)+8, 1002)) }, heavykeeper.ErrFormat},
	{"nanoseconds", func(d []byte) []byte { return seal(put32(d, wheelAt(d)+24, 1e9)) }, heavykeeper.ErrFormat},
	{"ring position", func(d []byte) []byte { return seal(put32(d, wheelAt(d)+28, 3)) }, heavykeeper.ErrFormat},
	{"flags", func(d []byte) []byte { return seal(put64(d, wheelAt(d)+32, 2)) }, heavykeeper.ErrFormat},
	{"not started", func(d []byte) []byte { return seal(put64(d, wheelAt(d)+32, 0)) }, heavykeeper.ErrFormat},
	{"no event, but counts", func(d []byte) []byte { clear(d[wheelAt(d):][:40]); return seal(d) }, heavykeeper.ErrFormat},
	{"window beyond total", func(d []byte) []byte { return seal(put64(d, wheelAt(d)+96, 7)) }, heavykeeper.ErrFormat},
	{"weight NaN", func(d []byte) []byte { return seal(put64(d, wheelAt(d)+104, math.Float64bits(math.NaN()))) }, heavykeeper.ErrFormat},
	{"weight zero", func(d []byte) []byte { return seal(put64(d, wheelAt(d)+104, 0)) }, heavykeeper.ErrFormat},
	{"weight of now", func(d []byte) []byte { return seal(put64(d, wheelAt(d)+120, math.Float64bits(.9))) }, heavykeeper.ErrFormat},
	{"bounds swapped", func(d []byte) []byte { return seal(put32(d, wheelAt(d)+144, math.Float32bits(1))) }, heavykeeper.ErrFormat},
	{"bound NaN", func(d []byte) []byte { return seal(put32(d, wheelAt(d)+148, math.Float32bits(float32(math.NaN())))) }, heavykeeper.ErrFormat},
	{"bound infinite", func(d []byte) []byte {
		inf := math.Float32bits(float32(math.Inf(1)))
		return seal(put32(put32(d, wheelAt(d)+144, inf), wheelAt(d)+148, inf))
	}, heavykeeper.ErrFormat},
	{"admitted nowhere", func(d []byte) []byte { return seal(put32(d, wheelAt(d)+152, 3)) }, heavykeeper.ErrFormat},
	{"bounds of no key", func(d []byte) []byte { return seal(put32(d, wheelAt(d)+172, math.Float32bits(1))) }, heavykeeper.ErrFormat},
	{"count beyond the slot's", func(d []byte) []byte { return seal(put32(d, wheelAt(d)+180, 7)) }, heavykeeper.ErrFormat},
	{"count of no key", func(d []byte) []byte { return seal(put32(put32(d, wheelAt(d)+180, 0), wheelAt(d)+188, 1)) }, heavykeeper.ErrFormat},
}

func TestDecodeRefusesMalformed(t *testing.T) {
	good, err := twoKeys(t).MarshalBinary()
	require.NoError(t, err)
	require.Equal(t, wheelAt(good)+216+trailerBytes, len(good), "the places below")
	for _, test := range malformed {
		t.Run(test.name, func(t *testing.T) {
			data := test.change(append([]byte(nil), good...))
			h := must(t, twoKeys(t).config)
			at := time.Unix(5000, 0)
			h.AddAt(at, "kept", 1)
			require.ErrorIs(t, h.UnmarshalBinary(data), test.want)
			require.Equal(t, []heavykeeper.Item[string]{{Key: "kept", Estimate: heavykeeper.Estimate{Count: 1, Lower: 1, Upper: 1}}}, h.TopAt(at, 0))

			var fresh HeavyKeeper[string]
			require.Error(t, fresh.UnmarshalBinary(data))
			require.Nil(t, fresh.stripes)
			require.Equal(t, Config[string]{}, fresh.config)
		})
	}
}

func TestDecodeRefusesOtherObjects(t *testing.T) {
	data, err := twoKeys(t).MarshalBinary()
	require.NoError(t, err)
	for name, change := range map[string]func(*Config[string]){
		"K = 1, the receiver's is 2":          func(c *Config[string]) { c.K = 2 },
		"Slots = 3, the receiver's is 4":      func(c *Config[string]) { c.Slots = 4 },
		"Slot = 1s, the receiver's is 2s":     func(c *Config[string]) { c.Slot = 2 * time.Second },
		"Candidates = 3, the receiver's is 4": func(c *Config[string]) { c.Candidates = 4 },
		"Rows = 1, the receiver's is 2":       func(c *Config[string]) { c.Rows = 2 },
		"Width = 3, the receiver's is 4":      func(c *Config[string]) { c.Width = 4 },
		"Stripes = 1, the receiver's is 2":    func(c *Config[string]) { c.Stripes = 2 },
		"Base = 1.08, the receiver's is 2":    func(c *Config[string]) { c.Base = 2 },
		"Seed = 0, the receiver's is 1":       func(c *Config[string]) { c.Seed = 1 },
		"the zero key hashes to":              func(c *Config[string]) { c.Hash = func(string) uint64 { return 5 } },
	} {
		t.Run(name, func(t *testing.T) {
			config := twoKeys(t).config
			change(&config)
			err := must(t, config).UnmarshalBinary(data)
			require.ErrorIs(t, err, heavykeeper.ErrMismatch)
			require.ErrorContains(t, err, name)
		})
	}
	require.ErrorIs(t, new(HeavyKeeper[int]).UnmarshalBinary(data), heavykeeper.ErrMismatch)
	require.ErrorIs(t, new(heavykeeper.Sketch[string]).UnmarshalBinary(data), heavykeeper.ErrMismatch)
	_, err = must(t, Config[float64]{K: 1}).MarshalBinary()
	require.ErrorIs(t, err, heavykeeper.ErrKeyType)
	require.ErrorIs(t, new(HeavyKeeper[float64]).UnmarshalBinary(data), heavykeeper.ErrKeyType)
}

// layout is an encoding written byte by byte, so that what it says does not
// depend on the machine, nor on the code under test.
type layout []byte

func (l *layout) uint(bytes int, values ...uint64) {
	for _, x := range values {
		for i := range bytes {
			*l = append(*l, byte(x>>(8*i)))
		}
	}
}

// TestLayout writes the encoding of a window as the comment on it says. It
// runs alike on big-endian machines.
func TestLayout(t *testing.T) {
	h := must(t, Config[string]{K: 1, Candidates: 2, Rows: 1, Width: 2, Slots: 2, Slot: time.Second, Stripes: 1, Seed: 0x0102030405060708})
	h.AddAt(time.Unix(1000, 5e8), "a", 6)
	h.AddAt(time.Unix(1001, 0), "b", 5)
	h.AddAt(time.Unix(1000, 0), "b", 4)
	h.AddAt(time.Unix(999, 0), "b", 3)
	var c *counter[string]
	h.stripes.With(0, func(v *counter[string]) bool { c = v; return true })
	sketch, err := c.sketch.MarshalBinary()
	require.NoError(t, err)

	l := layout("HKpr")
	l.uint(1, 1, 3, 0, 0)
	l.uint(4, 1, 2, 2, 1, 2, 1)
	l.uint(8, 1e9, math.Float64bits(1.08), 0x0102030405060708, uint64(len(sketch)))
	l = append(l, sketch...)
	l.uint(8, 1001, 1000, 1000)
	l.uint(4, 0, 1, 1, 0) // the earlier event came late; slot 1001 is at position 1
	l.uint(8, 0, 0, 0, 0, 4, 3, 1)
	faded := 256 / math.Round(256/(1-c.alpha))
	l.uint(8, 6+4, math.Float64bits(faded), 5, math.Float64bits(1))
	l.uint(4, 0, 0, 0, 0, 0, 1) // nothing before; "b" admitted at position 1
	l.uint(4, 6, 4, 0, 5)
	l.uint(8, xxhash.Sum64(l))
	data, err := h.MarshalBinary()
	require.NoError(t, err)
	require.Equal(t, []byte(l), data)

	var restored HeavyKeeper[string]
	require.NoError(t, restored.UnmarshalBinary(l))
	at := time.Unix(1001, 0)
	require.Equal(t, h.TopAt(at, 0), restored.TopAt(at, 0))
	require.Equal(t, []uint64{4, 5}, restored.SeriesAt(at, "b"))
	require.Equal(t, time.Second, restored.SpanAt(at))
}

// A window that has lost all its keys to a gap, or to Reset, is encoded as one
// that can be decoded.
func TestRoundTripOfEmptied(t *testing.T) {
	h, at := crowd(t)
	h.AddAt(at, 500, 1000)
	h.AddAt(at.Add(time.Hour), 1, 1)
	for range 2 {
		data, err := h.MarshalBinary()
		require.NoError(t, err)
		var restored HeavyKeeper[int]
		require.NoError(t, restored.UnmarshalBinary(data))
		require.Equal(t, h.TopAt(at, 0), restored.TopAt(at, 0))
		h.Reset()
	}
}

// Stripes have random courses of their own, and the same again once they have
// been decoded and reset.
func TestStreamsOfStripes(t *testing.T) {
	config := Config[int]{K: 2, Stripes: 3, Seed: 5}
	h := must(t, config)
	data, err := h.MarshalBinary()
	require.NoError(t, err)
	var fresh HeavyKeeper[int]
	used := must(t, config)
	for _, restored := range []*HeavyKeeper[int]{&fresh, used} {
		require.NoError(t, restored.UnmarshalBinary(data))
		restored.Reset()
		again, err := restored.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, data, again)
	}
	seen := map[string]bool{}
	for _, c := range h.stripes.Locked() {
		sketch, err := c.sketch.MarshalBinary()
		require.NoError(t, err)
		seen[string(sketch)] = true
	}
	require.Len(t, seen, 3)
}

func TestString(t *testing.T) {
	h := must(t, Config[int]{K: 7, Stripes: 2, Seed: 77777})
	require.Equal(t, "window.HeavyKeeper(K = 7, Slots = 10 x 3s, Stripes = 2)", h.String())
	require.NotContains(t, fmt.Sprintf("%v %+v", h, new(HeavyKeeper[string])), "77777")
}

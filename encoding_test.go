package heavykeeper

import (
	"encoding"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
)

var (
	_ encoding.BinaryMarshaler   = (*Sketch[int])(nil)
	_ encoding.BinaryAppender    = (*Sketch[int])(nil)
	_ encoding.BinaryUnmarshaler = (*Sketch[int])(nil)
	_ encoding.BinaryMarshaler   = (*HeavyKeeper[int])(nil)
	_ encoding.BinaryAppender    = (*HeavyKeeper[int])(nil)
	_ encoding.BinaryUnmarshaler = (*HeavyKeeper[int])(nil)
)

// tile is a key type with an encoding of its own.
type tile struct{ X, Y int8 }

func (p tile) MarshalBinary() ([]byte, error) { return []byte{byte(p.X), byte(p.Y)}, nil }

func (p tile) hash() uint64 { return uint64(uint8(p.X))<<8 | uint64(uint8(p.Y)) }

func (p *tile) UnmarshalBinary(data []byte) error {
	if len(data) != 2 {
		return fmt.Errorf("a tile of %d bytes", len(data))
	}
	p.X, p.Y = int8(data[0]), int8(data[1])
	return nil
}

// testRoundTrip takes sketches of K, whose keys are made by key and have a
// default hash or that which is given, in several states through their encoding,
// and on with equal updates.
func testRoundTrip[K comparable](t *testing.T, key func(i int) K, hash func(K) uint64) {
	for name, config := range map[string]Config[K]{
		"plain":  {K: 5, Width: 7, Seed: 3, Hash: hash},
		"faded":  {K: 5, Width: 7, Alpha: 0.1, Base: 1.2, Hash: hash},
		"hashed": {K: 300, Rows: 1, Width: 1, Hash: func(k K) uint64 { return xxhash.Sum64String(fmt.Sprint(k)) }},
	} {
		for _, steps := range []int{0, 3, 2000} {
			t.Run(fmt.Sprintf("%s/steps=%d", name, steps), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, uint64(steps)))
				s := must(NewSketch(config))
				if steps == 2000 {
					for i, x := range []string{"", "\x00", "a\x00b", "\xff"} {
						if k, ok := any(x).(K); ok {
							s.AddN(k, uint32(1000+i))
						}
					}
				}
				play := func(s *Sketch[K], r *rand.Rand) {
					for range steps {
						s.AddN(key(skewed(r, 120)), r.Uint32N(5))
						if r.IntN(50) == 0 {
							s.Fade()
						}
					}
				}
				play(s, r)
				data, err := s.MarshalBinary()
				require.NoError(t, err)
				require.Equal(t, append([]byte("x"), data...), must(s.AppendBinary([]byte("x"))))

				restored := must(NewSketch(config))
				restored.Add(key(77))
				receivers := []*Sketch[K]{restored}
				if config.Hash == nil {
					receivers = append(receivers, new(Sketch[K]))
				}
				for _, c := range receivers {
					require.NoError(t, c.UnmarshalBinary(data))
				}
				clear(data) // nothing may refer to it
				play(s, rand.New(rand.NewPCG(8, 8)))
				for _, c := range receivers {
					play(c, rand.New(rand.NewPCG(8, 8)))
					checkShape(t, c)
					require.Equal(t, s.Top(0), c.Top(0))
					for i := range 120 {
						require.Equal(t, s.Estimate(key(i)), c.Estimate(key(i)))
					}
					a, b := s.Stats(), c.Stats()
					a.Bytes, b.Bytes = 0, 0
					require.Equal(t, a, b)
					require.NoError(t, c.Merge(s))
				}
			})
		}
	}
}

func TestRoundTrip(t *testing.T) {
	type name string
	t.Run("string", func(t *testing.T) { testRoundTrip(t, func(i int) string { return fmt.Sprint(i) }, nil) })
	t.Run("named string", func(t *testing.T) { testRoundTrip(t, func(i int) name { return name(fmt.Sprint(i)) }, nil) })
	t.Run("int", func(t *testing.T) { testRoundTrip(t, func(i int) int { return -i }, nil) })
	t.Run("int8", func(t *testing.T) { testRoundTrip(t, func(i int) int8 { return int8(-i) }, nil) })
	t.Run("uint16", func(t *testing.T) { testRoundTrip(t, func(i int) uint16 { return uint16(i * 500) }, nil) })
	t.Run("int32", func(t *testing.T) { testRoundTrip(t, func(i int) int32 { return int32(-i) << 20 }, nil) })
	t.Run("uint64", func(t *testing.T) { testRoundTrip(t, func(i int) uint64 { return uint64(i) << 50 }, nil) })
	t.Run("tile", func(t *testing.T) { testRoundTrip(t, func(i int) tile { return tile{int8(i), 1} }, tile.hash) })
}

func TestRoundTripOfStripes(t *testing.T) {
	config := Config[string]{K: 10, Width: 20, Stripes: 3, Alpha: 0.2}
	h := must(New(config))
	hammer(8, func(worker int, r *rand.Rand) {
		for range 2000 {
			h.Add(fmt.Sprint(skewed(r, 300)))
		}
		h.Fade()
	})
	data, err := h.MarshalBinary()
	require.NoError(t, err)
	for _, restored := range []*HeavyKeeper[string]{new(HeavyKeeper[string]), must(New(config))} {
		require.NoError(t, restored.UnmarshalBinary(data))
		require.Equal(t, h.Top(0), restored.Top(0))
		require.Equal(t, data, must(restored.MarshalBinary()))
		require.NoError(t, must(New(config)).Merge(restored))
	}
}

// A snapshot while updates go on holds each in full or not at all, all that
// were complete when it began, and none that had not begun when it ended.
func TestSnapshotWhileWriting(t *testing.T) {
	const writers, events, each = 4, 5000, 7
	h := must(New(Config[int]{K: 20, Width: 64, Stripes: 3}))
	var begun, complete atomic.Uint64
	done := make(chan struct{})
	go func() {
		hammer(writers, func(worker int, _ *rand.Rand) {
			for i := range events {
				begun.Add(each)
				h.AddN(100*worker+i%5, each)
				complete.Add(each)
			}
		})
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		least := complete.Load()
		data := must(h.MarshalBinary())
		most := begun.Load()
		var c HeavyKeeper[int]
		require.NoError(t, c.UnmarshalBinary(data))
		listed := uint64(0)
		for item := range c.All() {
			require.Zero(t, item.Count%each, "a part of an update")
			listed += item.Count
		}
		total := c.Stats().Total
		require.Equal(t, total, listed)
		require.GreaterOrEqual(t, total, least)
		require.LessOrEqual(t, total, most)
	}
	require.Equal(t, uint64(writers*events*each), h.Stats().Total)
}

// seal recomputes the checksum of an encoding that a test has changed.
func seal(data []byte) []byte {
	body := data[:len(data)-trailerBytes]
	return little.AppendUint64(body[:len(body):len(body)], xxhash.Sum64(body))
}

// malformed are changes to an encoding that have to be found out. FuzzDecode
// starts from them.
var malformed = []struct {
	name   string
	change func(data []byte) []byte
	want   error
}{
	{"empty", func([]byte) []byte { return nil }, ErrFormat},
	{"only a header", func(d []byte) []byte { return d[:headerBytes] }, ErrFormat},
	{"cut short", func(d []byte) []byte { return d[:len(d)-1] }, ErrFormat},
	{"cut short and sealed", func(d []byte) []byte { return seal(d[:len(d)-9]) }, ErrFormat},
	{"trailing bytes", func(d []byte) []byte { return append(d, 0) }, ErrFormat},
	{"trailing bytes sealed", func(d []byte) []byte { return seal(append(d, 0)) }, ErrFormat},
	{"a bit flipped", func(d []byte) []byte { d[len(d)/2] ^= 1; return d }, ErrFormat},
	{"magic", func(d []byte) []byte { d[0] = 'h'; return seal(d) }, ErrFormat},
	{"version", func(d []byte) []byte { d[4] = 2; return seal(d) }, ErrFormat},
	{"Alpha of -0", func(d []byte) []byte { d[39] = 0x80; return seal(d) }, ErrFormat},
	{"object", func(d []byte) []byte { d[5] = 9; return seal(d) }, ErrMismatch},
	{"key form", func(d []byte) []byte { d[6] = integerForm; return seal(d) }, ErrMismatch},
	{"K zero", func(d []byte) []byte { return seal(put32(d, 8, 0)) }, ErrFormat},
	{"K huge", func(d []byte) []byte { return seal(put32(d, 8, math.MaxUint32)) }, ErrFormat},
	{"Rows huge", func(d []byte) []byte { return seal(put32(d, 12, math.MaxUint32)) }, ErrFormat},
	{"Width huge", func(d []byte) []byte { return seal(put32(d, 16, 1<<25)) }, ErrMismatch},
	{"Rows x Width wrap", func(d []byte) []byte { return seal(put32(put32(d, 12, 16), 16, 1<<28)) }, ErrFormat},
	{"Stripes huge", func(d []byte) []byte { return seal(put32(d, 20, 4096)) }, ErrFormat},
	{"Base NaN", func(d []byte) []byte { return seal(put64(d, 24, math.Float64bits(math.NaN()))) }, ErrFormat},
	{"Alpha one", func(d []byte) []byte { return seal(put64(d, 32, math.Float64bits(1))) }, ErrFormat},
	{"Seed", func(d []byte) []byte { return seal(put64(d, 40, 99)) }, ErrMismatch},
	{"hash probe", func(d []byte) []byte { return seal(put64(d, 48, 99)) }, ErrMismatch},
	{"unit", func(d []byte) []byte { return seal(put64(d, 56, math.Float64bits(math.Inf(1)))) }, ErrFormat},
	{"random state", func(d []byte) []byte { return seal(put64(d, 64, 0)) }, ErrFormat},
	{"excess without misses", func(d []byte) []byte { return seal(put64(d, 104, math.MaxUint64)) }, ErrFormat},
	{"flags", func(d []byte) []byte { return seal(put32(d, 144, 255)) }, ErrFormat},
	{"tracked keys", func(d []byte) []byte { return seal(put32(d, 148, math.MaxUint32)) }, ErrFormat},
	{"more tracked keys", func(d []byte) []byte { return seal(put32(d, 148, 3)) }, ErrMismatch},
	{"key hash", func(d []byte) []byte { return seal(put32(d, 152, 1)) }, ErrMismatch},
	{"count beyond the total", func(d []byte) []byte { return seal(put64(d, 160, 1<<60)) }, ErrFormat},
	{"count below the total", func(d []byte) []byte { return seal(put64(d, 160, 4)) }, ErrFormat},
	{"key length", func(d []byte) []byte { return seal(put32(d, 172, math.MaxUint32)) }, ErrFormat},
	{"key length past the end", func(d []byte) []byte { return seal(put32(d, 172, uint32(len(d)-175))) }, ErrFormat},
	{"key twice", func(d []byte) []byte { copy(d[177:202], d[152:177]); return seal(d) }, ErrFormat},
	{"heap slot twice", func(d []byte) []byte { return seal(put32(d, 210, little.Uint32(d[222:]))) }, ErrFormat},
	{"heap slot", func(d []byte) []byte { return seal(put32(d, 210, 2)) }, ErrFormat},
	{"heap ahead of count", func(d []byte) []byte { return seal(put64(d, 202, 1<<50)) }, ErrFormat},
	{"heap order", func(d []byte) []byte { return seal(put64(d, 214, 0)) }, ErrFormat},
	{"saturated cell", func(d []byte) []byte { return seal(put32(d, 234, saturated)) }, ErrFormat},
	{"a cell in use", func(d []byte) []byte { return seal(put32(d, 234, 1)) }, ErrFormat},
}

func put32(d []byte, at int, x uint32) []byte { little.PutUint32(d[at:], x); return d }
func put64(d []byte, at int, x uint64) []byte { little.PutUint64(d[at:], x); return d }

// twoKeys is the sketch whose encoding malformed knows the places of.
func twoKeys() *Sketch[string] {
	s := must(NewSketch(Config[string]{K: 2, Rows: 1, Width: 3}))
	s.AddN("a", 5)
	s.AddN("b", 7)
	return s
}

func TestDecodeRefusesMalformed(t *testing.T) {
	good := must(twoKeys().MarshalBinary())
	require.NoError(t, new(Sketch[string]).UnmarshalBinary(good))
	for _, test := range malformed {
		t.Run(test.name, func(t *testing.T) {
			data := test.change(append([]byte(nil), good...))
			s := must(NewSketch(Config[string]{K: 2, Rows: 1, Width: 3}))
			s.Add("kept")
			err := s.UnmarshalBinary(data)
			require.ErrorIs(t, err, test.want)
			require.Equal(t, []Item[string]{{"kept", Estimate{1, 1, 1}}}, s.Top(0))
			checkShape(t, s)

			fresh := new(Sketch[string])
			require.Error(t, fresh.UnmarshalBinary(data))
			require.Equal(t, new(Sketch[string]), fresh)
		})
	}
}

func TestDecodeRefusesOtherObjects(t *testing.T) {
	data := must(twoKeys().MarshalBinary())
	base := Config[string]{K: 2, Rows: 1, Width: 3}
	for name, change := range map[string]func(*Config[string]){
		"K = 2, the receiver's is 3":        func(c *Config[string]) { c.K = 3 },
		"Rows = 1, the receiver's is 2":     func(c *Config[string]) { c.Rows = 2 },
		"Width = 3, the receiver's is 4":    func(c *Config[string]) { c.Width = 4 },
		"Base = 1.08, the receiver's is 2":  func(c *Config[string]) { c.Base = 2 },
		"Alpha = 0, the receiver's is 0.5":  func(c *Config[string]) { c.Alpha = 0.5 },
		"Seed = 0, the receiver's is 1":     func(c *Config[string]) { c.Seed = 1 },
		"the zero key hashes to":            func(c *Config[string]) { c.Hash = func(string) uint64 { return 5 } },
		"object 1 with keys of form 1 and ": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if change == nil {
				require.ErrorContains(t, new(HeavyKeeper[string]).UnmarshalBinary(data), name)
				require.ErrorIs(t, new(Sketch[int]).UnmarshalBinary(data), ErrMismatch)
				return
			}
			config := base
			change(&config)
			err := must(NewSketch(config)).UnmarshalBinary(data)
			require.ErrorIs(t, err, ErrMismatch)
			require.ErrorContains(t, err, name)
		})
	}
	_, err := must(NewSketch(Config[float64]{K: 1})).MarshalBinary()
	require.ErrorIs(t, err, ErrKeyType)
	require.ErrorIs(t, new(Sketch[float64]).UnmarshalBinary(data), ErrKeyType)
}

// What hashes with a seed of the process is refused when it is saved, not when
// it is missed.
func TestProcessSeedIsNotSaved(t *testing.T) {
	h, s := must(New(Config[netip.Addr]{K: 1})), must(NewSketch(Config[netip.Addr]{K: 1}))
	for _, object := range []encoding.BinaryAppender{h, s} {
		out, err := object.AppendBinary([]byte("x"))
		require.Equal(t, "x", string(out))
		require.ErrorIs(t, err, ErrKeyType)
		require.ErrorContains(t, err, "netip.Addr hashes with a seed of the process: give a Config.Hash")
	}
	config := Config[netip.Addr]{K: 1, Hash: func(a netip.Addr) uint64 { return xxhash.Sum64(a.AsSlice()) }}
	s = must(NewSketch(config))
	s.Add(netip.MustParseAddr("192.0.2.1"))
	data := must(s.MarshalBinary())
	require.ErrorIs(t, new(Sketch[netip.Addr]).UnmarshalBinary(data), ErrKeyType)
	restored := must(NewSketch(config))
	require.NoError(t, restored.UnmarshalBinary(data))
	require.Equal(t, s.Top(0), restored.Top(0))
}

// A sketch of which nothing is left but totals.
func TestRoundTripOfFaded(t *testing.T) {
	config := Config[string]{K: 2, Width: 3, Alpha: 0.5, Stripes: 2}
	s, h := must(NewSketch(config)), must(New(config))
	for i := range 100 {
		s.AddN(oddKey(i%9), 1000)
		h.AddN(oddKey(i%9), 1000)
	}
	for range 200 {
		s.Fade()
		h.Fade()
	}
	require.Empty(t, s.Top(0))
	require.Empty(t, h.Top(0))
	var r Sketch[string]
	require.NoError(t, r.UnmarshalBinary(must(s.MarshalBinary())))
	require.Empty(t, r.Top(0))
	require.Equal(t, uint64(100000), r.Stats().Total)
	require.Zero(t, r.Stats().Weight)
	checkShape(t, &r)
	for _, x := range []*Sketch[string]{s, &r} {
		x.AddN("again", 5)
		require.Equal(t, []Item[string]{{"again", s.Estimate("again")}}, x.Top(0))
	}
	var k HeavyKeeper[string]
	require.NoError(t, k.UnmarshalBinary(must(h.MarshalBinary())))
	require.Empty(t, k.Top(0))
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

func (l *layout) float64(values ...float64) {
	for _, x := range values {
		l.uint(8, math.Float64bits(x))
	}
}

// TestLayout writes the encoding of a sketch as the comment on it says. It
// runs alike on big-endian machines.
func TestLayout(t *testing.T) {
	s := must(NewSketch(Config[uint16]{K: 1, Rows: 1, Width: 2, Base: 1.5, Alpha: 0.25, Seed: 0x0102030405060708, Hash: func(k uint16) uint64 {
		return uint64(k) * 0x9e3779b97f4a7c15
	}}))
	s.AddN(0x1234, 6)
	s.AddN(0xfedc, 5)
	s.Fade()
	s.AddN(0xfedc, 4)
	s.AddN(0x0007, 1)
	mixed := func(k uint64) uint64 { return mix(k*0x9e3779b97f4a7c15 ^ mix(0x0102030405060708)) }

	l := layout("HKpr")
	l.uint(1, 1, 1, 2, 2)
	l.uint(4, 1, 1, 2, 1)
	l.float64(1.5, 0.25)
	l.uint(8, 0x0102030405060708, mixed(0))
	unit := math.Round(256 / 0.75) // 341 after the fade, of 341.33
	l.float64(256 / 0.75)
	random := newGenerator(0x0102030405060708)
	random.next() // one draw, though cells without a count are free
	l.uint(8, uint64(random))
	l.uint(8, 16, 11*256+5*uint64(unit), 1, 1, 0, 2, 0, 0, 0)
	l.uint(4, 1, 2) // inexact, two keys
	first, second := uint64(6*256), 5*256+4*uint64(unit)
	for _, e := range []struct{ key, count uint64 }{{0x1234, first}, {0xfedc, second}} {
		l.uint(8, mixed(e.key), e.count)
		l.uint(4, 0, 2)
		l.uint(2, e.key)
	}
	l.uint(8, 5*256) // as first seen
	l.uint(4, 1)
	l.uint(8, first)
	l.uint(4, 0)
	cells := [2][3]uint64{}
	position := 0
	if s.rows.at(mixed(7), 0) == &s.rows.cells[1] {
		position = 1
	}
	cells[position] = [3]uint64{mixed(7) & math.MaxUint32, uint64(unit), 0}
	for _, c := range cells {
		l.uint(4, c[:]...)
	}
	l.uint(8, xxhash.Sum64(l))
	require.Equal(t, []byte(l), must(s.MarshalBinary()))

	restored := must(NewSketch(s.config))
	require.NoError(t, restored.UnmarshalBinary(l))
	require.Equal(t, s.Top(0), restored.Top(0))
	require.Equal(t, Estimate{8, 7, 8}, restored.Estimate(0xfedc))
}

// A restored HeavyKeeper may have other stripes than the saved one: machines
// differ in processors.
func TestDecodeIntoOtherStripes(t *testing.T) {
	config := Config[string]{K: 5, Width: 50, Stripes: 4}
	truth := map[string]uint64{}
	saved := must(New(config))
	r := rand.New(rand.NewPCG(4, 4))
	for i := range 4000 {
		key := fmt.Sprint(skewed(r, 100))
		truth[key]++
		saved.stripes.With(i%4, func(s *Sketch[string]) bool {
			s.Add(key)
			return true
		})
	}
	data := must(saved.MarshalBinary())
	for _, stripes := range []int{1, 2, 3, 4, 9} {
		calls := 0
		config.Stripes, config.OnAdmit = stripes, func(string) { calls++ }
		h := must(New(config))
		h.AddN("forgotten", 1000)
		require.Equal(t, 1, calls)
		require.NoError(t, h.UnmarshalBinary(data))
		require.Equal(t, 1, calls, "decoding calls no hook")
		require.Equal(t, stripes, h.stripes.Len())
		require.Equal(t, uint64(4000), h.Stats().Total)
		for key, want := range truth {
			e := h.Estimate(key)
			require.True(t, e.Lower <= want && want <= e.Upper, "%d stripes: %q weighs %d, got %+v", stripes, key, want, e)
		}
		require.Zero(t, h.Estimate("forgotten").Lower)
		require.Equal(t, saved.Top(2), h.Top(2))
		h.AddN("new", 1000000)
		require.Equal(t, 2, calls, "hooks are back")
	}
}

// An encoding whose mean weight is beyond all weights is decoded, and does no
// harm.
func TestForgedMeanWeight(t *testing.T) {
	s := must(NewSketch(Config[uint64]{K: 1, Width: 1, Rows: 1}))
	for i := range uint64(3) {
		s.AddN(i, 1000)
	}
	s.misses, s.excess = math.MaxUint64, math.MaxUint64
	forged := new(Sketch[uint64])
	require.NoError(t, forged.UnmarshalBinary(must(s.MarshalBinary())))
	for i := range uint64(10) {
		forged.AddN(100+i, 2)
		require.Positive(t, forged.quantum)
	}
}

// An Alpha of -0 is 0, also in what is saved.
func TestAlphaOfMinusZero(t *testing.T) {
	s := must(NewSketch(Config[string]{K: 2, Alpha: math.Copysign(0, -1)}))
	require.Equal(t, must(must(NewSketch(Config[string]{K: 2})).MarshalBinary()), must(s.MarshalBinary()))
	require.NoError(t, new(Sketch[string]).UnmarshalBinary(must(s.MarshalBinary())))
}

package heavykeeper

import (
	"encoding"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// reader hands out the bytes of a fuzz input, and zeros when they have run out.
type reader []byte

func (r *reader) next() int {
	if len(*r) == 0 {
		return 0
	}
	b := (*r)[0]
	*r = (*r)[1:]
	return int(b)
}

// subject is a sketch with the exact model of its stream.
type subject struct {
	sketch *Sketch[int]
	model  *model[int]
}

func (s *subject) add(key int, n uint32) {
	s.model.add(key, n)
	s.sketch.AddN(key, n)
}

// step decodes one operation and performs it on s. other may be merged in.
func (s *subject) step(in *reader, other *subject) {
	op := in.next()
	key := in.next() % 48
	switch op % 16 {
	default:
		s.model.add(key, 1)
		s.sketch.Add(key)
	case 8:
		s.add(key, uint32(in.next()))
	case 9:
		// Any order of magnitude, up to the largest weight.
		s.add(key, math.MaxUint32>>(in.next()%32)-uint32(in.next()))
	case 10:
		batch := make([]int, in.next())
		for i := range batch {
			batch[i] = (key + i*i) % (1 + op)
			s.model.add(batch[i], 1)
		}
		s.sketch.AddBatch(batch)
	case 11, 12:
		for range 1 + key%8 {
			s.model.fade(s.sketch)
			s.sketch.Fade()
		}
	case 13:
		if key%8 == 0 {
			s.model = newModel[int]()
			s.sketch.Reset()
		}
	case 14:
		if key%4 == 0 {
			s.merge(other)
		}
	case 15:
		s.restore()
	}
}

// restore goes on with a sketch restored from an encoding.
func (s *subject) restore() {
	restored := must(NewSketch(s.sketch.config))
	if err := restored.UnmarshalBinary(must(s.sketch.MarshalBinary())); err != nil {
		panic(err)
	}
	s.sketch = restored
}

func (s *subject) merge(other *subject) {
	if err := s.sketch.Merge(other.sketch); err != nil {
		panic(err)
	}
	for key, w := range other.model.weight {
		s.model.weight[key] += w
	}
	s.model.total += other.model.total
}

func (s *subject) check(t require.TestingT) {
	s.model.checkBounds(t, s.sketch)
	checkShape(t, s.sketch)
	require.Equal(t, s.model.total, s.sketch.Stats().Total)
}

// FuzzProgram runs programs of operations on two sketches that now and then
// merge, and requires bounds and invariants after each.
func FuzzProgram(f *testing.F) {
	seed := func(b ...byte) { f.Add(b) }
	seed()
	seed(0, 0, 0, 0, 0, 0)
	seed(1, 1, 1, 0, 0, 1, 0, 1, 0, 2, 0, 3, 0, 2, 0, 3, 0, 3)
	seed(0, 0, 0, 2, 3, 7, 9, 1, 0, 0, 9, 2, 0, 0, 9, 3, 0, 0, 9, 3, 0, 0, 11, 7, 9, 4, 4, 200, 14, 0)
	seed(2, 3, 4, 3, 1, 9, 10, 5, 200, 26, 9, 255, 42, 1, 64, 17, 1, 14, 0, 12, 7, 10, 2, 130, 14, 4, 13, 0)
	seed(3, 2, 2, 5, 0, 3, 9, 1, 0, 1, 9, 2, 0, 1, 9, 3, 1, 1, 11, 1, 9, 4, 2, 1, 9, 5, 0, 0, 9, 6, 0, 0, 28, 0, 11, 3, 28, 0)
	seed(3, 2, 2, 0, 2, 9, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 15, 0, 0, 7, 8, 1, 200, 47, 0, 14, 0, 15, 0, 11, 3, 15, 0)
	seed(1, 0, 0, 1, 2, 8, 8, 1, 250, 8, 2, 251, 8, 3, 252, 8, 4, 253, 8, 5, 254, 24, 6, 255, 30, 4, 14, 8, 45, 0, 8, 7, 100)
	f.Fuzz(func(t *testing.T, input []byte) {
		in := reader(input)
		config := Config[int]{
			K:     1 + in.next()%6,
			Rows:  1 + in.next()%5,
			Width: 1 + in.next()%7,
			Base:  []float64{0, 1.001, 1.5, 2, 1e9}[in.next()%5],
			Alpha: []float64{0, 1e-9, 0.01, 0.1, 0.5, 0.99, 1 - 1e-16}[in.next()%7],
			Seed:  uint64(in.next()),
		}
		a := &subject{must(NewSketch(config)), newModel[int]()}
		config.K = 1 + int(config.Seed)%7
		b := &subject{must(NewSketch(config)), newModel[int]()}
		for steps := 0; len(in) > 0 && steps < 400; steps++ {
			if in[0]&16 == 0 {
				a.step(&in, b)
				a.check(t)
			} else {
				b.step(&in, a)
				b.check(t)
			}
		}
	})
}

var configError = regexp.MustCompile(`^heavykeeper: (K|Rows|Width|Stripes|Base|Alpha) = \S+: \S.*$`)

// FuzzConfig feeds any values to the constructors: an error that names a field,
// or a sketch that works.
func FuzzConfig(f *testing.F) {
	f.Add(10, 4, 100, 2, 1.08, 0.0, uint64(0))
	f.Add(1, 1, 1, 1, minBase, 0.5, uint64(1))
	f.Add(0, 0, 0, 0, 0.0, 0.0, uint64(math.MaxUint64))
	f.Add(-1, -1, -1, -1, -1.0, -1.0, uint64(2))
	f.Add(math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt, math.MaxFloat64, math.MaxFloat64, uint64(3))
	f.Add(math.MinInt, math.MinInt, math.MinInt, math.MinInt, math.Inf(-1), math.Inf(1), uint64(4))
	f.Add(maxK, maxRows, maxCells/maxRows, maxStripes, math.NaN(), math.NaN(), uint64(5))
	f.Add(maxK+1, maxRows+1, maxCells+1, maxStripes+1, 1.0, 1.0, uint64(6))
	f.Add(3, 16, 7, 3, math.MaxFloat64, math.Nextafter(1, 0), uint64(7))
	f.Fuzz(func(t *testing.T, k, rows, width, stripes int, base, alpha float64, seed uint64) {
		config := Config[int]{K: k, Rows: rows, Width: width, Stripes: stripes, Base: base, Alpha: alpha, Seed: seed}
		resolved, err := config.resolve()
		if err != nil {
			require.Regexp(t, configError, err.Error())
			h, err := New(config)
			require.Error(t, err)
			require.Nil(t, h)
			return
		}
		if resolved.K > 1000 || resolved.Width > 10000 || resolved.Stripes > 4 {
			return // more memory than a fuzz worker should take
		}
		h, s := must(New(config)), must(NewSketch(config))
		m := newModel[int]()
		for i := range 100 {
			key, n := i%9, uint32(i)*uint32(seed)
			m.add(key, n)
			s.AddN(key, n)
			h.AddN(key, n)
			if i%10 == 0 {
				m.fade(s)
				s.Fade()
				h.Fade()
			}
		}
		m.checkBounds(t, s)
		checkShape(t, s)
		require.Equal(t, m.total, h.Stats().Total)
		require.LessOrEqual(t, len(h.Top(0)), k)
	})
}

// stripes is a HeavyKeeper with an exact model of what came to each stripe:
// they fade, and forget fractions, by themselves.
type stripes struct {
	keeper *HeavyKeeper[int]
	models []*model[int]
}

func newStripes(config Config[int]) *stripes {
	s := &stripes{keeper: must(New(config))}
	for range config.Stripes {
		s.models = append(s.models, newModel[int]())
	}
	return s
}

// at lets f change the sketch and model of a stripe.
func (s *stripes) at(i int, f func(*subject)) {
	i %= len(s.models)
	s.keeper.stripes.With(i, func(sketch *Sketch[int]) bool {
		f(&subject{sketch, s.models[i]})
		return true
	})
}

// step decodes one operation and performs it. other may be merged in.
func (s *stripes) step(in *reader, other *stripes) {
	op, stripe, key := in.next(), in.next(), in.next()%48
	switch op % 8 {
	default:
		s.at(stripe, func(x *subject) { x.add(key, 1) })
	case 3:
		s.at(stripe, func(x *subject) { x.add(key, math.MaxUint32>>(in.next()%32)-uint32(in.next())) })
	case 4:
		for i := range s.models {
			s.at(i, func(x *subject) { x.model.fade(x.sketch) })
		}
		s.keeper.Fade()
	case 5:
		if key%4 == 0 {
			s.merge(other)
		}
	case 6:
		restored := must(New(s.keeper.config))
		if err := restored.UnmarshalBinary(must(s.keeper.MarshalBinary())); err != nil {
			panic(err)
		}
		s.keeper = restored
	case 7:
		if key%16 == 0 {
			s.keeper.Reset()
			for i := range s.models {
				s.models[i] = newModel[int]()
			}
		}
	}
}

// merge adds other's stripes to those of s in turn, as Merge does.
func (s *stripes) merge(other *stripes) {
	if err := s.keeper.Merge(other.keeper); err != nil {
		panic(err)
	}
	for i, m := range other.models {
		into := s.models[i%len(s.models)]
		for key, w := range m.weight {
			into.weight[key] += w
		}
		into.total += m.total
	}
}

// check requires that bounds hold for the sums, that each stripe is sound, and
// that the list is in order and says what Estimate does.
func (s *stripes) check(t require.TestingT) {
	weight, total := map[int]float64{}, uint64(0)
	for i, m := range s.models {
		total += m.total
		for key, w := range m.weight {
			weight[key] += w
		}
		s.at(i, func(x *subject) { checkShape(t, x.sketch) })
	}
	for key, truth := range weight {
		const rounding = 1e-9
		if e := s.keeper.Estimate(key); float64(e.Lower) > truth*(1+rounding) || float64(e.Upper) < truth*(1-rounding) ||
			e.Count < e.Lower || e.Count > e.Upper {
			require.Failf(t, "bounds", "key %v weighs %v, got %+v", key, truth, e)
		}
	}
	require.Equal(t, total, s.keeper.Stats().Total)
	top := s.keeper.Top(0)
	require.LessOrEqual(t, len(top), s.keeper.config.K)
	for i, item := range top {
		require.Positive(t, item.Count)
		require.Equal(t, s.keeper.Estimate(item.Key), item.Estimate)
		if i > 0 {
			require.True(t, top[i-1].Count > item.Count || top[i-1].Count == item.Count && top[i-1].Key < item.Key,
				"%v before %v", top[i-1], item)
		}
	}
}

// FuzzKeeperProgram does for a HeavyKeeper what FuzzProgram does for a Sketch.
func FuzzKeeperProgram(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 1, 1, 0, 0, 3, 2, 0, 0, 1, 0, 1, 2, 0, 2, 3, 3, 1, 4, 0, 0, 4, 0, 0, 5, 0, 4, 6, 0, 0})
	f.Add([]byte{2, 3, 2, 2, 3, 9, 2, 0, 0, 1, 8, 1, 2, 0, 2, 3, 3, 1, 4, 9, 9, 3, 2, 5, 0, 0, 13, 0, 8, 4, 0, 0, 5, 0, 4, 6, 0, 0, 7, 0, 16})
	f.Fuzz(func(t *testing.T, input []byte) {
		in := reader(input)
		config := Config[int]{
			K:       1 + in.next()%4,
			Rows:    1 + in.next()%4,
			Width:   1 + in.next()%7,
			Base:    []float64{0, 1.001, 2}[in.next()%3],
			Alpha:   []float64{0, 0.01, 0.5, 0.99}[in.next()%4],
			Seed:    uint64(in.next()),
			Stripes: 1 + in.next()%4,
		}
		a := newStripes(config)
		config.Stripes = 1 + in.next()%3
		b := newStripes(config)
		for steps := 0; len(in) > 0 && steps < 300; steps++ {
			if in[0]&8 == 0 {
				a.step(&in, b)
				a.check(t)
			} else {
				b.step(&in, a)
				b.check(t)
			}
		}
	})
}

// goldenFiles returns the encodings in testdata whose names start so.
func goldenFiles(t testing.TB, prefix string) [][]byte {
	names := must(filepath.Glob(filepath.Join("testdata", prefix+"*.hk")))
	require.NotEmpty(t, names)
	var files [][]byte
	for _, name := range names {
		files = append(files, must(os.ReadFile(name)))
	}
	return files
}

// exercise uses a sketch of any origin. Its counts may be made up, and bounds
// of no meaning, but nothing may break.
func exercise(t require.TestingT, s *Sketch[string]) {
	checkShape(t, s)
	for i := range 40 {
		s.AddN(oddKey(i*i%13), math.MaxUint32>>(i%33))
		if i%8 == 0 {
			s.Fade()
		}
	}
	s.AddBatch([]string{"", "a", "a", "b"})
	checkShape(t, s)
	require.NoError(t, s.Merge(s.clone()))
	checkShape(t, s)
}

// decoded requires that what UnmarshalBinary made of data encodes as data
// again, and that errors are those documented.
func decoded(t require.TestingT, data []byte, o interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}) bool {
	if err := o.UnmarshalBinary(data); err != nil {
		require.True(t, errors.Is(err, ErrFormat) || errors.Is(err, ErrMismatch), "%v", err)
		return false
	}
	require.Equal(t, data, must(o.MarshalBinary()))
	return true
}

// FuzzDecode decodes sketches from any bytes, as they are and with a checksum
// that fits.
func FuzzDecode(f *testing.F) {
	for _, data := range goldenFiles(f, "sketch") {
		f.Add(data)
	}
	good := must(twoKeys().MarshalBinary())
	for _, m := range malformed {
		f.Add(m.change(append([]byte(nil), good...)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for range 2 {
			var s Sketch[string]
			if decoded(t, data, &s) {
				exercise(t, &s)
			} else {
				require.Equal(t, new(Sketch[string]), &s)
			}
			kept := twoKeys()
			if !decoded(t, data, kept) {
				require.Equal(t, good, must(kept.MarshalBinary()))
			}
			decoded(t, data, new(Sketch[int]))
			if len(data) < headerBytes+trailerBytes {
				return
			}
			data = seal(data)
		}
	})
}

// FuzzDecodeKeeper does for a HeavyKeeper what FuzzDecode does for a Sketch.
func FuzzDecodeKeeper(f *testing.F) {
	for _, data := range goldenFiles(f, "keeper") {
		f.Add(data)
	}
	config := Config[string]{K: 1, Rows: 1, Width: 2, Stripes: 2}
	build := func() *HeavyKeeper[string] {
		h := must(New(config))
		h.AddN("a", 3)
		return h
	}
	good := must(build().MarshalBinary())
	for _, m := range malformed {
		f.Add(m.change(append([]byte(nil), good...)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for range 2 {
			var h HeavyKeeper[string]
			if decoded(t, data, &h) {
				for _, s := range h.stripes.Locked() {
					exercise(t, s)
				}
				h.Top(0)
				h.Stats()
			} else {
				require.Nil(t, h.stripes)
			}
			kept := build()
			if !decoded(t, data, kept) {
				require.Equal(t, []Item[string]{{"a", Estimate{3, 3, 3}}}, kept.Top(0))
			}
			if len(data) < headerBytes+trailerBytes {
				return
			}
			data = seal(data)
		}
	})
}

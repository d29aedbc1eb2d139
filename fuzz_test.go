package heavykeeper

import (
	"math"
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
	}
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

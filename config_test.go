package heavykeeper

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfigValues(t *testing.T) {
	type config = Config[int]
	set := map[string]func(*config, int){
		"K":       func(c *config, v int) { c.K = v },
		"Rows":    func(c *config, v int) { c.Rows = v },
		"Width":   func(c *config, v int) { c.Width = v },
		"Stripes": func(c *config, v int) { c.Stripes = v },
	}
	tests := []struct {
		field string
		value int
		ok    bool
	}{
		{"K", math.MinInt, false}, {"K", -1, false}, {"K", 0, false}, {"K", 1, true}, {"K", maxK, true},
		{"K", maxK + 1, false}, {"K", math.MaxInt, false}, {"K", math.MaxInt/10 + 1, false}, {"K", math.MaxInt / 2, false},
		{"Rows", math.MinInt, false}, {"Rows", -1, false}, {"Rows", 0, true}, {"Rows", 1, true}, {"Rows", maxRows, true},
		{"Rows", maxRows + 1, false}, {"Rows", math.MaxInt, false},
		{"Width", math.MinInt, false}, {"Width", -1, false}, {"Width", 0, true}, {"Width", 1, true}, {"Width", maxCells / 4, true},
		{"Width", maxCells/4 + 1, false}, {"Width", maxCells, false}, {"Width", maxCells + 1, false}, {"Width", math.MaxInt, false},
		{"Stripes", math.MinInt, false}, {"Stripes", -1, false}, {"Stripes", 0, true}, {"Stripes", 1, true},
		{"Stripes", maxStripes, true}, {"Stripes", maxStripes + 1, false}, {"Stripes", math.MaxInt, false},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s=%d", test.field, test.value), func(t *testing.T) {
			c := config{K: 10, Width: 16, Stripes: 1}
			set[test.field](&c, test.value)
			_, err := c.resolve()
			requireVerdict(t, test.ok, err, test.field, test.value)
			if !test.ok {
				_, err := New(c)
				requireVerdict(t, false, err, test.field, test.value)
			}
		})
	}
}

func requireVerdict(t require.TestingT, ok bool, err error, field string, value any) {
	if ok {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, fmt.Sprintf("heavykeeper: %s = %v: ", field, value))
	require.ErrorContains(t, err, "must be")
}

func TestConfigFloats(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		field string
		value float64
		ok    bool
	}{
		{"Base", nan, false}, {"Base", inf, false}, {"Base", -inf, false}, {"Base", -1, false}, {"Base", 0, true},
		{"Base", 1, false}, {"Base", math.Nextafter(minBase, 0), false}, {"Base", minBase, true}, {"Base", 1.08, true},
		{"Base", 2, true}, {"Base", 1e300, true}, {"Base", math.MaxFloat64, true}, {"Base", math.SmallestNonzeroFloat64, false},
		{"Alpha", nan, false}, {"Alpha", inf, false}, {"Alpha", -inf, false}, {"Alpha", -1, false},
		{"Alpha", -math.SmallestNonzeroFloat64, false}, {"Alpha", math.Copysign(0, -1), true}, {"Alpha", 0, true},
		{"Alpha", math.SmallestNonzeroFloat64, true}, {"Alpha", 1e-18, true}, {"Alpha", 0.5, true},
		{"Alpha", math.Nextafter(1, 0), true}, {"Alpha", 1, false}, {"Alpha", math.Nextafter(1, 2), false}, {"Alpha", math.MaxFloat64, false},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s=%v", test.field, test.value), func(t *testing.T) {
			c := Config[int]{K: 2, Width: 2}
			if test.field == "Base" {
				c.Base = test.value
			} else {
				c.Alpha = test.value
			}
			s, err := NewSketch(c)
			requireVerdict(t, test.ok, err, test.field, test.value)
			_, err = New(c)
			requireVerdict(t, test.ok, err, test.field, test.value)
			if !test.ok {
				require.Nil(t, s)
				return
			}
			// What is accepted works, to the limit.
			m := newModel[int]()
			for i := range 300 {
				m.add(i%7, uint32(i))
				s.AddN(i%7, uint32(i))
				if i%20 == 0 {
					m.fade(s)
					s.Fade()
				}
				m.checkBounds(t, s)
			}
			checkShape(t, s)
		})
	}
}

func TestConfigDefaults(t *testing.T) {
	tests := []struct{ k, width int }{{1, 256}, {25, 256}, {100, 100 * cellsPerKey}, {100000, 100000 * cellsPerKey}}
	for _, test := range tests {
		c, err := Config[int]{K: test.k}.resolve()
		require.NoError(t, err)
		require.Equal(t, 4, c.Rows)
		require.Equal(t, test.width, c.Width)
		require.Equal(t, 1.08, c.Base)
		require.Zero(t, c.Alpha)
		require.GreaterOrEqual(t, c.Stripes, runtime.GOMAXPROCS(0))
		require.Zero(t, c.Stripes&(c.Stripes-1))
	}
	c, err := Config[int]{K: 3, Rows: 5, Width: 17, Stripes: 3, Base: 1.5, Alpha: 0.25, Seed: 9}.resolve()
	require.NoError(t, err)
	require.Equal(t, Config[int]{K: 3, Rows: 5, Width: 17, Stripes: 3, Base: 1.5, Alpha: 0.25, Seed: 9}, c, "given values are used as given")
}

// Stripes that are too many in all for a machine are an error as well, whose
// cells take 12 bytes each, and none of a Sketch.
func TestConfigProducts(t *testing.T) {
	tests := []struct {
		k, rows, width, stripes int
		ok                      bool
	}{
		{1, 1, 1 << 18, 1 << 12, true}, {1, 1, 1<<18 + 1, 1 << 12, false}, {1, 16, 1 << 23, 8, true}, {1, 16, 1 << 23, 9, false},
		{1, 16, 1 << 14, 1 << 12, true}, {1, 16, 1<<14 + 1, 1 << 12, false}, {maxK, 4, 1, 64, true}, {maxK, 4, 1, 65, false},
		{1 << 18, 4, 1, 1 << 12, true}, {1<<18 + 1, 4, 1, 1 << 12, false}, {maxK, 4, maxCells / 4, maxStripes, false},
		{1 << 18, 0, 0, 1 << 12, true}, {maxK, 16, 0, 64, true}, {maxK, 0, 0, 1 << 12, false},
	}
	for _, test := range tests {
		c := Config[int]{K: test.k, Rows: test.rows, Width: test.width, Stripes: test.stripes}
		resolved, err := c.resolve()
		requireVerdict(t, test.ok, err, "Stripes", test.stripes)
		if test.ok {
			cells := uint64(resolved.Rows) * uint64(resolved.Width) * uint64(resolved.Stripes)
			require.LessOrEqual(t, cells, uint64(maxAllCells), "%+v", c)
			require.Positive(t, resolved.Width)
		}
	}
	_, err := NewSketch(Config[int]{K: maxK, Rows: 1, Width: 1 << 19, Stripes: 1 << 12})
	require.NoError(t, err)
}

// Rows x Width is checked without overflow and before anything is allocated.
func TestBadConfigAllocatesNothing(t *testing.T) {
	tests := []Config[int]{
		{K: math.MaxInt},
		{K: maxK + 1, Width: maxCells},
		{K: maxK, Rows: 16, Width: maxCells},
		{K: maxK, Rows: 16, Width: maxCells/16 + 1},
		{K: maxK, Width: maxCells / 4, Stripes: math.MaxInt},
		{K: maxK, Width: maxCells / 4, Alpha: 1},
		{K: maxK, Width: maxCells / 4, Base: 1},
		{K: maxK, Rows: math.MaxInt, Width: math.MaxInt},
	}
	_, err := New(Config[int]{K: maxK, Stripes: maxStripes}) // not so of a Sketch
	require.Error(t, err)
	for _, c := range tests {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := New(c)
		require.Error(t, err)
		_, err = NewSketch(c)
		require.Error(t, err)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<16), "%+v", err)
	}
}

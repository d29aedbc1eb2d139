package heavykeeper

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// positions returns the cells of the key with hash h, by row.
func positions(r *rows, h uint64, into []int) []int {
	into = into[:0]
	start := uintptr(unsafe.Pointer(&r.cells[0]))
	for i := range r.count {
		at := (uintptr(unsafe.Pointer(r.at(h, i))) - start) / unsafe.Sizeof(cell{})
		into = append(into, int(at)-i*int(r.width))
	}
	return into
}

var shapes = []struct{ rows, width int }{
	{1, 1}, {1, 7}, {2, 1}, {2, 64}, {3, 61}, {4, 256}, {5, 100}, {7, 31}, {16, 1}, {16, 2}, {15, 33}, {16, 32}, {16, 1000}, {16, 1024},
}

const smallShapes = 10 // so many of shapes have few cells

// add walks the cells that at gives, all of them, once each.
func TestAddReachesEachRow(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 32))
	for _, shape := range shapes[:smallShapes] {
		r := newRows(shape.rows, shape.width, random.Uint64())
		require.Len(t, r.cells, shape.rows*shape.width)
		for range 40 {
			h := random.Uint64()
			want := make([]cell, len(r.cells))
			for i, at := range positions(&r, h, nil) {
				require.GreaterOrEqual(t, at, 0)
				require.Less(t, at, shape.width)
				want[i*shape.width+at] = cell{err: 3}
			}
			r.reset()
			r.add(h, 3)
			if !slices.Equal(want, r.cells) {
				require.Failf(t, "cells", "%+v: got %v, want %v", shape, r.cells, want)
			}
		}
	}
}

// collisions returns how many pairs of ids are equal.
func collisions(ids []int) float64 {
	slices.Sort(ids)
	sum, run := 0.0, 0
	for i, id := range ids {
		if i > 0 && id != ids[i-1] {
			run = 0
		}
		sum += float64(run)
		run++
	}
	return sum
}

func pairs(n int) float64 { return float64(n) * float64(n-1) / 2 }

// Of the pairs of keys that share a cell in some rows, one in width does in
// another: no row is another one shuffled, shifted or scaled.
func TestRowsAreIndependent(t *testing.T) {
	keys := 4000
	if testing.Short() {
		keys = 2000
	}
	for _, shape := range shapes {
		for _, seed := range []uint64{0, 0x9e3779b97f4a7c15} {
			r := newRows(shape.rows, shape.width, seed)
			at := make([][]int, keys)
			for i := range at {
				at[i] = positions(&r, mix(uint64(i)), nil)
			}
			sets := [][]int{}
			for i := range shape.rows {
				for j := range i {
					sets = append(sets, []int{i, j}, []int{i, j, (i*3 + j + 5) % shape.rows})
				}
			}
			for _, set := range sets {
				requireIndependent(t, at, set, shape.width)
			}
		}
	}
}

// requireIndependent requires that as many pairs of keys share their cells in all
// rows of set as chance has it.
func requireIndependent(t require.TestingT, at [][]int, set []int, width int) {
	distinct := map[int]bool{}
	for _, row := range set {
		distinct[row] = true
	}
	if len(distinct) < len(set) {
		return
	}
	ids := make([]int, len(at))
	for i, p := range at {
		for _, row := range set {
			ids[i] = ids[i]*width + p[row]
		}
	}
	got := collisions(ids)
	p := math.Pow(float64(width), -float64(len(set)))
	want := pairs(len(at)) * p
	require.InDelta(t, want, got, 6*math.Sqrt(want*(1-p))+3, "rows %v, width %d", set, width)
}

// Keys that share a cell share bits of fingerprint, index position and index
// tag no more often than others.
func TestFingerprintIsIndependentOfPositions(t *testing.T) {
	const width, keys = 64, 8000
	parts := map[string]func(h uint64) uint64{
		"low bits":  func(h uint64) uint64 { return h & 63 },
		"high bits": func(h uint64) uint64 { return h >> 26 & 63 },
		"home":      func(h uint64) uint64 { return h >> 58 },
	}
	r := newRows(16, width, 5)
	var at []int
	for what, part := range parts {
		for row := range r.count {
			ids := make([]int, keys)
			for i := range ids {
				h := mix(uint64(i))
				at = positions(&r, h, at)
				ids[i] = at[row]<<6 | int(part(h))
			}
			got := collisions(ids)
			const p = 1.0 / width / 64
			require.InDelta(t, pairs(keys)*p, got, 6*math.Sqrt(pairs(keys)*p)+3, "%s, row %d", what, row)
		}
	}
}

func TestKeysSpreadEvenly(t *testing.T) {
	const n = 20000
	integers := map[string]func(i int) uint64{
		"sequential":        func(i int) uint64 { return uint64(i) },
		"descending":        func(i int) uint64 { return -uint64(i) },
		"multiples of 1000": func(i int) uint64 { return uint64(i) * 1000 },
		"multiples of 2^16": func(i int) uint64 { return uint64(i) << 16 },
		"multiples of 2^32": func(i int) uint64 { return uint64(i) << 32 },
		"multiples of 2^47": func(i int) uint64 { return uint64(i) << 47 },
		"halves repeated":   func(i int) uint64 { return uint64(i)<<32 | uint64(i) },
		"golden":            func(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 },
	}
	strings := map[string]func(i int) string{
		"suffix": func(i int) string { return fmt.Sprintf("https://example.com/a/common/prefix/%d", i) },
		"prefix": func(i int) string { return fmt.Sprintf("%d.img.example.com", i) },
		"binary": func(i int) string { return string([]byte{byte(i), 0, byte(i >> 8), 0, byte(i >> 16)}) },
	}
	for _, width := range []int{64, 100, 1000, 1024} {
		for name, key := range integers {
			for what, hash := range map[string]func(uint64) uint64{"default": nil, "identity": func(x uint64) uint64 { return x }} {
				s := must(NewSketch(Config[uint64]{K: 1, Width: width, Hash: hash}))
				requireEven(t, s, n, key, fmt.Sprintf("%s, Hash %s, width %d", name, what, width))
			}
		}
		for name, key := range strings {
			s := must(NewSketch(Config[string]{K: 1, Width: width, Seed: 3}))
			requireEven(t, s, n, key, fmt.Sprintf("%s, width %d", name, width))
		}
		s := must(NewSketch(Config[int32]{K: 1, Width: width, Seed: 4}))
		requireEven(t, s, n, func(i int) int32 { return int32(-i) }, fmt.Sprintf("int32, width %d", width))
	}
}

func requireEven[K comparable](t require.TestingT, s *Sketch[K], n int, key func(int) K, what string) {
	width := int(s.rows.width)
	got := make([][]int, s.rows.count)
	for i := range got {
		got[i] = make([]int, width)
	}
	var at []int
	for i := range n {
		at = positions(&s.rows, s.keys.hash(key(i)), at)
		for row, p := range at {
			got[row][p]++
		}
	}
	for row := range got {
		requireDistributed(t, even(width), got[row], fmt.Sprintf("%s, row %d", what, row))
	}
}

// Seeds give other positions, and no two rows of two seeds are the same one.
func TestSeedMovesRows(t *testing.T) {
	seen := map[uint64]string{}
	for _, seed := range []uint64{0, 1, 2, 1 << 63, math.MaxUint64} {
		r := newRows(16, 10, seed)
		for i, m := range r.multipliers {
			require.Equal(t, uint64(1), m&1)
			require.NotContains(t, seen, m)
			seen[m] = fmt.Sprint(seed, i)
		}
	}
}

// edges are counters at which sums wrap or saturate.
var edges = []uint32{0, 1, 2, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 3, 1<<32 - 2, 1<<32 - 1}

func TestAddIsUndoneExactly(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 34))
	for _, shape := range shapes[:smallShapes] {
		r := newRows(shape.rows, shape.width, random.Uint64())
		for range 100 {
			h := random.Uint64()
			for i := range r.cells {
				r.cells[i] = cell{uint32(h) + uint32(random.IntN(2)), edges[random.IntN(len(edges))], edges[random.IntN(len(edges))]}
			}
			before := slices.Clone(r.cells)
			w := uint64(random.Uint32()) << random.IntN(17)
			r.add(h, w)
			r.add(h, -w)
			if !slices.Equal(before, r.cells) {
				require.Failf(t, "cells", "weight %d: got %v, want %v", w, r.cells, before)
			}
		}
	}
}

// add's view tells of every counter that may have wrapped, and agrees with look
// where none has.
func TestAddTellsWhatItFound(t *testing.T) {
	random := rand.New(rand.NewPCG(35, 36))
	wrapped := 0
	for range 5000 {
		shape := shapes[random.IntN(smallShapes)]
		r := newRows(shape.rows, shape.width, random.Uint64())
		h := random.Uint64()
		for i := range r.cells {
			r.cells[i] = cell{uint32(h) + uint32(random.IntN(2)), random.Uint32() >> random.IntN(32), random.Uint32() >> random.IntN(32)}
		}
		w := 1 + uint64(random.Uint32())>>random.IntN(32)
		most := r.look(h, w).most
		got := r.add(h, w)
		require.GreaterOrEqual(t, 2*got.most, most)
		if most > math.MaxUint32 {
			wrapped++
			require.GreaterOrEqual(t, got.most, uint64(1)<<31, "a counter wraps unnoticed")
			continue
		}
		want := r.look(h, 0)
		require.Equal(t, want.owned, got.owned)
		require.Equal(t, want.lower, got.lower)
		if !got.owned {
			require.Same(t, want.weakest, got.weakest)
			for i := range r.count {
				require.LessOrEqual(t, got.weakest.count, r.at(h, i).count)
			}
		}
	}
	require.Positive(t, wrapped)
}

func TestCountersSaturate(t *testing.T) {
	weights := []uint64{5, 1 << 32, 1<<32 + 1, 1 << 48}
	for _, w := range edges {
		weights = append(weights, uint64(w))
	}
	for _, count := range edges {
		for _, err := range edges {
			for _, w := range weights {
				name := fmt.Sprintf("count %d, err %d, weight %d", count, err, w)
				main := min(uint64(count)+uint64(err)+w, math.MaxUint64)

				owner := newRows(1, 1, 0)
				owner.cells[0] = cell{7, count, err}
				owner.addSlowly(7, w)
				got := owner.cells[0]
				require.GreaterOrEqual(t, got.count, count, name)
				require.Equal(t, min(uint64(count)+w, saturated), uint64(got.count), name)
				lower, upper := owner.bounds(7)
				require.Equal(t, uint64(got.count), lower, name)
				requireUpper(t, &owner, main, upper, name)

				other := newRows(1, 1, 0)
				other.cells[0] = cell{7, count, err}
				other.addSlowly(8, w)
				require.Equal(t, count, other.cells[0].count, name)
				lower, upper = other.bounds(8)
				require.Zero(t, lower, name)
				requireUpper(t, &other, uint64(err)+w, upper, name)
			}
		}
	}
}

// requireUpper requires that an upper bound is exact, or none at all where the
// counter has come to its end.
func requireUpper(t require.TestingT, r *rows, want, got uint64, name string) {
	if r.cells[0].err == saturated {
		require.Equal(t, uint64(math.MaxUint64), got, name)
		return
	}
	require.Equal(t, want, got, name)
}

func TestSaturatedNeverRecovers(t *testing.T) {
	r := newRows(1, 1, 0)
	r.cells[0] = cell{7, 10, 0}
	r.addSlowly(8, math.MaxUint32)
	require.True(t, r.saturated)
	r.lift(8, 1000)
	r.take(&r.cells[0], 8, 1000)
	r.scale(ratio{1, 256}, math.MaxUint64)
	r.scale(ratio{1, 1 << 20}, math.MaxUint64)
	for _, h := range []uint64{7, 8, 9} {
		_, upper := r.bounds(h)
		require.Equal(t, uint64(math.MaxUint64), upper, "key %d", h)
	}
	other := newRows(1, 1, 0)
	other.merge(&r)
	require.True(t, other.saturated)
	_, upper := other.bounds(8)
	require.Equal(t, uint64(math.MaxUint64), upper)
	r.reset()
	require.False(t, r.saturated)
	require.Equal(t, []cell{{}}, r.cells)
}

// A saturated row bounds nothing, but the others still do.
func TestUpperSkipsSaturatedRows(t *testing.T) {
	r := newRows(2, 1, 0)
	r.cells[0] = cell{1, 5, saturated}
	r.cells[1] = cell{2, 5, 100}
	tests := []struct{ h, lower, upper uint64 }{{1, 5, 100}, {2, 5, 105}, {3, 0, 100}}
	for _, test := range tests {
		lower, upper := r.bounds(test.h)
		require.Equal(t, [2]uint64{test.lower, test.upper}, [2]uint64{lower, upper}, "key %d", test.h)
	}
}

// Random sequences of what a sketch does to its rows, against exact weights.
func TestRowsKeepInvariant(t *testing.T) {
	random := rand.New(rand.NewPCG(37, 38))
	for run := range 60 {
		r := newRows(1+random.IntN(4), 1+random.IntN(4), random.Uint64())
		weight := map[uint64]uint64{}
		for range 300 {
			h := mix(random.Uint64N(12) + uint64(run)<<8)
			w := 1 + random.Uint64N(50)
			switch random.IntN(5) {
			case 0, 1:
				r.add(h, w)
				weight[h] += w
			case 2:
				v := r.add(h, w)
				weight[h] += w
				if !v.owned {
					r.setCount(v.weakest, 0)
					r.take(v.weakest, h, random.Uint64N(w+1))
				}
			case 3:
				lower, upper := r.liftOut(h)
				require.LessOrEqual(t, lower, weight[h])
				require.GreaterOrEqual(t, upper, weight[h])
				weight[h] -= lower
				if random.IntN(2) == 0 {
					r.settle(h, lower, 0)
					weight[h] += lower
				}
			default:
				v := r.look(h, 0)
				r.setCount(v.weakest, v.weakest.count-min(v.weakest.count, uint32(w)))
			}
			for h, want := range weight {
				lower, upper := r.bounds(h)
				if lower > want || upper < want {
					require.Failf(t, "bounds", "got %d and %d, want %d between", lower, upper, want)
				}
			}
			requireInvariant(t, &r, weight)
		}
	}
}

// requireInvariant requires what the comment of rows says.
func requireInvariant(t require.TestingT, r *rows, weight map[uint64]uint64) {
	all, owners := map[*cell]uint64{}, map[*cell]uint64{}
	for h, w := range weight {
		for i := range r.count {
			c := r.at(h, i)
			all[c] += w
			if r.owns(h, c) {
				owners[c] += w
			}
		}
	}
	for c, w := range all {
		if uint64(c.err) < w-owners[c] || uint64(c.err)+uint64(c.count) < w || uint64(c.count) > owners[c] {
			require.Failf(t, "invariant", "cell %+v with weight %d, %d of it its owner's", *c, w, owners[c])
		}
	}
}

// A saturated error stays so through whatever is taken from its cell, and look
// does not count it, as it cannot grow.
func TestSaturatedErrorIsKept(t *testing.T) {
	r := newRows(1, 1, 0)
	c := &r.cells[0]
	*c = cell{fingerprint: 7, count: 100, err: saturated}
	require.Equal(t, uint64(103), r.look(7, 3).most)
	require.Equal(t, uint64(0), r.look(8, 3).most)
	r.lift(7, 100)
	require.Equal(t, cell{fingerprint: 7, err: saturated}, *c)
	r.lift(8, 5)
	require.Equal(t, cell{fingerprint: 7, err: saturated}, *c)
	*c = cell{fingerprint: 7, count: 100, err: 50}
	require.Equal(t, uint64(53), r.look(8, 3).most)
	r.lift(7, 120)
	require.Equal(t, cell{fingerprint: 7, err: 30}, *c)
	r.lift(8, 5)
	require.Equal(t, cell{fingerprint: 7, err: 25}, *c)
}

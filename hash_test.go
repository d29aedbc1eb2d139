package heavykeeper

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/exp/constraints"
)

type (
	namedInt8   int8
	namedInt32  int32
	namedInt    int
	namedUint16 uint16
	namedUint64 uint64
	namedString string
	namedFloat  float64

	point struct{ X, Y int32 }
	route struct {
		Method string
		Status int16
		Path   namedString
	}
	nested struct {
		Routes [2]route
		Done   bool
	}
	boxed struct {
		Name  string
		Value any
	}
)

// requireKeys counts keys that are all different, each another number of times,
// and requires that none is taken for another, tracked or not.
func requireKeys[K comparable](t *testing.T, list []K) {
	t.Helper()
	t.Run(fmt.Sprintf("%T", *new(K)), func(t *testing.T) {
		for _, k := range []int{len(list), 1} {
			s := must(NewSketch(Config[K]{K: k, Seed: 5}))
			hashes := map[uint64]bool{}
			total := uint64(0)
			for i, key := range list {
				s.AddN(key, uint32(i+1))
				s.Add(key)
				total += uint64(i + 2)
				hashes[s.keys.hash(key)] = true
			}
			require.Len(t, hashes, len(list), "hashes")
			require.Equal(t, total, s.Stats().Total)
			require.Zero(t, s.Stats().Ignored)
			for i, key := range list {
				e, want := s.Estimate(key), uint64(i+2)
				require.LessOrEqual(t, e.Lower, want, "%#v", key)
				require.GreaterOrEqual(t, e.Upper, want, "%#v", key)
				if k == len(list) {
					require.Equal(t, Estimate{want, want, want}, e, "%#v", key)
					require.True(t, s.Contains(key))
				}
				for j, other := range list {
					got := s.keys.compare(key, other)
					require.Equal(t, i == j, got == 0, "%#v and %#v", key, other)
					require.Equal(t, -got, s.keys.compare(other, key), "%#v and %#v", key, other)
				}
			}
			checkShape(t, s)
		}
		requireOrder(t, list)
	})
}

// requireOrder requires that keys of equal count are listed in an order that
// has nothing to do with that of insertion.
func requireOrder[K comparable](t *testing.T, list []K) {
	t.Helper()
	var want []Item[K]
	for turn := range 3 {
		s := must(NewSketch(Config[K]{K: len(list), Seed: 6}))
		order := append(slices.Clone(list[turn%len(list):]), list[:turn%len(list)]...)
		if turn == 2 {
			slices.Reverse(order)
		}
		for _, key := range order {
			s.AddN(key, 3)
		}
		got := s.Top(0)
		require.Len(t, got, len(list))
		if turn == 0 {
			want = got
		}
		require.Equal(t, want, got)
	}
}

func requireIntegers[K constraints.Integer](t *testing.T) {
	t.Helper()
	list := []K{0, 1, 2, 3, 7, 64, 100, 127}
	highest := ^K(0)
	if highest < 0 {
		highest = K(1)<<(8*unsafe.Sizeof(K(0))-1) - 1
		lowest := ^highest
		list = append(list, K(0)-1, K(0)-2, lowest, lowest+1, lowest/2)
	}
	list = append(list, highest-1, highest/2+1, highest/4*3)
	if !slices.Contains(list, highest) {
		list = append(list, highest)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	requireKeys(t, list)
	k := newKeys(Config[K]{Seed: 5})
	require.NotEqual(t, kindOther, k.kind, "%T goes the slow way", K(0))
	require.True(t, slices.IsSortedFunc(list, k.compare), "%T is not ordered by value", K(0))
}

func TestIntegerKeys(t *testing.T) {
	requireIntegers[int](t)
	requireIntegers[int8](t)
	requireIntegers[int16](t)
	requireIntegers[int32](t)
	requireIntegers[int64](t)
	requireIntegers[uint](t)
	requireIntegers[uint8](t)
	requireIntegers[uint16](t)
	requireIntegers[uint32](t)
	requireIntegers[uint64](t)
	requireIntegers[uintptr](t)
	requireIntegers[namedInt](t)
	requireIntegers[namedInt8](t)
	requireIntegers[namedInt32](t)
	requireIntegers[namedUint16](t)
	requireIntegers[namedUint64](t)
}

var oddStrings = []string{
	"", "\x00", "\x00\x00", "a", "a\x00b", "a\x00", "\x00a", "b", "ab", "\xff", "\xff\xfe", "\xfe\xff", "\xc3\x28", "\xed\xa0\x80",
	"\ufffd", "é", "e\u0301", " ", "0", strings.Repeat("x", 1000), strings.Repeat("x", 1001),
}

func TestStringKeys(t *testing.T) {
	requireKeys(t, oddStrings)
	named := make([]namedString, len(oddStrings))
	for i, s := range oddStrings {
		named[i] = namedString(s)
	}
	requireKeys(t, named)
	k := newKeys(Config[namedString]{})
	require.Equal(t, kindString, k.kind)
	require.Equal(t, -1, k.compare("a", "b"))
}

func TestOtherKeys(t *testing.T) {
	requireKeys(t, []bool{false, true})
	requireKeys(t, []float64{0, 1, -1, math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, math.MaxFloat64})
	requireKeys(t, []float32{0, 1, -1, float32(math.Inf(1)), math.SmallestNonzeroFloat32})
	requireKeys(t, []namedFloat{0, 1, -1})
	requireKeys(t, []complex128{0, 1, 1i, 1 + 1i, complex(math.Inf(1), 0)})
	requireKeys(t, [][4]byte{{}, {1}, {0, 1}, {0, 0, 0, 1}, {10, 0, 0, 1}})
	requireKeys(t, [][2]string{{}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab", ""}})
	requireKeys(t, [][0]int{{}})
	requireKeys(t, []struct{}{{}})
	requireKeys(t, []point{{}, {1, 0}, {0, 1}, {-1, 1}})
	requireKeys(t, []route{{}, {"GET", 200, "/"}, {"GET", 200, ""}, {"GET", 404, "/"}, {"", 200, "GET/"}})
	requireKeys(t, []nested{{}, {Done: true}, {Routes: [2]route{{Method: "a"}}}, {Routes: [2]route{1: {Method: "a"}}}})
	x, y := new(int), new(int)
	requireKeys(t, []*int{nil, x, y})
	requireKeys(t, []any{nil, 1, int8(2), "", "0", false, 0.5, point{3, 4}, [1]string{"a"}, x})
	requireKeys(t, []fmt.Stringer{nil, reflect.Int, reflect.Bool})
	requireKeys(t, []boxed{{}, {"a", 1}, {"a", "1"}, {"a", nil}})
	requireKeys(t, []chan int{nil, make(chan int), make(chan int)})
}

// Where a hash says nothing, keys are told apart by their value all the same.
func TestKeysOfOneHash(t *testing.T) {
	list := []route{{}, {"GET", 200, "/"}, {"GET", 404, "/"}, {"POST", 200, "/"}}
	k := newKeys(Config[route]{Hash: func(route) uint64 { return 1 }})
	for i, a := range list {
		for j, b := range list {
			require.Equal(t, i == j, k.compare(a, b) == 0, "%v and %v", a, b)
			require.Equal(t, -k.compare(b, a), k.compare(a, b))
		}
	}
	s := must(NewSketch(Config[route]{K: 10, Hash: func(route) uint64 { return 1 }}))
	for i, key := range list {
		s.AddN(key, uint32(i+1))
	}
	for i, key := range list {
		require.Equal(t, uint64(i+1), s.Estimate(key).Count)
	}
	checkShape(t, s)
}

func TestZerosAreOneKey(t *testing.T) {
	minus := math.Copysign(0, -1)
	s := must(NewSketch(Config[float64]{K: 4}))
	s.Add(0)
	s.Add(minus)
	require.Equal(t, []Item[float64]{{0, Estimate{2, 2, 2}}}, s.Top(0))
	require.Equal(t, s.keys.hash(0), s.keys.hash(minus))

	type pair struct{ A, B float32 }
	p := must(NewSketch(Config[pair]{K: 4}))
	p.Add(pair{0, float32(minus)})
	p.Add(pair{float32(minus), 0})
	require.Len(t, p.Top(0), 1)
}

// requireIgnored feeds a sketch, single and in batches, with a bad key between
// good ones, and requires that it leaves no trace but in Stats.
func requireIgnored[K comparable](t *testing.T, good, bad K) {
	t.Helper()
	for _, k := range []int{1, 4} {
		s := must(NewSketch(Config[K]{K: k}))
		h := must(New(Config[K]{K: k, Stripes: 2}))
		for range 100 {
			s.AddN(good, 2)
			s.AddN(bad, 7)
			s.Add(bad)
			s.AddBatch([]K{bad, good, bad})
			h.Add(bad)
			h.AddBatch([]K{good, bad})
			slot, admitted := s.Update(bad, s.Hash(bad), 1)
			require.Equal(t, -1, slot)
			require.False(t, admitted)
			s.AddN(bad, 0)
		}
		require.Equal(t, []Item[K]{{good, Estimate{300, 300, 300}}}, s.Top(0))
		require.Equal(t, uint64(500), s.Stats().Ignored)
		require.Equal(t, uint64(300), s.Stats().Total)
		require.True(t, s.Stats().Exact)
		require.False(t, s.Contains(bad))
		require.Equal(t, Estimate{}, s.Estimate(bad))
		require.Equal(t, []Item[K]{{good, Estimate{100, 100, 100}}}, h.Top(0))
		require.Equal(t, uint64(200), h.Stats().Ignored)
		require.Equal(t, Estimate{}, h.Estimate(bad))
		require.False(t, h.Contains(bad))
		require.Equal(t, make([]cell, len(s.rows.cells)), s.rows.cells)
	}
}

func TestBadKeysAreIgnored(t *testing.T) {
	nan := math.NaN()
	requireIgnored(t, 1.0, nan)
	requireIgnored(t, float32(1), float32(nan))
	requireIgnored(t, namedFloat(1), namedFloat(nan))
	requireIgnored(t, complex(1, 1), complex(1, nan))
	requireIgnored(t, [2]float64{1, 1}, [2]float64{1, nan})
	requireIgnored(t, struct{ A float64 }{1}, struct{ A float64 }{nan})
	requireIgnored[any](t, 1.0, nan)
	requireIgnored[any](t, "a", []int{1})
	requireIgnored[any](t, nil, map[string]int{})
	requireIgnored[any](t, boxed{"a", 1}, boxed{"a", []int{1}})
	requireIgnored[any](t, func() any { return boxed{"a", boxed{}} }(), boxed{"a", boxed{Value: func() {}}})
	requireIgnored(t, boxed{"a", 1}, boxed{"a", []int{1}})
	requireIgnored(t, boxed{"a", 1}, boxed{"a", nan})
	requireIgnored(t, [2]any{1, 2}, [2]any{1, []int{}})
}

func TestNaNNeverGrowsMemory(t *testing.T) {
	s := must(NewSketch(Config[float64]{K: 2}))
	s.Add(1)
	before := s.Stats().Bytes
	for range 10000 {
		s.Add(math.NaN())
	}
	require.Equal(t, before, s.Stats().Bytes)
	require.Equal(t, 1, s.Stats().Tracked)
}

func TestBytesAndStringAreOneKey(t *testing.T) {
	h := must(New(Config[string]{K: len(oddStrings), Stripes: 3}))
	for i, s := range oddStrings {
		h.AddN(s, uint32(i))
		AddBytes(h, []byte(s), 2)
	}
	AddBytes(h, nil, 1) // the empty string
	for i, s := range oddStrings {
		want := uint64(i) + 2
		if s == "" {
			want++
		}
		require.Equal(t, Estimate{want, want, want}, h.Estimate(s), "%q", s)
	}
}

func TestKeysDoNotAliasTheCallers(t *testing.T) {
	buffer := []byte("first")
	alias := unsafe.String(&buffer[0], len(buffer))

	var heard []string
	hear := func(key string) { heard = append(heard, key) }
	h := must(New(Config[string]{K: 1, Stripes: 1, OnAdmit: hear, OnEvict: hear}))
	AddBytes(h, buffer, 5)
	s := must(NewSketch(Config[route]{K: 1}))
	s.AddN(route{alias, 1, namedString(alias)}, 5)
	a := must(NewSketch(Config[[2]string]{K: 1}))
	a.AddBatch([][2]string{{alias, alias}})

	copy(buffer, "other")
	require.Equal(t, "first", h.Top(0)[0].Key)
	require.Equal(t, uint64(5), h.Estimate("first").Count)
	require.Zero(t, h.Estimate("other").Count)
	require.Equal(t, route{"first", 1, "first"}, s.Top(0)[0].Key)
	require.Equal(t, uint64(5), s.Estimate(route{"first", 1, "first"}).Count)
	require.Equal(t, [2]string{"first", "first"}, a.Top(0)[0].Key)

	// The same when a key pushes another out.
	AddBytes(h, buffer, 1)
	AddBytes(h, []byte("third"), 3)
	AddBytes(h, buffer, 100)
	copy(buffer, "again")
	require.Equal(t, "other", h.Top(0)[0].Key)
	require.Equal(t, []string{"first", "other", "other", "third", "third", "other"}, heard)
}

// A short piece of a huge string does not keep it alive.
func TestAdmittedStringsAreCopies(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	part := huge[1000:1010]
	s := must(NewSketch(Config[string]{K: 1}))
	s.Add(part)
	got := s.tracked.entries[0].key
	require.Equal(t, part, got)
	require.NotSame(t, unsafe.StringData(part), unsafe.StringData(got))

	n := must(NewSketch(Config[nested]{K: 1}))
	n.Add(nested{Routes: [2]route{{}, {Path: namedString(part)}}})
	require.NotSame(t, unsafe.StringData(part), unsafe.StringData(string(n.tracked.entries[0].key.Routes[1].Path)))

	// Evicted and forgotten keys do not stay in the spare room of a slice.
	top := must(NewSketch(Config[string]{K: 1}))
	top.AddN("a", 2)
	top.AddN("b", 1)
	list := top.AppendTop(make([]Item[string], 0, 2), 1)
	require.Equal(t, Item[string]{}, list[:2][1])
	top.Reset()
	require.Equal(t, "", top.tracked.entries[:2][1].key)
}

func TestHashOfTheUser(t *testing.T) {
	calls := 0
	config := Config[string]{K: 2, Width: 100, Hash: func(key string) uint64 { calls++; return uint64(len(key)) }}
	s := must(NewSketch(config))
	s.Add("a")
	require.Positive(t, calls)
	require.Equal(t, s.keys.hash("b"), s.keys.hash("c"))
	require.NotEqual(t, s.keys.hash("b"), s.keys.hash("bb"))
	// Keys of one hash are one until they are tracked.
	s.AddN("a", 10)
	s.AddN("b", 10)
	s.AddN("c", 10)
	require.Equal(t, uint64(11), s.Estimate("a").Count)
	require.Equal(t, uint64(10), s.Estimate("b").Count)

	seeded := config
	seeded.Seed = 1
	require.NotEqual(t, s.keys.hash("a"), must(NewSketch(seeded)).keys.hash("a"), "Seed does not matter")
}

// Each bit of a key moves each bit of its hash in half of the cases.
func TestMixAvalanches(t *testing.T) {
	const trials = 4000
	for in := range 64 {
		var flips [64]int
		for i := range trials {
			x := uint64(i) * 0x9e3779b97f4a7c15
			diff := mix(x) ^ mix(x^1<<in)
			for out := range flips {
				flips[out] += int(diff >> out & 1)
			}
		}
		for out, n := range flips {
			requireBinomial(t, 0.5, n, trials, fmt.Sprintf("bit %d to bit %d", in, out))
		}
	}
}

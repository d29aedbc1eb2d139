package baseline

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/heavykeeper-go/heavykeeper/bench/measure"
)

// Counter is what all algorithms of the comparison do.
type Counter[K comparable] interface {
	Add(key K)
	AddN(key K, n uint32)

	// Top returns the n keys of the largest counts, by descending count, fewer
	// if fewer are known.
	Top(n int) []measure.Item[K]

	// Bytes returns the memory in use, by the rule of the package comment.
	Bytes() int
}

// Config is what an algorithm is built from.
type Config[K comparable] struct {
	Bytes int            // of memory, at most
	K     int            // keys to report
	Hash  func(K) uint64 // uniform over 64 bits; see HashUint64 and HashString
	Seed  uint64         // of random choices
}

// Algorithm is a way to find the heaviest keys.
type Algorithm[K comparable] struct {
	Name string
	New  func(Config[K]) (Counter[K], error)
}

// All returns the algorithms of the comparison, this module's first. The exact
// map, which ignores the budget, is not among them.
func All[K comparable]() []Algorithm[K] {
	return []Algorithm[K]{
		{"HeavyKeeper", Adapt(NewSketch[K])},
		{"Textbook minimum", Adapt(NewMinimum[K])},
		{"Textbook parallel", Adapt(NewParallel[K])},
		{"Stable-Sketch", Adapt(NewStableSketch[K])},
		{"Space-Saving", Adapt(NewSpaceSaving[K])},
		{"Misra-Gries", Adapt(NewMisraGries[K])},
		{"Lossy Counting", Adapt(NewLossyCounting[K])},
		{"Count-Min + heap", Adapt(NewCountMin[K])},
		{"Count-Min CU + heap", Adapt(NewConservative[K])},
	}
}

// Adapt makes a constructor return the interface.
func Adapt[K comparable, C Counter[K]](f func(Config[K]) (C, error)) func(Config[K]) (Counter[K], error) {
	return func(c Config[K]) (Counter[K], error) { return f(c) }
}

// errTooSmall reports a budget that does not hold even the smallest structure.
func errTooSmall[K comparable](name string, c Config[K]) error {
	return fmt.Errorf("baseline: Bytes = %d: too few for %s with K = %d", c.Bytes, name, c.K)
}

// HashUint64 returns a hash function for integers: splitmix64's finalizer.
func HashUint64(seed uint64) func(uint64) uint64 {
	return func(key uint64) uint64 { return mix(key ^ mix(seed)) }
}

// HashString returns a hash function for strings.
func HashString(seed uint64) func(string) uint64 {
	return func(key string) uint64 { return mix(xxhash.Sum64String(key) ^ mix(seed)) }
}

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// place returns the cell, below width, of a key with hash h in a row. Rows are
// independent.
func place(h uint64, row, width int) int {
	x := mix(h + uint64(row+1)*0x9e3779b97f4a7c15)
	return int(x >> 32 * uint64(width) >> 32)
}

// add returns a + n, or the largest counter value where that is smaller.
func add(a, n uint32) uint32 {
	sum, carry := bits.Add32(a, n, 0)
	if carry > 0 {
		return math.MaxUint32
	}
	return sum
}

func sizeOf[T any]() int {
	var t T
	return int(unsafe.Sizeof(t))
}

// largest sorts items by descending count and returns the first n.
func largest[K comparable](items []measure.Item[K], n int) []measure.Item[K] {
	slices.SortStableFunc(items, func(a, b measure.Item[K]) int {
		switch {
		case a.Count > b.Count:
			return -1
		case a.Count < b.Count:
			return 1
		}
		return 0
	})
	return items[:min(n, len(items))]
}

package heavykeeper

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkTracked requires the invariants of a tracked set and that it holds just
// the keys of want.
func checkTracked(t require.TestingT, set *tracked[int], hash func(int) uint64, want map[int]uint64) {
	require.Len(t, set.entries, len(want))
	require.Len(t, set.heap, len(want))
	require.Len(t, set.seen, len(want))
	words := 0
	for _, word := range set.index {
		if word != 0 {
			words++
		}
	}
	require.Equal(t, len(want), words, "words in the index")
	checkFurther(t, set)
	for i := range set.seen {
		require.LessOrEqual(t, set.seen[i], set.entries[set.heap[i]].count)
		require.LessOrEqual(t, set.seen[(i-min(i, 1))/2], set.seen[i], "heap order at %d", i)
	}
	for key, count := range want {
		slot := set.find(key, hash(key))
		require.NotEqual(t, -1, slot, "key %d is lost", key)
		require.Equal(t, count, set.entries[slot].count, "key %d", key)
	}
}

// checkFurther requires that the words of an index that are marked are those at
// the homes of entries that are not there.
func checkFurther[K comparable](t require.TestingT, set *tracked[K]) {
	want := make([]uint32, len(set.index))
	for at, word := range set.index {
		if word == 0 {
			continue
		}
		if home := set.home(word); home != uint64(at) {
			want[home] = further
		}
	}
	for at, word := range set.index {
		if word&further != want[at] {
			require.Failf(t, "further", "word %d of the index is %#x, want mark %#x", at, word, want[at])
		}
	}
}

// crowded are hashes that lead to few places of the index, the last among them,
// so that runs grow long and wrap around.
var crowded = map[string]func(int) uint64{
	"spread":      func(key int) uint64 { return mix(uint64(key)) },
	"one home":    func(key int) uint64 { return 0xffffffff<<32 | mix(uint64(key))>>32 },
	"four homes":  func(key int) uint64 { return uint64(key%4)<<62 | mix(uint64(key))>>32 },
	"wrapping":    func(key int) uint64 { return (0xffffffff-uint64(key%3)<<26)<<32 | mix(uint64(key))>>32 },
	"equal tags":  func(key int) uint64 { return mix(uint64(key))<<32 | 7 },
	"one and all": func(int) uint64 { return math.MaxUint64 },
	"zero":        func(int) uint64 { return 0 },
}

func TestTrackedAgainstMap(t *testing.T) {
	for name, hash := range crowded {
		for _, k := range []int{1, 2, 3, 5, 16, 33} {
			t.Run(fmt.Sprintf("%s/k=%d", name, k), func(t *testing.T) {
				r := rand.New(rand.NewPCG(41, uint64(k)))
				set := newTracked[int](k, 1, 0) // grows under way
				want, slots := map[int]uint64{}, map[int]int{}
				for step := range 2000 {
					key := r.IntN(4 * k)
					h := hash(key)
					slot := set.find(key, h)
					_, known := want[key]
					if known != (slot >= 0) {
						require.Failf(t, "find", "key %d: got slot %d, tracked %v", key, slot, known)
					}
					switch {
					case known:
						require.Equal(t, slots[key], slot, "the slot of key %d moved", key)
						n := uint64(r.IntN(20))
						set.entries[slot].count += n
						want[key] += n
					case !set.full():
						count := uint64(r.IntN(50))
						slots[key] = set.push(entry[int]{key: key, count: count}, h)
						want[key] = count
					default:
						require.LessOrEqual(t, set.floor(), least(want), "floor")
						slot := set.least()
						old := set.entries[slot].key
						require.Equal(t, least(want), set.entries[slot].count, "least")
						require.Equal(t, least(want), set.floor(), "floor after least")
						count := want[old] + uint64(r.IntN(5))
						set.replace(entry[int]{key: key, count: count}, h)
						delete(want, old)
						delete(slots, old)
						want[key], slots[key] = count, slot
					}
					if step%500 == 499 {
						require.Equal(t, uint64(3), ratio{1, 4}.down(15))
						set.scale(ratio{1, 4})
						for key := range want {
							want[key] /= 4
						}
					}
					if step%11 == 0 || k < 4 && step < 500 {
						checkTracked(t, &set, hash, want)
					}
				}
				checkTracked(t, &set, hash, want)
				set.reset()
				checkTracked(t, &set, hash, nil)
				require.Equal(t, -1, set.find(1, hash(1)))
			})
		}
	}
}

func least(counts map[int]uint64) uint64 {
	n := uint64(math.MaxUint64)
	for _, c := range counts {
		n = min(n, c)
	}
	return n
}

// Evicted one by one, entries come in order, whatever has been counted since
// they were pushed.
func TestLeastIsTheLeast(t *testing.T) {
	for _, k := range []int{1, 2, 3, 100, 20000} {
		r := rand.New(rand.NewPCG(43, 44))
		set := newTracked[int](k, firstRoom, 0)
		for i := range k {
			set.push(entry[int]{key: i, count: r.Uint64N(1000)}, mix(uint64(i)))
		}
		require.True(t, set.full())
		for i := range set.entries {
			set.entries[i].count += r.Uint64N(1 << 40)
		}
		before := uint64(0)
		for i := range k {
			slot := set.least()
			count := set.entries[slot].count
			if count < before {
				require.Failf(t, "least", "%d after %d", count, before)
			}
			before = count
			set.replace(entry[int]{key: k + i, count: math.MaxUint64}, mix(uint64(k+i)))
		}
		require.Equal(t, uint64(math.MaxUint64), set.entries[set.least()].count)
		for i := range k {
			if set.find(i, mix(uint64(i))) >= 0 || set.find(k+i, mix(uint64(k+i))) < 0 {
				require.Failf(t, "find", "evicted key %d is there, or its successor is not", i)
			}
		}
	}
}

func TestIndexSize(t *testing.T) {
	for k := 1; k < 5000; k += 1 + k/20 {
		set := newTracked[int32](k, k, 0)
		n := len(set.index)
		require.Zero(t, n&(n-1), "k %d", k)
		require.GreaterOrEqual(t, n, 3*k)
		require.Less(t, n, 6*k+2)
		require.Len(t, newTracked[int32](k, k, 2*n-1).index, n)
		require.Len(t, newTracked[int32](k, k, 2*n).index, 2*n)
		require.Len(t, newTracked[int32](k, k, math.MaxInt).index, 2*n)
		require.Less(t, uint32(k), set.slotMask+1, "the last slot's number fits")
		require.Less(t, set.position(math.MaxUint64), uint64(n))
		require.Equal(t, k, cap(set.entries))
	}
	// No set is too large for what words of its index, and Add, take for granted.
	most := slots(maxK)
	set := newTracked[int32](most, 1, 0)
	require.Zero(t, (set.slotMask|set.tagMask)&further)
	require.Less(t, uint32(most), set.slotMask+1)
	shift := 64 - bits.Len(uint(6*most-1))
	r := rand.New(rand.NewPCG(59, 60))
	for range 1000 {
		x := r.Uint64()
		require.Equal(t, mixEnd(x)>>shift, x>>shift)
	}
}

// A set grows by doubling to its limit and no further, and keeps its entries in
// their slots.
func TestTrackedGrows(t *testing.T) {
	for _, k := range []int{1, 2, firstRoom - 1, firstRoom, firstRoom + 1, 2*firstRoom + 1, 5000} {
		set := newTracked[int](k, firstRoom, 0)
		require.Equal(t, min(k, firstRoom), cap(set.entries))
		for i := range k {
			require.False(t, set.full())
			require.Equal(t, i, set.push(entry[int]{key: i, count: uint64(k - i)}, mix(uint64(i))))
			require.LessOrEqual(t, cap(set.entries), max(firstRoom, 2*i))
		}
		require.True(t, set.full())
		require.Equal(t, k, cap(set.entries))
		require.GreaterOrEqual(t, len(set.index), 3*k)
		for i := range k {
			require.Equal(t, i, set.find(i, mix(uint64(i))))
		}
		require.Equal(t, k-1, set.least())

		clone := set.clone()
		clone.replace(entry[int]{key: -1, count: 9}, mix(1<<40))
		clone.entries[0].count++
		require.Equal(t, k-1, set.find(k-1, mix(uint64(k-1))), "the clone shares memory")
		require.Equal(t, -1, set.find(-1, mix(1<<40)))
		require.Equal(t, k-1, set.least())
	}
}

func TestEntryBounds(t *testing.T) {
	const max = math.MaxUint64
	tests := []struct {
		count        uint64
		slack        uint32
		lower, upper uint64
		wantCount    uint64
		wantUpper    uint64
	}{
		{5, 2, 0, 0, 5, 7},
		{5, 2, 3, 4, 8, 11},
		{5, saturated, 3, 4, 8, max},
		{5, 0, 3, max, 8, max},
		{0, 0, 0, saturated - 1, 0, saturated - 1},
		{0, 0, 0, saturated, 0, max},
		{0, 0, 0, 1 << 40, 0, max},
		{1, saturated - 2, 0, 1, 1, saturated},
		{1, saturated - 2, 0, 2, 1, max},
		{max - 1, 0, 1, 1, max, max},
		{max - 1, 0, 5, 9, max, max},
		{max - 5, 3, 1, 1, max - 4, max - 1},
	}
	for _, test := range tests {
		got := entry[int]{count: test.count, slack: test.slack}.plus(test.lower, test.upper)
		require.Equal(t, test.wantCount, got.count, "%+v", test)
		require.Equal(t, test.wantUpper, got.upper(), "%+v", test)
	}
}

func TestScaledEntriesKeepBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(45, 46))
	for range 1000 {
		set := newTracked[int](1, firstRoom, 0)
		count, slack := r.Uint64()>>r.IntN(64), r.Uint32()>>r.IntN(32)
		set.push(entry[int]{count: count, slack: slack}, 0)
		before := set.entries[0].upper()
		den := 1 + r.Uint64()>>(48+r.IntN(16))
		f := ratio{1 + r.Uint64N(den), den}
		lossy := set.scale(f)
		e := set.entries[0]
		require.Equal(t, f.down(count), e.count)
		require.Equal(t, f.down(count) != f.up(count), lossy)
		if before == math.MaxUint64 {
			require.Equal(t, before, e.upper())
		} else {
			require.GreaterOrEqual(t, e.upper(), f.up(before))
		}
	}
}

package heavykeeper

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper/bench/stream"
)

// These are attacks by one who knows the code, and all parameters that are not
// called secret, and may send keys of his choice. Each is shown to work with
// the default hash and to fail with a keyed one.

// The primes of XXH64.
const (
	prime1 = 0x9e3779b185ebca87
	prime2 = 0xc2b2ae3d27d4eb4f
	prime3 = 0x165667b19e3779f9
	prime4 = 0x85ebca77c2b2ae63
	prime5 = 0x27d4eb2f165667c5
)

// inverse returns the x with p*x = 1 modulo 2^64, by Newton's method.
func inverse(p uint64) uint64 {
	x := p
	for range 6 {
		x *= 2 - p*x
	}
	return x
}

// collide returns a string of 16 bytes with the given XXH64: any eight, and
// the eight that undo what those did. XXH64 is a bijection of each word.
func collide(target, word uint64) string {
	round := func(x uint64) uint64 { return bits.RotateLeft64(x*prime2, 31) * prime1 }
	h := target
	h ^= h >> 32
	h *= inverse(prime3)
	h ^= h>>29 ^ h>>58
	h *= inverse(prime2)
	h ^= h >> 33
	h = bits.RotateLeft64((h-prime4)*inverse(prime1), -27)
	p := uint64(prime5)
	before := p + 16
	before = bits.RotateLeft64(before^round(word), 27)*prime1 + prime4
	last := bits.RotateLeft64((h^before)*inverse(prime1), -31) * inverse(prime2)
	return string(little.AppendUint64(little.AppendUint64(nil, word), last))
}

// victims returns sketches for an attack on a key: with the default hash under
// a known and a secret seed, and with keyed hashes. All track 13 keys, of
// weights 1000 to 1012.
func victims() map[string]*Sketch[string] {
	hashes := keyedHashes()
	hashes["default"] = nil
	hashes["default, secret Seed"] = nil
	sketches := map[string]*Sketch[string]{}
	for name, hash := range hashes {
		config := Config[string]{K: 10, Width: 256, Hash: hash}
		if name == "default, secret Seed" {
			config.Seed = 0x5ec7e75eed5ec7e7
		}
		s := must(NewSketch(config))
		for i := range s.Slots() {
			s.AddN(fmt.Sprint("heavy ", i), uint32(1000+i))
		}
		sketches[name] = s
	}
	return sketches
}

func TestCollide(t *testing.T) {
	for i := range 1000 {
		want := xxhash.Sum64String(fmt.Sprint("key ", i))
		require.Equal(t, want, xxhash.Sum64String(collide(want, uint64(i))))
	}
}

// A key that never came is reported with a lower bound of 500, at the expense
// of 500 keys that came once each.
func TestAttackInflates(t *testing.T) {
	const chosen = "a rival's shop"
	for name, s := range victims() {
		for i := range uint64(500) {
			s.Add(collide(xxhash.Sum64String(chosen), i))
		}
		got := s.Estimate(chosen).Lower
		if s.config.Hash == nil { // a secret Seed does not help against this
			require.Equal(t, uint64(500), got, name)
		} else {
			require.Zero(t, got, name)
		}
	}
}

// Two updates rob a key of its count and its place among the tracked.
func TestAttackEvicts(t *testing.T) {
	const chosen = "heavy 0" // the last of those tracked
	for name, s := range victims() {
		s.AddN("a newcomer", 1500) // evicts it, rightly
		require.False(t, s.Contains(chosen), name)
		thief := collide(xxhash.Sum64String(chosen), 1)
		s.AddN(thief, 1)
		s.AddN(thief, 1)
		s.AddN(chosen, 10)
		got := s.Estimate(chosen)
		if s.config.Hash == nil {
			require.True(t, s.Contains(thief), name)
			require.Equal(t, uint64(1002), s.Estimate(thief).Lower, name)
			require.False(t, s.Contains(chosen), name)
			require.Less(t, got.Upper, uint64(1010), "%s: the bounds hold", name)
		} else {
			require.False(t, s.Contains(thief), name)
			require.True(t, s.Contains(chosen), name)
			require.GreaterOrEqual(t, got.Lower, uint64(1010), name)
			require.GreaterOrEqual(t, got.Upper, got.Lower, name)
		}
	}
}

// guards returns keys that take, in turn, a few cells of each row in a sketch
// of a known seed: those of the chosen key among them. Each takes its cell in
// the row meant because those before are taken.
func guards(s *Sketch[string], chosen string, each int) []string {
	target := positions(&s.rows, s.keys.hash(chosen), nil)
	taken := make([]map[int]bool, s.rows.count)
	var keys []string
	var at []int
	next := 0
	for row := range taken {
		taken[row] = map[int]bool{}
		find := func(wanted bool) {
			for ; ; next++ {
				key := fmt.Sprint("guard ", next)
				at = positions(&s.rows, s.keys.hash(key), at)
				blocked := 0
				for blocked < row && taken[blocked][at[blocked]] {
					blocked++
				}
				if blocked == row && !taken[row][at[row]] && (!wanted || at[row] == target[row]) {
					taken[row][at[row]] = true
					keys = append(keys, key)
					next++
					return
				}
			}
		}
		find(true)
		if row+1 == len(taken) {
			break
		}
		for len(taken[row]) < each {
			find(false)
		}
	}
	return keys
}

// A key that should be by far the first is kept out for ever by 61 keys that
// own its cells, and cells that lead there, with counts just below what it
// would take to be tracked themselves.
func TestAttackSinks(t *testing.T) {
	const chosen, occurrences = "breaking news", 100000
	all := victims()
	attack := guards(all["default"], chosen, 20)
	require.Len(t, attack, 61)
	for name, s := range all {
		for _, key := range attack {
			for range 900 {
				s.Add(key)
			}
		}
		for range occurrences {
			s.Add(chosen)
		}
		got, first := s.Estimate(chosen), s.Top(1)[0].Key
		t.Logf("%-20s %d occurrences are estimated as %+v; first is %q", name, occurrences, got, first)
		require.GreaterOrEqual(t, got.Upper, uint64(occurrences), "the bound that nobody ranks by")
		if name == "default" {
			require.Zero(t, got.Lower, name)
			require.False(t, s.Contains(chosen), name)
		} else {
			require.Equal(t, chosen, first, name)
		}
	}
}

// Keys of one hash make every look-up of one of them pass all the others.
func TestAttackSlows(t *testing.T) {
	const keys = 500
	for name, s := range victims() {
		s = must(NewSketch(Config[string]{K: keys, Hash: s.config.Hash, Seed: s.config.Seed}))
		for i := range uint64(keys) {
			s.Add(collide(0x0123456789abcdef, i))
		}
		longest, run := 0, 0
		for _, word := range slices.Concat(s.tracked.index, s.tracked.index) { // it wraps around
			run++
			if word == 0 {
				run = 0
			}
			longest = max(longest, run)
		}
		t.Logf("%-20s the longest run of the index is %d", name, longest)
		if s.config.Hash == nil {
			require.Equal(t, keys, longest, name)
		} else {
			require.Less(t, longest, 40, name)
		}
	}
}

// An encoding of keys that share a place in the index, which would take a time
// that is quadratic in its length, is refused as soon as that shows.
func TestAttackSlowsDecoding(t *testing.T) {
	for _, test := range []struct {
		keys int
		ok   bool
	}{{1000, true}, {2000, false}} {
		s := must(NewSketch(Config[string]{K: test.keys, Rows: 1, Width: 1}))
		for i := range uint64(test.keys) {
			s.Add(collide(0x0123456789abcdef, i))
		}
		err := new(Sketch[string]).UnmarshalBinary(must(s.MarshalBinary()))
		if test.ok {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, "tracked keys whose hashes are alike")
	}
	many := must(NewSketch(Config[int]{K: 1 << 17, Rows: 1, Width: 1}))
	for key := range 1 << 17 {
		many.Add(key)
	}
	require.NoError(t, new(Sketch[int]).UnmarshalBinary(must(many.MarshalBinary())))
}

// TestFlood prints what keys that come only once, a share of all events, do to
// the answers, and requires that they take no memory.
func TestFlood(t *testing.T) {
	const k = 100
	events, floods := 1<<20, []int{0, 1, 4, 9, 19} // new keys for each event
	if testing.Short() {
		events, floods = 1<<17, floods[:3]
	}
	keys := stream.Zipf(1, 1, 1<<18, events)
	weight := map[uint64]uint64{}
	for _, key := range keys {
		weight[key]++
	}
	ranked := make([]uint64, 0, len(weight))
	for key := range weight {
		ranked = append(ranked, key)
	}
	slices.SortFunc(ranked, func(a, b uint64) int { return int(weight[b]) - int(weight[a]) })
	precision := 1.0
	for _, flood := range floods {
		s := must(NewSketch(Config[uint64]{K: k, Seed: 1, Hash: SipHash[uint64](secret)}))
		for i := range 2 * k {
			s.Add(uint64(i) << 40) // all is allocated that ever will be
		}
		before, fresh := s.Stats().Bytes, uint64(1)<<63
		for _, key := range keys {
			s.Add(key)
			for range flood {
				fresh++
				s.Add(fresh)
			}
		}
		found, width := 0.0, 0.0
		for _, key := range ranked[:k] {
			e := s.Estimate(key)
			require.LessOrEqual(t, e.Lower, weight[key])
			require.GreaterOrEqual(t, e.Upper, weight[key])
			width += float64(e.Upper-e.Lower) / float64(weight[key]) / k
		}
		for item := range s.All() {
			if weight[item.Key] >= weight[ranked[k-1]] {
				found++
			}
		}
		require.Equal(t, before, s.Stats().Bytes, "memory")
		precision = found / k
		t.Logf("new keys are %2d %% of %8d events: precision %.2f, the bounds of the first %d are %.3f of the count apart",
			100*flood/(flood+1), events*(flood+1), precision, k, width)
	}
	require.Greater(t, precision, 0.95)
}

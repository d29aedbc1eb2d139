package split

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

func TestSplit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := 1 + random.IntN(20)
		r := wire.Report{App: "shop", Node: "n", At: time.Unix(random.Int64N(1e9), 5), Dropped: random.Uint64N(2)}
		for range random.IntN(50) {
			r.Counts = append(r.Counts, wire.Count{Key: fmt.Sprint(random.IntN(1000)), N: random.Uint32()})
		}
		before := slices.Clone(r.Counts)
		parts := Split(r, n)

		var all []wire.Count
		dropped, last := uint64(0), -1
		for _, p := range parts {
			if p.Shard <= last || p.Shard >= n {
				t.Fatalf("shard %d after %d, of %d", p.Shard, last, n)
			}
			last = p.Shard
			if p.Report.App != r.App || p.Report.Node != r.Node || !p.Report.At.Equal(r.At) {
				t.Fatalf("part %+v is not of %+v", p.Report, r)
			}
			for _, c := range p.Report.Counts {
				if Shard(r.App, c.Key, n) != p.Shard {
					t.Fatalf("key %q of shard %d is in %d", c.Key, Shard(r.App, c.Key, n), p.Shard)
				}
			}
			if len(p.Report.Counts) == 0 && len(r.Counts) > 0 {
				t.Fatal("an empty part")
			}
			dropped += p.Report.Dropped
			all = append(all, p.Report.Counts...)
		}
		if !slices.Equal(r.Counts, before) {
			t.Fatal("the report was changed")
		}
		compare := func(a, b wire.Count) int {
			return slices.Compare([]string{a.Key, fmt.Sprint(a.N)}, []string{b.Key, fmt.Sprint(b.N)})
		}
		slices.SortFunc(all, compare)
		slices.SortFunc(before, compare)
		if dropped != r.Dropped || !slices.Equal(all, before) {
			t.Fatalf("got %d counts and %d dropped in %d parts, want %d and %d", len(all), dropped, len(parts), len(before), r.Dropped)
		}
		if len(r.Counts) == 0 && len(parts) != int(r.Dropped) {
			t.Fatalf("got %d parts of a report of nothing, Dropped = %d", len(parts), r.Dropped)
		}
	}
}

// TestSplitLarge splits what is too large for one message, or for any.
func TestSplitLarge(t *testing.T) {
	r := wire.Report{App: "shop", Node: "n", Dropped: 5}
	long, longest := strings.Repeat("k", wire.MaxKey+1), strings.Repeat("k", wire.MaxSize)
	r.Counts = append(r.Counts, wire.Count{Key: long, N: 7}, wire.Count{Key: longest, N: 11})
	if parts := Split(r, 4); len(parts) != 1 || parts[0].Report.Dropped != 23 || len(parts[0].Report.Counts) != 0 {
		t.Errorf("got %+v, want one part with 23 dropped", parts)
	}
	const keys = 3000 // of all lengths
	for i := range keys {
		key := fmt.Sprintf("%0*d", 10+i%(wire.MaxKey-9), i)
		r.Counts = append(r.Counts, wire.Count{Key: key, N: math.MaxUint32})
	}
	for _, n := range []int{1, 2, 100} {
		got, dropped := map[string]bool{}, uint64(0)
		for _, p := range Split(r, n) {
			data, err := p.Report.MarshalBinary()
			if err != nil || len(data) > maxPart+1000 {
				t.Errorf("%d shards: got a part of %d bytes, error %v; want at most %d", n, len(data), err, maxPart)
			}
			dropped += p.Report.Dropped
			for _, c := range p.Report.Counts {
				if got[c.Key] || Shard(r.App, c.Key, n) != p.Shard {
					t.Fatalf("%d shards: key %s twice, or of another shard than %d", n, c.Key, p.Shard)
				}
				got[c.Key] = true
			}
		}
		if len(got) != keys || dropped != 23 {
			t.Errorf("%d shards: got %d keys and %d dropped, want %d and 23", n, len(got), dropped, keys)
		}
	}
}

// TestShard pins the assignment, which publishers of all versions share, and
// looks at its balance.
func TestShard(t *testing.T) {
	for i, want := range []int{15, 13, 5, 13} {
		if got := Shard("shop", fmt.Sprint("item:", i), 16); got != want {
			t.Errorf("item:%d: got shard %d, want %d", i, got, want)
		}
	}
	if Shard("a", "bc", 1<<30) == Shard("ab", "c", 1<<30) {
		t.Error("application and key run together")
	}
	counts := make([]int, 16)
	for i := range 16000 {
		counts[Shard("shop", fmt.Sprint("item:", i), 16)]++
	}
	if slices.Min(counts) < 850 || slices.Max(counts) > 1150 {
		t.Errorf("16000 keys in 16 shards: got %v", counts)
	}
}

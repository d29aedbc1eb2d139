package split

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

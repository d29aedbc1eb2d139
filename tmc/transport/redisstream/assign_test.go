package redisstream

import (
	"fmt"
	"slices"
	"testing"
)

func TestAssign(t *testing.T) {
	for _, shards := range []int{1, 3, 16, 100} {
		var before map[int]string
		for n := 1; n <= 20; n++ {
			var members []string
			for i := range n {
				members = append(members, fmt.Sprint("server-", i))
			}
			owner := make(map[int]string)
			for _, name := range members {
				mine := assign(members, name, shards)
				if len(mine) != shards/n && len(mine) != shards/n+1 {
					t.Errorf("%d shards, %d members: %s has %d", shards, n, name, len(mine))
				}
				for _, shard := range mine {
					if other, ok := owner[shard]; ok || shard < 0 || shard >= shards {
						t.Errorf("%d shards, %d members: shard %d is %s's and %s's", shards, n, shard, name, other)
					}
					owner[shard] = name
				}
			}
			if len(owner) != shards {
				t.Errorf("%d shards, %d members: %d are assigned", shards, n, len(owner))
			}
			moved := 0
			for shard := range before {
				if before[shard] != owner[shard] {
					moved++
				}
			}
			// Those of the newcomer, and some that make room.
			if before != nil && moved > 4*shards/n+2 {
				t.Errorf("%d shards: %d moved when member %d came", shards, moved, n)
			}
			before = owner
		}
	}
	shuffled := []string{"c", "a", "b", "a"}
	if got, want := assign(shuffled, "a", 16), assign([]string{"a", "b", "c"}, "a", 16); !slices.Equal(got, want) {
		t.Errorf("members in another order: got %v, want %v", got, want)
	}
	if got := assign(shuffled, "stranger", 16); got != nil {
		t.Errorf("one that is no member: got %v", got)
	}
	if got := assign(nil, "a", 16); got != nil {
		t.Errorf("no members: got %v", got)
	}
}

package redisstream

import (
	"slices"

	"github.com/cespare/xxhash/v2"
)

// assign returns the shards that a member should have: by rendezvous hashing,
// except that none has more than its part, so that all have the same number, to
// within one, and few shards move when a member comes or goes. All members
// work out the same. There are none for one that is not a member.
func assign(members []string, name string, shards int) []int {
	members = slices.Compact(slices.Sorted(slices.Values(members)))
	if len(members) == 0 {
		return nil
	}
	low, extra := shards/len(members), shards%len(members)
	counts := make([]int, len(members))
	var mine []int
	for shard := range shards {
		best, score := -1, uint64(0)
		for i, member := range members {
			full := counts[i] > low || counts[i] == low && extra == 0
			if h := weight(member, shard); !full && (best < 0 || h > score) {
				best, score = i, h
			}
		}
		if counts[best] == low {
			extra--
		}
		counts[best]++
		if members[best] == name {
			mine = append(mine, shard)
		}
	}
	return mine
}

func weight(member string, shard int) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(uint64(shard))
	d.WriteString(member)
	return d.Sum64()
}

// Package split divides reports by key.
package split

import (
	"github.com/cespare/xxhash/v2"

	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Shard returns which of n shards a key of an application belongs to.
func Shard(app, key string, n int) int {
	var d xxhash.Digest
	d.Reset()
	d.WriteString(app)
	d.Write([]byte{0}) // no application has it in its name
	d.WriteString(key)
	return int(d.Sum64() % uint64(n))
}

// Part is what of a report belongs to a shard.
type Part struct {
	Shard  int
	Report wire.Report
}

// Split divides r into parts by shard, in ascending order, none of them empty.
// The first part says what was Dropped; if there is nothing but that, it is the
// only one. There is no part of a report that says nothing.
func Split(r wire.Report, n int) []Part {
	counts := make([]int, n)
	shards := make([]int, len(r.Counts))
	for i := range r.Counts {
		shards[i] = Shard(r.App, r.Counts[i].Key, n)
		counts[shards[i]]++
	}
	sorted := make([]wire.Count, len(r.Counts))
	var parts []Part
	index := make([]int, n) // of shards in parts
	rest := sorted
	for shard, count := range counts {
		if count == 0 {
			continue
		}
		index[shard] = len(parts)
		part := Part{shard, wire.Report{App: r.App, Node: r.Node, At: r.At, Counts: rest[:0:count]}}
		parts, rest = append(parts, part), rest[count:]
	}
	for i, count := range r.Counts {
		part := &parts[index[shards[i]]].Report
		part.Counts = append(part.Counts, count)
	}
	if len(parts) == 0 && r.Dropped > 0 {
		parts = []Part{{Shard(r.App, r.Node, n), wire.Report{App: r.App, Node: r.Node, At: r.At}}}
	}
	if len(parts) > 0 {
		parts[0].Report.Dropped = r.Dropped
	}
	return parts
}

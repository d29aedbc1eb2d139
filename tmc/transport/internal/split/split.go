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

// maxPart is about the most bytes of a part: half of what a record may have by
// Kafka's defaults.
const maxPart = 512 << 10

// Split divides r into parts by shard, in ascending order, none of them empty
// or large: a shard may have several. Keys that are too long for a report are
// left out, and counted as Dropped. The first part says what was Dropped; if
// there is nothing but that, it is the only one. There is no part of a report
// that says nothing.
func Split(r wire.Report, n int) []Part {
	counts := make([]int, n)
	shards := make([]int, len(r.Counts)) // -1: left out
	dropped := r.Dropped
	for i, count := range r.Counts {
		if len(count.Key) > wire.MaxKey {
			shards[i] = -1
			dropped += uint64(count.N)
			continue
		}
		shards[i] = Shard(r.App, count.Key, n)
		counts[shards[i]]++
	}
	rest := make([]wire.Count, len(r.Counts))
	var parts []Part
	index := make([]int, n) // of shards in parts
	for shard, count := range counts {
		if count == 0 {
			continue
		}
		index[shard] = len(parts)
		part := Part{shard, wire.Report{App: r.App, Node: r.Node, At: r.At, Counts: rest[:0:count]}}
		parts, rest = append(parts, part), rest[count:]
	}
	for i, count := range r.Counts {
		if shards[i] >= 0 {
			part := &parts[index[shards[i]]].Report
			part.Counts = append(part.Counts, count)
		}
	}
	parts = cut(parts)
	if len(parts) == 0 && dropped > 0 {
		parts = []Part{{Shard(r.App, r.Node, n), wire.Report{App: r.App, Node: r.Node, At: r.At}}}
	}
	if len(parts) > 0 {
		parts[0].Report.Dropped = dropped
	}
	return parts
}

// cut divides parts that are too large.
func cut(parts []Part) []Part {
	small := make([]Part, 0, len(parts))
	for _, p := range parts {
		counts, size, start := p.Report.Counts, 0, 0
		for i := range counts {
			n := len(counts[i].Key) + 7 // its length takes 2 bytes at most, the count 5
			if size+n > maxPart {
				p.Report.Counts = counts[start:i]
				small = append(small, p)
				size, start = 0, i
			}
			size += n
		}
		p.Report.Counts = counts[start:]
		small = append(small, p)
	}
	return small
}

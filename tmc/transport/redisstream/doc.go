// Package redisstream carries reports by Redis Streams.
//
// Keys fall into shards, each of which is a stream, prefix:{tmc}:reports:N. A
// stream keeps at most about MaxLen reports, the latest.
//
// # How servers share the shards
//
// Servers are members of a sorted set while they say so. Each works out from
// the members which shards it should have, all to the same result: as many as
// the others, and few others than before. It takes over those that are free,
// by a lease in a hash, and gives up those that it should not have. So a shard
// has one reader at a time. A server that ends says goodbye; one that is gone
// without a word loses its shards when its lease ends. Leases end by the clock
// of Redis, and a server stops reading by its own, earlier.
//
// Streams are read through a consumer group, so that a report is confirmed once
// it was received. What the server before had read and not confirmed is read
// first, by XAUTOCLAIM. Confirmed reports are deleted, and consumers that are
// gone are as well.
//
// # How losses are counted
//
// Each publisher numbers its reports, by shard. Readers remember the last
// number that they confirmed, and store it in the same transaction as the
// confirmation, for those who take over. So the reports that were trimmed
// while all servers were down are counted as well. Numbers are remembered for
// at most MaxPublishers of a shard; the first report of one that is not known
// is taken for its first. Should Redis lose the numbers and all servers end at
// the same time, what is lost with them is not counted.
//
// All keys have the hash tag {tmc}, so that in a cluster they are on one node.
// One who has more reports than that takes can give applications prefixes of
// their own, or use Kafka. Needs Redis 7 or later.
package redisstream

// Package transport is the parent of the packages that carry reports from SDKs
// to servers, each by its own means. All implement [wire.Publisher] and
// [wire.Consumer], and one table of tests holds them to it.
//
//   - redisstream uses Redis Streams, on the Redis that is there or another.
//     It is the default.
//   - kafka uses Kafka, for those who have it or more traffic than one Redis
//     takes.
//
// # One key, one server
//
// Both divide the reports by application and key: into shards, or partitions,
// each of which one server reads at a time. So all counts of a key meet in one
// server, whose detector sees all of its traffic, and servers need not merge
// counts. They share out the shards among themselves, and again when one comes
// or goes.
//
// # What may be lost
//
// A report that was published is received, by a server that is or comes up in
// time: streams keep Options.MaxLen reports a shard, Kafka what it was told.
// What was lost after it was published is counted, in [Stats]; what never was
// is counted by the SDK that could not publish it, in Report.Dropped. A server
// that ends without notice may have counted reports that it had not confirmed,
// and another counts them again: at most one batch.
package transport

// Package push is the parent of the packages that carry hot sets to SDKs and
// invalidations among them, each by its own means. Both implement
// [wire.Channel], and one table of tests holds them to it.
//
//   - redispubsub uses Redis pub/sub, with the hot set stored in a key too. It
//     needs nothing but the Redis that is there. It is the default.
//   - etcd uses etcd's watch. It is for those who have etcd and whose writes
//     to hot keys are few: each invalidation is a write that etcd agrees on
//     and puts on disk.
//
// # The bound
//
// A channel may fail without a word: the network drops what is sent, and the
// connection looks well. So each subscription is tested again and again, by
// something that comes the way of the events and behind them. From the moment
// that an event should have come and did not, until Up(false), no more than
// the channel's Bound passes, if this process is not stopped meanwhile. One
// who has to be safe from that too compares the time of the last Fresh with
// the clock.
package push

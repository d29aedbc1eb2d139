// Package etcd carries hot sets and invalidations by etcd's watch.
//
// An application has two keys: prefix/app/hot holds the hot set, under a
// lease that each push renews, and prefix/app/written the latest invalidation.
// A watch delivers every value that a key has had, in order, so one key will
// do for the invalidations of all nodes, and none is left behind by nodes that
// are gone. A watch that was interrupted goes on where it stopped; if that was
// compacted away meanwhile, the session ends and a new one reads the keys
// again: Up(false), Up(true).
//
// # What is promised
//
// A subscription is tested by a read that etcd's members have to agree on: it
// tells the latest revision of both keys, up to which the watch must then have
// delivered. So a member that is cut off from the others is found out too. The
// bound is Options.Ping + Options.Timeout; see [Channel.Bound].
//
// Each invalidation is a write that a majority puts on disk: it takes
// milliseconds, and an etcd cluster takes some thousands a second, of all
// applications.
//
// The client should be made with grpc.WithConnectParams and a MaxDelay of
// about a second: by default it may wait for two minutes before it connects
// again. See [Dial].
package etcd

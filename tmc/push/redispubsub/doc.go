// Package redispubsub carries hot sets and invalidations by Redis pub/sub.
//
// An application has one pub/sub channel, prefix:{app}:push, for both. The
// latest hot set is stored in the hash prefix:{app}:hot as well, in one step
// with its publication, so that whoever subscribes later reads it there.
//
// # What is promised, and what Redis does not promise
//
// Pub/sub forgets a message that a subscriber does not take. So a subscription
// counts as up only from Redis's answer to SUBSCRIBE on, it is tested by PING on its
// own connection, which Redis answers after all messages before it, and any
// error or overdue answer ends it: Up(false), a new connection, Up(true). The
// bound is Options.Ping + Options.Timeout; see [Channel.Bound].
//
// In a Redis Cluster, and with a ring, the server that has the hot set's key has
// the pub/sub channel too. A subscription ends when the client finds out that
// another has it. The nodes of a ring find out by themselves which servers are
// up: while they differ in that, they may not hear each other.
//
// One case cannot be seen from here: a replica is promoted while the old
// primary lives on. Its subscribers are told of no writes by clients of the new
// one until it is made a replica, when Sentinel ends their connections: some
// seconds, or longer if it is cut off together with them. The time to live of
// local caches limits what comes of it.
package redispubsub

// Package tmc is a transparent multilevel cache for Redis: reads of hot keys
// come from the memory of the process, all others from Redis, and the
// application does not notice.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
//	cache, err := tmc.Attach(client, tmc.Options{App: "shop"})
//	...
//	defer cache.Close()
//	price, err := client.Get(ctx, "item:1:price").Result() // as before
//
// [Attach] gives a go-redis client a hook. GET, MGET, HGET and HGETALL of hot
// keys are served from a local cache, by themselves and in pipelines. What is
// hot is found by a hotspot.Detector in the process or, for all nodes of an
// application together, by tmc servers; see Options.Publisher.
//
// # Consistency
//
// On the node that wrote, a read that begins when the write has returned sees
// it. Other nodes hear of it by a broadcast. Until that has come they may serve
// what was there before: milliseconds as a rule, and never longer than
// Stats.Bound says, if the writer reaches the channel. The bound is Options.TTL, or
// that of the channel if it is less, 2 s by default. If the writer does not
// reach the channel, or does not have this package, it is TTL.
//
// A read that was under way when its key was invalidated may return the old
// value, as it may without a cache, but no copy of that is served. While the
// channel is down, all reads go to Redis. When it is up again, nothing is
// served that was copied before. README has a table of all cases.
//
// Replies are those of Redis, with these limits. An MGET may return values of
// different moments, as in any cluster. A field of a hash that expires by itself,
// by HEXPIRE, may be served for up to TTL more. A script that writes keys which it
// does not declare, and whatever a command does to keys that its arguments do not
// name, goes unnoticed for up to TTL. Transactions, connections of one's own and
// AutoPipeline read from Redis.
//
// # Cost
//
// A read that passes costs one count in a detector; it allocates nothing.
// A local read costs that, a look-up, and a copy of the value, since callers may
// change what they get. BenchmarkPassingGet and BenchmarkRead measure them. An
// invalidation of a key costs one message to all nodes, shared with those of other
// keys at the same time, so an application that writes much more than
// it reads should say by Options.Local which keys are worth it.
//
// All goroutines are started by Attach and end with [Cache.Close].
//
// The model is Youzan's TMC. The detector implements HeavyKeeper; see package
// heavykeeper.
package tmc

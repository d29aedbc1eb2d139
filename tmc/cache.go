package tmc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/redispubsub"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Cache is the local cache of a client's hot keys, with what finds them and
// what keeps copies consistent. [Attach] returns one.
//
// All methods are safe for concurrent use.
type Cache struct {
	options  Options // resolved
	client   redis.UniversalClient
	local    *local
	detector detector
	channel  wire.Channel // nil: Alone
	bound    time.Duration
	own      bool // channel is ours to close
	log      *slog.Logger

	settings atomic.Pointer[settings]
	follower *live.Follower // nil: none
	moved    atomic.Bool
	sharded  atomic.Bool // a client has nodes that have hooks, too
	closed   atomic.Bool

	broadcaster *broadcaster // nil: Alone
	peers       peers
	state       state
	counts      counts

	stop  context.CancelFunc
	group sync.WaitGroup
}

// Attach makes client serve reads of hot keys from this process's memory, and
// returns the cache that does so. The application keeps using client as before;
// the package comment says what it can rely on. It fails if an option is out of
// range, and for clients that it would not be sound for: those that read from
// replicas, unless Options.ReplicaReads is set, and those with a cache of
// go-redis's own.
//
// Attach after other hooks and before the first use. A hook that is added
// later, and what is derived from client, as by its methods Conn, Watch and
// AutoPipeline, makes a chain of hooks anew, and those read from Redis alone:
// their writes count, but their reads are not served. What WithTimeout returns
// has no hooks, those of others neither: see [Cache.Attach]. A client can be
// attached once. One of a cluster must reach it.
//
// Close the Cache before the client.
func Attach(client redis.UniversalClient, options Options) (*Cache, error) {
	options, err := options.resolve()
	if err != nil {
		return nil, err
	}
	if err := suitable(client, options); err != nil {
		return nil, err
	}
	c, err := newCache(client, options)
	if err != nil {
		return nil, err
	}
	if err := c.hook(client); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Attach makes one more client of the same Redis database use c, such as one
// that WithTimeout has returned, or one for writes. It fails as the function
// Attach does.
func (c *Cache) Attach(client redis.UniversalClient) error {
	if err := suitable(client, c.options); err != nil {
		return err
	}
	if got, want := database(client), database(c.client); got != want {
		return fmt.Errorf("tmc: client has DB = %d: must be %d, that of the first client", got, want)
	}
	return c.hook(client)
}

// database returns the number of the database that client selects.
func database(client redis.UniversalClient) int {
	switch client := client.(type) {
	case *redis.Client:
		return client.Options().DB
	case *redis.Ring:
		return client.Options().DB
	}
	return 0 // clusters have no other
}

// suitable reports what is wrong with client, if anything.
func suitable(client redis.UniversalClient, options Options) error {
	var cached, replicas bool
	switch client := client.(type) {
	case *redis.Client:
		if client == nil {
			return errors.New("tmc: client = nil: is required")
		}
		o := client.Options()
		cached = o.ClientSideCacheConfig != nil || o.ClientSideCache != nil
	case *redis.ClusterClient:
		o := client.Options()
		replicas = o.ReadOnly || o.RouteByLatency || o.RouteRandomly
	case *redis.Ring:
	default:
		return fmt.Errorf("tmc: client = %T: must be a *redis.Client, *redis.ClusterClient or *redis.Ring", client)
	}
	if cached {
		return errors.New("tmc: client has ClientSideCache: must have none, as it may serve what was invalidated here")
	}
	if replicas && !options.ReplicaReads {
		return errors.New("tmc: client reads from replicas: set ReplicaReads if what they have not heard of yet may be copied")
	}
	return nil
}

// newCache returns a Cache, running but without a client that uses it. options
// are resolved.
func newCache(client redis.UniversalClient, options Options) (*Cache, error) {
	c := &Cache{options: options, client: client, channel: options.Channel, log: options.Logger}
	var err error
	if c.detector, err = newDetector(c); err != nil {
		return nil, err
	}
	if c.local, err = newLocal(options.CacheBytes, options.ValueBytes); err != nil {
		return nil, fmt.Errorf("tmc: %w", err)
	}
	if c.channel == nil && !options.Alone {
		c.own = true
		if c.channel, err = redispubsub.New(redispubsub.Options{Client: client, Logger: options.Logger}); err != nil {
			c.local.close()
			return nil, err
		}
	}
	if b, ok := c.channel.(interface{ Bound() time.Duration }); ok {
		c.bound = b.Bound()
	}
	c.settings.Store(&settings{enabled: true, ttl: options.TTL})
	if options.Live != nil {
		if c.follower, err = newFollower(c); err != nil {
			c.local.close()
			return nil, fmt.Errorf("tmc: Live: %w", err)
		}
	}
	c.run()
	return c, nil
}

// run starts the goroutines, which Close ends.
func (c *Cache) run() {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.detector.run(ctx, &c.group)
	if c.channel != nil {
		c.broadcaster = newBroadcaster(c.channel, c.options.App, c.options.life, c.log)
		c.group.Go(func() { c.broadcaster.run(ctx) })
		c.group.Go(func() { c.subscribe(ctx) })
	}
	if c.follower != nil {
		c.group.Go(func() { c.follow(ctx) })
	}
	c.update()
}

// Close stops serving, sends what is still to be sent of invalidations and
// reports, for two seconds at most, and ends all goroutines. Commands pass the
// hook unchanged from then on. Close does not close the client, nor a Channel
// or Publisher that it was given. It can be called again.
//
// Writes after Close are told to nobody. So close the Cache when the
// application has stopped writing.
func (c *Cache) Close() error {
	if c.closed.Swap(true) {
		c.group.Wait()
		return nil
	}
	c.update()
	c.stop()
	c.group.Wait()
	c.local.close()
	if c.own {
		return c.channel.Close()
	}
	return nil
}

// Hot reports whether key is hot, and so served from local memory. It counts
// nothing.
func (c *Cache) Hot(key string) bool { return c.detector.hot(key) && c.mayServe(key) }

// Flush makes this node forget all copies. Others keep theirs.
func (c *Cache) Flush() {
	c.counts.flushes.add(1)
	c.local.flush()
}

// ownKeys begins the keys that the parts of tmc keep in Redis by default. They
// are written by servers, which tell nobody.
const ownKeys = "tmc:{"

// mayServe reports whether Options.Local lets key be served.
func (c *Cache) mayServe(key string) bool {
	return !strings.HasPrefix(key, ownKeys) && (c.options.Local == nil || c.options.Local(key))
}

// observe counts a read of key and reports whether it is hot. If it is, the
// caller counts a hit or a miss.
func (c *Cache) observe(key string) bool {
	if c.mayServe(key) && c.settings.Load().enabled && c.detector.observe(key) {
		return true
	}
	c.counts.cold.add(1)
	return false
}

// writing is what a command writes.
type writing struct {
	keys   []string
	effect effect
}

// begin makes sure that nothing is served, until end, of what is about to be
// written.
func (c *Cache) begin(w writing) {
	switch w.effect {
	case passes, moves:
		return
	case flushes:
		c.local.flushing.Add(1)
		c.local.flush()
	}
	for _, key := range w.keys {
		if w.effect == blocks {
			// It may take hours, in which other keys of the slot should be served.
			c.local.guard.invalidate(key)
		} else {
			c.local.guard.begin(key)
		}
	}
}

// end makes sure that nothing is served of before the write, which is over, and
// tells the other nodes.
func (c *Cache) end(w writing) {
	switch w.effect {
	case passes, moves:
		return
	case flushes:
		c.local.flush()
		c.local.flushing.Add(-1)
		c.counts.flushes.add(1)
	}
	for _, key := range w.keys {
		if w.effect == blocks {
			c.local.guard.invalidate(key)
		} else {
			c.local.guard.end(key)
		}
		c.local.drop(key)
	}
	c.counts.written.add(uint64(len(w.keys)))
	if c.broadcaster == nil || c.closed.Load() {
		return
	}
	if w.effect == flushes {
		c.broadcaster.all()
		return
	}
	for _, key := range w.keys {
		if c.mayServe(key) {
			c.broadcaster.add(key)
		}
	}
}

// stopServing is called when a command has been seen after which replies are
// not what they seem.
func (c *Cache) stopServing(name string) {
	if !c.moved.Swap(true) {
		c.log.Warn("tmc: serving nothing from now on: a connection of the pool was changed", "app", c.options.App, "command", name)
		c.update()
	}
}

package redispubsub_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc/push/redispubsub"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// open returns a channel that tests its subscriptions often.
func open(t *testing.T, client redis.UniversalClient) *redispubsub.Channel {
	t.Helper()
	c, err := redispubsub.New(redispubsub.Options{
		Client: client, Ping: 20 * time.Millisecond, Timeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// subscriber counts what it hears of application "shop".
type subscriber struct {
	ups, downs, invalidations atomic.Int64
}

func subscribe(t *testing.T, c *redispubsub.Channel) *subscriber {
	t.Helper()
	s := new(subscriber)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Subscribe(ctx, "shop", wire.Handler{
			Up: func(up bool) {
				if up {
					s.ups.Add(1)
				} else {
					s.downs.Add(1)
				}
			},
			Invalidate: func(wire.Invalidation) { s.invalidations.Add(1) },
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	until(t, "the subscription is up", func() bool { return s.ups.Load() == 1 })
	return s
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func invalidate(t *testing.T, c *redispubsub.Channel, seq uint64) {
	t.Helper()
	if err := c.Invalidate(t.Context(), wire.Invalidation{App: "shop", Node: "n", Seq: seq, Keys: []string{"k"}}); err != nil {
		t.Fatal(err)
	}
}

// shards are two servers that have parts of the slots of a cluster and do not
// hear of each other: what is published on one does not come out of the other.
type shards struct {
	servers [2]*miniredis.Miniredis
	first   atomic.Int64 // server that has the lower half of the slots, 0 or 1
}

func (s *shards) client(t *testing.T) *redis.ClusterClient {
	c := redis.NewClusterClient(&redis.ClusterOptions{DialerRetries: 1, MaxRetries: -1, ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
		first := s.first.Load()
		return []redis.ClusterSlot{
			{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: s.servers[first].Addr()}}},
			{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: s.servers[1-first].Addr()}}},
		}, nil
	}})
	t.Cleanup(func() { c.Close() })
	return c
}

// TestCluster publishes on a cluster whose servers do not pass messages on, as
// happens to a real one without a word, and moves the slot of the application.
func TestCluster(t *testing.T) {
	s := &shards{servers: [2]*miniredis.Miniredis{miniredis.RunT(t), miniredis.RunT(t)}}
	near, far := s.client(t), s.client(t)
	publisher, heard := open(t, near), subscribe(t, open(t, far))
	const each = 20
	for seq := range uint64(each) {
		invalidate(t, publisher, seq+1)
	}
	until(t, "all are heard", func() bool { return heard.invalidations.Load() == each })

	s.first.Store(1)
	near.ReloadState(t.Context())
	far.ReloadState(t.Context())
	until(t, "the subscription has moved", func() bool { return heard.ups.Load() == 2 && heard.downs.Load() == 1 })
	for seq := range uint64(each) {
		invalidate(t, publisher, each+seq+1)
	}
	until(t, "all are heard", func() bool { return heard.invalidations.Load() == 2*each })
}

// TestClusterOwnerDown publishes while the server that should is down: another
// one is asked to pass it on.
func TestClusterOwnerDown(t *testing.T) {
	s := &shards{servers: [2]*miniredis.Miniredis{miniredis.RunT(t), miniredis.RunT(t)}}
	client := s.client(t)
	owner, err := client.MasterForKey(t.Context(), "tmc:{shop}:push")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s.servers[:], func(server *miniredis.Miniredis) bool {
		return strings.HasSuffix(owner.Options().Addr, ":"+server.Port())
	})
	if i < 0 {
		t.Fatalf("got owner %s; want one of the servers", owner.Options().Addr)
	}
	s.servers[i].Close()
	invalidate(t, open(t, client), 1)
}

// TestRing publishes on a ring, and has the server of the application end.
func TestRing(t *testing.T) {
	servers := make(map[string]*miniredis.Miniredis)
	addrs := make(map[string]string)
	for i := range 2 {
		server := miniredis.RunT(t)
		servers[server.Addr()] = server
		addrs[fmt.Sprint("shard", i)] = server.Addr()
	}
	client := func() *redis.Ring {
		c := redis.NewRing(&redis.RingOptions{Addrs: addrs, HeartbeatFrequency: 20 * time.Millisecond, DialerRetries: 1, MaxRetries: -1})
		t.Cleanup(func() { c.Close() })
		return c
	}
	ring := client()
	publisher, heard := open(t, ring), subscribe(t, open(t, client()))
	invalidate(t, publisher, 1)
	until(t, "it is heard", func() bool { return heard.invalidations.Load() == 1 })

	shard, err := ring.GetShardClientForKey("tmc:{shop}:push")
	if err != nil {
		t.Fatal(err)
	}
	down := servers[shard.Options().Addr]
	down.Close()
	until(t, "both are on the other shard", func() bool {
		now, err := ring.GetShardClientForKey("tmc:{shop}:push")
		return err == nil && now != shard && heard.ups.Load() == 2
	})
	invalidate(t, publisher, 2)
	until(t, "it is heard", func() bool { return heard.invalidations.Load() == 2 })

	// It comes back: the one that serves now goes on, but has the slot no more.
	if err := down.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, "both are on the first shard", func() bool {
		now, err := ring.GetShardClientForKey("tmc:{shop}:push")
		return err == nil && now == shard && heard.ups.Load() == 3
	})
	invalidate(t, publisher, 3)
	until(t, "it is heard", func() bool { return heard.invalidations.Load() == 3 })
}

// TestRingDown subscribes by a ring that has no shard.
func TestRingDown(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{}})
	defer ring.Close()
	c := open(t, ring)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := c.Subscribe(ctx, "shop", wire.Handler{}); err == nil {
		t.Error("got no error, want that of the context")
	}
	if err := c.Invalidate(t.Context(), wire.Invalidation{App: "shop", Node: "n", Seq: 1}); err == nil {
		t.Error("got no error of an invalidation without a shard")
	}
}

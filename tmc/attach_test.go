package tmc

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/live/rediskey"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOptions(t *testing.T) {
	channel := (&memory{}).join(0)
	for _, test := range []struct {
		options Options
		want    string // "" if they are fine
	}{
		{Options{}, ""},
		{Options{App: "a b"}, `tmc: App = "a b": must have no ' '`},
		{Options{App: strings.Repeat("a", 129)}, "tmc: App = "},
		{Options{Node: strings.Repeat("n", 128)}, ""},
		{Options{Node: strings.Repeat("n", 129)}, "tmc: Node = "},
		{Options{Alone: true}, ""},
		{Options{Alone: true, Channel: channel}, "tmc: Alone = true: must be false with a Channel"},
		{Options{Alone: true, Publisher: &publisher{}}, "tmc: Alone = true: must be false with a Publisher"},
		{Options{ReportEvery: time.Millisecond}, "tmc: ReportEvery = 1ms: must be 10ms to 1m0s"},
		{Options{ReportEvery: 2 * time.Minute}, "tmc: ReportEvery = 2m0s"},
		{Options{ReportKeys: -1}, "tmc: ReportKeys = -1: must be 1 to 1048576"},
		{Options{ReportQueue: 1 << 17}, "tmc: ReportQueue = 131072"},
		{Options{CacheBytes: 1}, "tmc: CacheBytes = 1: must be 65536 to"},
		{Options{CacheBytes: -1}, "tmc: CacheBytes = -1"},
		{Options{CacheBytes: math.MaxInt64}, "tmc: CacheBytes = 9223372036854775807"},
		{Options{CacheBytes: 64 << 10}, ""},
		{Options{ValueBytes: -1}, "tmc: ValueBytes = -1"},
		{Options{ValueBytes: 64<<20 + 1}, "tmc: ValueBytes = 67108865: must be 1 to 67108864"},
		{Options{TTL: -1}, "tmc: TTL = -1ns: must be 1ms to 24h0m0s"},
		{Options{TTL: 25 * time.Hour}, "tmc: TTL = 25h0m0s"},
		{Options{Hot: hotspot.Config[string]{TopN: -1}}, "tmc: Hot: hotspot: TopN = -1"},
		{Options{Hot: hotspot.Config[string]{Share: 2}}, "tmc: Hot: hotspot: Share = 2"},
		{Options{Hot: hotspot.Config[string]{Slots: -1}}, "tmc: Hot: hotspot: Slots = -1"},
		{Options{Hot: hotspot.Config[string]{Rules: []hotspot.Rule{{Name: "bad", Match: hotspot.Regexp, Pattern: "("}}}}, "bad"},
	} {
		client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		test.options.Logger = slog.New(slog.DiscardHandler)
		cache, err := Attach(client, test.options)
		switch {
		case err == nil && test.want == "":
			cache.Close()
		case err == nil || test.want == "" || !strings.Contains(err.Error(), test.want):
			t.Errorf("%+v: got error %v; want %q", test.options, err, test.want)
		}
		client.Close()
	}
}

func TestUnsuitable(t *testing.T) {
	cached := redis.NewClient(&redis.Options{ClientSideCacheConfig: &redis.ClientSideCacheConfig{}, Protocol: 3})
	defer cached.Close()
	replicas := redis.NewClusterClient(&redis.ClusterOptions{ReadOnly: true})
	defer replicas.Close()
	for _, test := range []struct {
		client redis.UniversalClient
		want   string
	}{
		{nil, "client = <nil>"},
		{(*redis.Client)(nil), "client = nil"},
		{cached, "ClientSideCache"},
		{replicas, "ReplicaReads"},
	} {
		if _, err := Attach(test.client, Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%T: got error %v; want one of %q", test.client, err, test.want)
		}
	}
}

// TestDetected reads a key until it is found to be hot by itself.
func TestDetected(t *testing.T) {
	ctx := t.Context()
	client, cache, server := attach(t, Options{Hot: hotspot.Config[string]{
		Rate: 10, Slots: 10, Slot: 50 * time.Millisecond, Rules: []hotspot.Rule{}}})
	client.Set(ctx, "k", "v", 0)
	deadline := time.Now().Add(10 * time.Second)
	for !cache.Hot("k") {
		if time.Now().After(deadline) {
			t.Fatal("the key was not found to be hot")
		}
		client.Get(ctx, "k")
	}
	if cache.Hot("other") {
		t.Error("another key is hot")
	}
	client.Get(ctx, "k")
	before := server.CommandCount()
	client.Get(ctx, "k")
	if got := server.CommandCount() - before; got != 0 {
		t.Errorf("got %d commands for a read of a hot key; want none", got)
	}
	if s := cache.Stats(); s.HotKeys != 1 || s.Hits == 0 || s.Copies != 1 || s.HitRate() <= 0 {
		t.Errorf("got %+v", s)
	}
}

// TestLocalOption tests keys that may not be served.
func TestLocalOption(t *testing.T) {
	ctx := t.Context()
	hub := &memory{}
	channel := hub.join(0)
	client, cache, server := attach(t, Options{Channel: channel, TTL: time.Hour, Local: func(key string) bool { return key == "yes" }})
	waitUp(t, cache)
	client.MSet(ctx, "yes", "1", "no", "1")
	for _, key := range []string{"yes", "no"} {
		client.Get(ctx, key)
		before := server.CommandCount()
		client.Get(ctx, key)
		if got := server.CommandCount() == before; got != (key == "yes") {
			t.Errorf("%s: got served = %t", key, got)
		}
	}
	client.Set(ctx, "no", "2", 0)
	cache.Close()
	if s := cache.Stats(); s.Sent != 1 {
		t.Errorf("got %d invalidations sent; want that of MSET alone", s.Sent)
	}
}

func waitUp(t *testing.T, c *Cache) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !c.Stats().Serving; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the channel is not up")
		}
	}
}

// TestTwoNodes tells a node of what another writes, by the default channel.
func TestTwoNodes(t *testing.T) {
	ctx := t.Context()
	server := miniredis.RunT(t)
	var clients []*redis.Client
	var caches []*Cache
	for range 2 {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer client.Close()
		cache, err := Attach(client, Options{Hot: allHot, TTL: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Close()
		clients, caches = append(clients, client), append(caches, cache)
	}
	for _, cache := range caches {
		waitUp(t, cache)
	}
	timeout := clients[0].WithTimeout(time.Minute)
	if err := caches[0].Attach(timeout); err != nil {
		t.Fatal(err)
	}
	if err := caches[0].Attach(nil); err == nil {
		t.Error("got no error for nil")
	}
	other := redis.NewClient(&redis.Options{Addr: server.Addr(), DB: 1})
	defer other.Close()
	if err := caches[0].Attach(other); err == nil || !strings.Contains(err.Error(), "DB = 1: must be 0") {
		t.Errorf("got error %v for a client of another database", err)
	}
	writers := []struct {
		name  string
		write func(value string)
	}{
		{"SET", func(v string) { clients[0].Set(ctx, "k", v, 0) }},
		{"pipeline", func(v string) {
			clients[0].Pipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, "k", v, 0); return nil })
		}},
		{"transaction", func(v string) {
			clients[0].TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, "k", v, 0); return nil })
		}},
		{"watch", func(v string) {
			clients[0].Watch(ctx, func(tx *redis.Tx) error {
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, "k", v, 0); return nil })
				return err
			}, "k")
		}},
		{"connection", func(v string) { conn := clients[0].Conn(); conn.Set(ctx, "k", v, 0); conn.Close() }},
		{"multi on a connection", func(v string) {
			conn := clients[0].Conn()
			defer conn.Close()
			do(ctx, conn, "multi")
			do(ctx, conn, "set", "k", v)
			do(ctx, conn, "exec")
		}},
		{"timeout", func(v string) { timeout.Set(ctx, "k", v, 0) }},
		{"script", func(v string) {
			clients[0].Eval(ctx, "redis.call('SET', KEYS[1], ARGV[1])", []string{"k"}, v)
		}},
		{"rename", func(v string) { clients[0].Set(ctx, "from", v, 0); clients[0].Rename(ctx, "from", "k") }},
		{"flushall", func(v string) { clients[0].FlushAll(ctx); clients[0].Set(ctx, "k", v, 0) }},
		{"autopipeline", func(v string) {
			ap, err := clients[0].AutoPipeline()
			if err != nil {
				t.Fatal(err)
			}
			ap.Set(ctx, "k", v, 0)
			ap.Close()
		}},
	}
	for _, w := range writers {
		clients[1].Get(ctx, "k")
		clients[1].Get(ctx, "k")
		clients[0].Get(ctx, "k")
		w.write(w.name)
		if got := clients[0].Get(ctx, "k").Val(); got != w.name {
			t.Errorf("%s: got %q on the node that wrote; want %q", w.name, got, w.name)
		}
		deadline := time.Now().Add(10 * time.Second)
		for clients[1].Get(ctx, "k").Val() != w.name {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the other node was not told", w.name)
			}
		}
	}
	if s := caches[1].Stats(); s.Hits == 0 || s.Heard == 0 || s.Bound != 2*time.Second {
		t.Errorf("got %+v", s)
	}
}

// TestSameName has two processes that were given one name: each hears what the
// other writes.
func TestSameName(t *testing.T) {
	ctx := t.Context()
	hub := &memory{}
	addr := miniredis.RunT(t).Addr()
	writer, first := attachTo(t, addr, Options{Node: "host", Channel: hub.join(0), TTL: time.Hour})
	reader, second := attachTo(t, addr, Options{Node: "host", Channel: hub.join(0), TTL: time.Hour})
	waitUp(t, first)
	waitUp(t, second)
	writer.Set(ctx, "k", "1", 0)
	for second.Stats().Hits == 0 {
		reader.Get(ctx, "k")
	}
	writer.Set(ctx, "k", "2", 0)
	for deadline := time.Now().Add(10 * time.Second); reader.Get(ctx, "k").Val() != "2"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("got the old value for 10 s")
		}
	}
}

// TestRing attaches to a ring, whose nodes have hooks of their own.
func TestRing(t *testing.T) {
	t.Run("channel=memory", func(t *testing.T) { testRing(t, (&memory{}).join(0)) })
	t.Run("channel=default", func(t *testing.T) { testRing(t, nil) })
}

func testRing(t *testing.T, channel wire.Channel) {
	ctx := t.Context()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": miniredis.RunT(t).Addr(), "b": miniredis.RunT(t).Addr()}})
	defer ring.Close()
	testSharded(t, ring, channel)
	if err := ring.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error { return node.FlushAll(ctx).Err() }); err != nil {
		t.Fatal(err)
	}
	if got, err := ring.Get(ctx, "k3").Result(); !isNil(err) {
		t.Errorf("got %q, %v after FLUSHALL of the nodes", got, err)
	}
}

// TestCluster attaches to a client of a cluster, of one node.
func TestCluster(t *testing.T) {
	server := miniredis.RunT(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	defer cluster.Close()
	testSharded(t, cluster, (&memory{}).join(0))
}

func testSharded(t *testing.T, client redis.UniversalClient, channel wire.Channel) {
	ctx := t.Context()
	cache, err := Attach(client, Options{Channel: channel, Hot: allHot, TTL: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	waitUp(t, cache)
	for i := range 20 {
		key := fmt.Sprint("k", i)
		if err := client.Set(ctx, key, "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got, err := client.Get(ctx, key).Result(); got != "1" || err != nil {
				t.Fatalf("%s: got %q, %v; want 1", key, got, err)
			}
		}
		err := client.Watch(ctx, func(tx *redis.Tx) error {
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, key, "2", 0); return nil })
			return err
		}, key)
		if err != nil {
			t.Fatal(err)
		}
		if got := client.Get(ctx, key).Val(); got != "2" {
			t.Errorf("%s: got %q after a transaction with WATCH; want 2", key, got)
		}
		if _, err := client.Pipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, key, "3", 0); return nil }); err != nil {
			t.Fatal(err)
		}
		if got := client.Get(ctx, key).Val(); got != "3" {
			t.Errorf("%s: got %q after a pipeline; want 3", key, got)
		}
	}
	if s := cache.Stats(); s.Hits < 40 || s.Written != 60 {
		t.Errorf("got %d hits, %d keys written; want 40 or more, and 60, each once", s.Hits, s.Written)
	}
}

// TestClosed tests that a closed Cache serves nothing, and can be closed again.
func TestClosed(t *testing.T) {
	ctx := t.Context()
	client, cache, server := attach(t, Options{TTL: time.Hour})
	client.Set(ctx, "k", "1", 0)
	client.Get(ctx, "k")
	for range 2 {
		if err := cache.Close(); err != nil {
			t.Fatal(err)
		}
	}
	server.Set("k", "2")
	if got := client.Get(ctx, "k").Val(); got != "2" {
		t.Errorf("got %q after Close; want 2", got)
	}
	if s := cache.Stats(); s.Serving {
		t.Errorf("got %+v", s)
	}
}

// TestLive changes the configuration while all runs.
func TestLive(t *testing.T) {
	ctx := t.Context()
	server := miniredis.RunT(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer admin.Close()
	source := rediskey.Source{Client: admin, Interval: time.Millisecond}
	client, cache := attachTo(t, server.Addr(), Options{
		App: "shop", Live: source, TTL: time.Hour, CacheBytes: 1 << 20,
		Hot: hotspot.Config[string]{Rate: 5, Slots: 10, Slot: 50 * time.Millisecond, Rules: []hotspot.Rule{{Action: hotspot.Allow, Pattern: "always"}}},
	})
	until := func(what string, f func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not in time: %s", what)
			}
		}
	}
	client.Set(ctx, "k", "v", 0)
	if !cache.Hot("always") {
		t.Error("the key that Options allow is not hot")
	}
	until("hot by its rate", func() bool { client.Get(ctx, "k"); return cache.Hot("k") })
	admin.Set(ctx, source.Key("shop"), `{"rate": 1e9, "cache": {"bytes": 524288, "ttl": "10ms"}, "topN": 500}`, 0)
	until("not hot by a greater rate", func() bool { client.Get(ctx, "k"); return !cache.Hot("k") })
	// On a machine that stands still for a window the key cools by itself.
	until("a cache of 524288 bytes, a staleness of 10 ms", func() bool {
		return cache.local.cache.GetMaximum() == 524288 && cache.staleness() == 10*time.Millisecond
	})
	if !cache.Hot("always") {
		t.Error("the key that Options allow is not hot any more")
	}
	admin.Set(ctx, source.Key("shop"), `{"rate": -1}`, 0)
	until("rejected", func() bool { return cache.follower.Status().Rejected == 1 })
	admin.Set(ctx, source.Key("shop"), `{"rules": [{"action": "deny", "match": "prefix", "pattern": "k"}], "rate": 1}`, 0)
	until("the rule that allowed is gone", func() bool { return !cache.Hot("always") })
	admin.Set(ctx, source.Key("shop"), `{"enabled": false}`, 0)
	until("switched off", func() bool { return !cache.Stats().Serving })
	admin.Del(ctx, source.Key("shop"))
	until("switched on", func() bool { return cache.Stats().Serving && cache.Hot("always") })
	until("hot again", func() bool { client.Get(ctx, "k"); return cache.Hot("k") })
}

func TestLiveBase(t *testing.T) {
	options, err := Options{Hot: hotspot.Config[string]{
		Share: 0.1, TopN: 7, Leave: 0.5, MinStay: time.Second, EnterAfter: 2, Certain: true,
		Rules: []hotspot.Rule{{Name: "r", Action: hotspot.Detect, Match: hotspot.Glob, Pattern: "a*", Rate: 3, Window: 2, TTL: time.Second}},
	}}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	base := liveBase(options)
	if err := base.Validate(options.Hot.Slots); err != nil {
		t.Fatal(err)
	}
	got, err := base.Detector(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := options.Hot
	want.Slots, want.Slot = 0, 0
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if want := (live.Cache{Bytes: 64 << 20, TTL: live.Duration(3 * time.Second)}); base.Cache != want {
		t.Errorf("got %+v; want %+v", base.Cache, want)
	}
}

// TestGap flushes when a message of a node was missed.
func TestGap(t *testing.T) {
	var p peers
	for i, step := range []struct {
		node string
		seq  uint64
		want bool
	}{
		{"a", 7, true}, {"a", 8, true}, {"b", 1, true}, {"a", 8, true}, {"a", 10, false}, {"a", 11, true}, {"b", 3, false}, {"", 0, true}, {"a", 5, true}, {"a", 12, true},
	} {
		if got := p.next(step.node, step.seq); got != step.want {
			t.Errorf("step %d: got %t, want %t", i, got, step.want)
		}
	}
	p.reset()
	if !p.next("a", 20) {
		t.Error("got false after a reset")
	}
	for i := range 2 * maxPeers {
		p.next(fmt.Sprint("node", i), 1)
	}
	if len(p.last) > maxPeers {
		t.Errorf("got %d nodes, want %d at most", len(p.last), maxPeers)
	}
}

// TestBroadcast holds the channel back, and then has it fail.
func TestBroadcast(t *testing.T) {
	channel := &slowChannel{gate: make(chan error)}
	b := newBroadcaster(channel, "app", "node", slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.run(ctx) }()

	b.add("a")
	first := channel.next(t) // is under way: what comes now waits for the next
	b.add("b")
	b.add("c")
	b.add("b")
	if keys, age := b.waiting(); keys != 2 || age < 0 {
		t.Errorf("got %d keys waiting, want 2", keys)
	}
	channel.gate <- fmt.Errorf("down")
	again := channel.next(t)
	if again.Seq != first.Seq || len(again.Keys) != 1 {
		t.Errorf("got %+v sent again; want %+v", again, first)
	}
	channel.gate <- nil
	second := channel.next(t)
	if len(second.Keys) != 2 || second.Seq != first.Seq+1 || second.All {
		t.Errorf("got %+v; want b and c", second)
	}
	for i := range 1 << 17 {
		b.add(fmt.Sprint("key", i))
	}
	b.add("after")
	channel.gate <- nil
	third := channel.next(t)
	if !third.All || len(third.Keys) != 0 || b.overflow.Load() != 1 {
		t.Errorf("got %d keys, All = %t, %d overflows; want an invalidation of everything", len(third.Keys), third.All, b.overflow.Load())
	}
	channel.gate <- nil

	b.add("last")
	last := channel.next(t)
	stop()
	channel.gate <- context.Canceled
	again = channel.next(t)
	if len(again.Keys) != 1 || again.Keys[0] != last.Keys[0] {
		t.Errorf("got %+v when closed; want %+v", again, last)
	}
	channel.gate <- nil
	<-done
	if keys, age := b.waiting(); keys != 0 || age != 0 {
		t.Errorf("got %d keys waiting for %v; want none", keys, age)
	}
}

// slowChannel takes an invalidation when it is told to.
type slowChannel struct {
	wire.Channel
	taken atomic.Pointer[wire.Invalidation]
	gate  chan error
}

func (c *slowChannel) Invalidate(_ context.Context, inv wire.Invalidation) error {
	c.taken.Store(&inv)
	return <-c.gate
}

func (c *slowChannel) next(t *testing.T) wire.Invalidation {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if inv := c.taken.Swap(nil); inv != nil {
			return *inv
		}
	}
	t.Fatal("nothing was sent")
	panic("unreachable")
}

func TestCollector(t *testing.T) {
	ctx := t.Context()
	client, cache, _ := attach(t, Options{App: "shop", Node: "n1"})
	client.Set(ctx, "k", "v", 0)
	for range 3 {
		client.Get(ctx, "k")
	}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(cache.Collector()); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		m := f.Metric[0]
		got[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		if m.Label[0].GetValue() != "shop" || m.Label[1].GetValue() != "n1" {
			t.Errorf("%s: got labels %v", f.GetName(), m.Label)
		}
	}
	for name, want := range map[string]float64{
		"tmc_reads_total": 3, "tmc_hot_reads_total": 3, "tmc_hits_total": 2, "tmc_misses_total": 1, "tmc_keys_written_total": 1,
		"tmc_serving": 1, "tmc_cache_copies": 1, "tmc_staleness_bound_seconds": 3,
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
}

func TestHandler(t *testing.T) {
	ctx := t.Context()
	client, cache, _ := attach(t, Options{})
	client.Get(ctx, "k")
	recorder := httptest.NewRecorder()
	cache.Handler().ServeHTTP(recorder, httptest.NewRequest("GET", "/?format=stats", nil))
	var s Stats
	if err := json.Unmarshal(recorder.Body.Bytes(), &s); err != nil || s.Reads != 1 {
		t.Errorf("got %s, %v", recorder.Body, err)
	}
	recorder = httptest.NewRecorder()
	cache.Handler().ServeHTTP(recorder, httptest.NewRequest("GET", "/", nil))
	if !strings.Contains(recorder.Body.String(), "<html") {
		t.Errorf("got %.80s; want a page", recorder.Body)
	}
	recorder = httptest.NewRecorder()
	cache.Handler().ServeHTTP(recorder, httptest.NewRequest("POST", "/", nil))
	if recorder.Code != 405 {
		t.Errorf("got status %d of POST; want 405", recorder.Code)
	}
}

package transport_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/internal/split"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/kafka"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/redisstream"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}

// silent keeps the Redis client from saying that it cannot connect.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

const (
	shards = 8
	lease  = 600 * time.Millisecond
	maxLen = 100

	// No test waits for it to end. A machine that stalls for longer has reports
	// counted twice.
	session = 3 * time.Second
)

var quiet = slog.New(slog.DiscardHandler)

type consumer interface {
	wire.Consumer
	transport.Meter
}

// medium is what an implementation runs on.
type medium struct {
	addr      string
	publisher func(t *testing.T, addr string) wire.Publisher
	consumer  func(t *testing.T, addr string) consumer
	raw       func(t *testing.T, shard int, data []byte)
	trim      func(t *testing.T) // removes reports that are not read as yet
	restart   func()             // kills the server, which comes back empty; nil: it cannot
	trims     bool               // keeps no more than about maxLen reports a shard
	direct    bool               // clients cannot go by way of a proxy: the server tells them its own address
}

// media are the implementations on what they run on. All tests below hold for
// each.
var media = map[string]func(t *testing.T) medium{
	"redisstream on miniredis": func(t *testing.T) medium {
		// Its blocking commands do not answer after a restart.
		return streams(miniredis.RunT(t).Addr(), nil)
	},
	"redisstream on redis-server": func(t *testing.T) medium {
		s := testserver.Redis(t)
		return streams(s.Addr, func() { s.Kill(); s.Start() })
	},
	"redisstream on a cluster": func(t *testing.T) medium {
		s := testserver.RedisCluster(t)
		m := streamsBy(s.Addr, func() { s.Kill(); s.Start() }, func(addr string) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, ContextTimeoutEnabled: true})
		})
		m.direct = true
		return m
	},
	"kafka on kfake": func(t *testing.T) medium {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(shards, "tmc-reports"), kfake.GroupMinSessionTimeout(session))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return topic(c.ListenAddrs()[0])
	},
}

func streams(addr string, restart func()) medium {
	return streamsBy(addr, restart, func(addr string) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	})
}

// streamsBy is streams with another kind of client.
func streamsBy(addr string, restart func(), dial func(addr string) redis.UniversalClient) medium {
	options := func(t *testing.T, addr string) redisstream.Options {
		client := dial(addr)
		t.Cleanup(func() { client.Close() })
		return redisstream.Options{Client: client, Shards: shards, Lease: lease, MaxLen: maxLen, Logger: quiet}
	}
	return medium{
		addr:    addr,
		restart: restart,
		trims:   true,
		publisher: func(t *testing.T, addr string) wire.Publisher {
			return must(redisstream.NewPublisher(options(t, addr)))(t)
		},
		consumer: func(t *testing.T, addr string) consumer {
			return must(redisstream.NewConsumer(options(t, addr)))(t)
		},
		raw: func(t *testing.T, shard int, data []byte) {
			err := options(t, addr).Client.XAdd(t.Context(), &redis.XAddArgs{
				Stream: fmt.Sprintf("tmc:{tmc}:reports:%d", shard),
				Values: []any{"r", data, "p", "someone", "s", "1"},
			}).Err()
			if err != nil {
				t.Fatal(err)
			}
		},
		trim: func(t *testing.T) {
			for shard := range shards {
				err := options(t, addr).Client.XTrimMaxLen(t.Context(), fmt.Sprintf("tmc:{tmc}:reports:%d", shard), 1).Err()
				if err != nil {
					t.Fatal(err)
				}
			}
		},
	}
}

func topic(addr string) medium {
	options := func(addr string) kafka.Options {
		return kafka.Options{Seeds: []string{addr}, Session: session, Delivery: time.Second, Logger: quiet,
			Client: []kgo.Opt{kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond })}}
	}
	client := func(t *testing.T) *kgo.Client {
		c := must(kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner())))(t)
		t.Cleanup(c.Close)
		return c
	}
	return medium{
		addr:   addr,
		direct: true,
		publisher: func(t *testing.T, addr string) wire.Publisher {
			return must(kafka.NewPublisher(options(addr)))(t)
		},
		consumer: func(t *testing.T, addr string) consumer {
			return must(kafka.NewConsumer(options(addr)))(t)
		},
		raw: func(t *testing.T, shard int, data []byte) {
			record := &kgo.Record{Topic: "tmc-reports", Partition: int32(shard), Value: data}
			if err := client(t).ProduceSync(t.Context(), record).FirstErr(); err != nil {
				t.Fatal(err)
			}
		},
		trim: func(t *testing.T) { deleteRecords(t, client(t)) },
	}
}

// deleteRecords removes all records but the last of each partition.
func deleteRecords(t *testing.T, client *kgo.Client) {
	t.Helper()
	list := kmsg.NewListOffsetsRequest()
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = "tmc-reports"
	for shard := range int32(shards) {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = shard, -1
		topic.Partitions = append(topic.Partitions, p)
	}
	list.Topics = append(list.Topics, topic)
	ends, err := list.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	request := kmsg.NewDeleteRecordsRequest()
	deleted := kmsg.NewDeleteRecordsRequestTopic()
	deleted.Topic = "tmc-reports"
	for _, end := range ends.Topics[0].Partitions {
		p := kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Partition, p.Offset = end.Partition, end.Offset-1
		deleted.Partitions = append(deleted.Partitions, p)
	}
	request.Topics = append(request.Topics, deleted)
	response, err := request.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range response.Topics[0].Partitions {
		if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
			t.Fatal(err)
		}
	}
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func each(t *testing.T, test func(t *testing.T, m medium)) {
	for _, name := range slices.Sorted(maps.Keys(media)) {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && strings.HasSuffix(name, "cluster") {
				t.Skip("a cluster takes seconds to start")
			}
			test(t, media[name](t))
		})
	}
}

// server is a consumer at work, and what it has received.
type server struct {
	consumer
	end func() error // ends Consume and returns what that did

	mu      sync.Mutex
	counts  map[string]int
	dropped int
	parts   int
	fail    error
}

func serve(t *testing.T, c consumer) *server {
	s := &server{consumer: c, counts: make(map[string]int)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Consume(ctx, s.receive) }()
	s.end = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { s.end() })
	return s
}

func (s *server) receive(r wire.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	for _, c := range r.Counts {
		s.counts[c.Key] += int(c.N)
	}
	s.dropped += int(r.Dropped)
	s.parts++
	return nil
}

// snapshot returns what s has received.
func (s *server) snapshot() (counts map[string]int, dropped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts), s.dropped
}

// total adds up what servers have received.
func total(servers ...*server) (counts map[string]int, dropped int) {
	counts = make(map[string]int)
	for _, s := range servers {
		c, d := s.snapshot()
		for key, n := range c {
			counts[key] += n
		}
		dropped += d
	}
	return counts, dropped
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// source publishes random reports and keeps account of them.
type source struct {
	p       wire.Publisher
	node    string
	random  *rand.Rand
	counts  map[string]int
	dropped int
	parts   int
}

func newSource(p wire.Publisher, node string) *source {
	return &source{p: p, node: node, random: rand.New(rand.NewPCG(1, uint64(len(node)))), counts: make(map[string]int)}
}

// publish publishes n reports of some keys each.
func (s *source) publish(t *testing.T, n, keys int) {
	t.Helper()
	for range n {
		r := wire.Report{App: "shop", Node: s.node, At: time.Now(), Dropped: s.random.Uint64N(3)}
		for range keys {
			r.Counts = append(r.Counts, wire.Count{Key: fmt.Sprint("k", s.random.IntN(1000)), N: s.random.Uint32N(100)})
		}
		if err := s.p.Publish(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Counts {
			s.counts[c.Key] += int(c.N)
		}
		s.dropped += int(r.Dropped)
		s.parts++
	}
}

// equal compares maps with no regard to zeros.
func equal(a, b map[string]int) bool {
	for key := range a {
		if a[key] != b[key] {
			return false
		}
	}
	for key := range b {
		if a[key] != b[key] {
			return false
		}
	}
	return true
}

func (s *source) arrived(servers ...*server) func() bool {
	return func() bool {
		counts, dropped := total(servers...)
		return dropped == s.dropped && equal(counts, s.counts)
	}
}

func assigned(servers ...*server) func() bool {
	return func() bool {
		sum := 0
		for _, s := range servers {
			n := s.Stats().Shards
			if n == 0 {
				return false
			}
			sum += n
		}
		return sum == shards
	}
}

func TestDelivers(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		a := newSource(m.publisher(t, m.addr), "a")
		a.publish(t, 5, 20) // before any server is there
		s := serve(t, m.consumer(t, m.addr))
		a.publish(t, 20, 10)
		a.publish(t, 3, 0)
		eventually(t, "all counts", a.arrived(s))
		if stats := s.Stats(); stats.Reports != uint64(s.parts) || stats.Lost+stats.Malformed+stats.Repeated != 0 || stats.Shards != shards {
			t.Errorf("got %+v, want %d reports and nothing amiss", stats, s.parts)
		}
		if err := s.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Consume returned %v when its context ended, want context.Canceled", err)
		}
		a.p.Close()
	})
}

// TestLarge publishes a report with more keys of one shard than a record takes,
// as long as they may be, and one that is longer: that is dropped, and nothing
// else.
func TestLarge(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		p := newSource(m.publisher(t, m.addr), "a")
		defer p.p.Close()
		s := serve(t, m.consumer(t, m.addr))
		r := wire.Report{App: "shop", Node: "a", At: time.Now(), Counts: []wire.Count{{Key: strings.Repeat("k", 1<<20), N: 3}}}
		begin := strings.Repeat("k", wire.MaxKey-6)
		for i := 100_000; len(r.Counts) < 1100; i++ {
			key := begin + fmt.Sprint(i)
			if split.Shard(r.App, key, shards) != 3 {
				continue
			}
			r.Counts = append(r.Counts, wire.Count{Key: key, N: 1})
			p.counts[key] = 1
		}
		p.dropped = 3
		if err := p.p.Publish(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all counts", p.arrived(s))
	})
}

// TestShares has servers come and go. While they stay, each key is one
// server's; nothing is lost or counted twice as they change.
func TestShares(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		p := newSource(m.publisher(t, m.addr), "a")
		defer p.p.Close()
		one := serve(t, m.consumer(t, m.addr))
		eventually(t, "all shards are the first's", assigned(one))
		p.publish(t, 10, 20)
		two := serve(t, m.consumer(t, m.addr))
		p.publish(t, 10, 20)
		eventually(t, "the shards are shared", assigned(one, two))
		if a, b := one.Stats().Shards, two.Stats().Shards; a != b {
			t.Errorf("servers have %d and %d shards", a, b)
		}
		eventually(t, "all counts", p.arrived(one, two))
		before, _ := one.snapshot()
		other, _ := two.snapshot()
		p.publish(t, 20, 50)
		eventually(t, "all counts", p.arrived(one, two))
		ones, _ := one.snapshot()
		twos, _ := two.snapshot()
		for key := range p.counts {
			if ones[key] > before[key] && twos[key] > other[key] {
				t.Errorf("key %s was counted by both", key)
			}
		}
		if err := one.end(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		eventually(t, "all shards are the second's", assigned(two))
		p.publish(t, 10, 20)
		eventually(t, "all counts", p.arrived(one, two))
		for _, s := range []*server{one, two} {
			if stats := s.Stats(); stats.Lost != 0 {
				t.Errorf("got %+v, want nothing lost", stats)
			}
		}
	})
}

// TestFails has a server fail at a report: Consume returns that error, and
// another server receives the report.
func TestFails(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		p := newSource(m.publisher(t, m.addr), "a")
		defer p.p.Close()
		p.publish(t, 10, 20)
		broken := m.consumer(t, m.addr)
		failed, left := errors.New("no more"), 7
		bad := &server{counts: make(map[string]int)}
		err := broken.Consume(t.Context(), func(r wire.Report) error {
			if left--; left < 0 {
				return failed
			}
			return bad.receive(r)
		})
		if !errors.Is(err, failed) {
			t.Fatalf("Consume returned %v, want what the function did", err)
		}
		good := serve(t, m.consumer(t, m.addr))
		eventually(t, "all counts", p.arrived(bad, good))
		if stats := good.Stats(); stats.Lost != 0 {
			t.Errorf("got %+v, want nothing lost", stats)
		}
	})
}

// TestPartition cuts a server off. Another takes over; what the one had
// received and not confirmed is counted twice, at most, and nothing is lost.
func TestPartition(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		if m.direct {
			t.Skip("clients go past a proxy")
		}
		p := newSource(m.publisher(t, m.addr), "a")
		defer p.p.Close()
		proxy := testserver.NewProxy(t, m.addr)
		far := serve(t, m.consumer(t, proxy.Addr))
		eventually(t, "all shards are the first's", assigned(far))
		p.publish(t, 10, 20)
		eventually(t, "all counts", p.arrived(far))
		proxy.Partition()
		near := serve(t, m.consumer(t, m.addr))
		p.publish(t, 10, 20)
		eventually(t, "all shards are the second's", func() bool { return near.Stats().Shards == shards })
		all := func() bool {
			counts, dropped := total(far, near)
			for key, n := range p.counts {
				if counts[key] < n {
					return false
				}
			}
			return dropped >= p.dropped
		}
		eventually(t, "all counts", all)
		proxy.Heal()
		eventually(t, "the shards are shared", assigned(far, near))
		p.publish(t, 10, 20)
		eventually(t, "all counts", all)
		_, dropped := total(far, near)
		t.Logf("dropped: %d, counted as %d", p.dropped, dropped)
		for _, s := range []*server{far, near} {
			if stats := s.Stats(); stats.Lost != stats.Late {
				t.Errorf("got %+v, want nothing lost", stats)
			}
		}
	})
}

// TestLost removes reports while no server is there: those that come next
// count them, though they are new.
func TestLost(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		p := newSource(m.publisher(t, m.addr), "a")
		defer p.p.Close()
		first := serve(t, m.consumer(t, m.addr))
		p.publish(t, 20, 1)
		eventually(t, "all counts", p.arrived(first))
		first.end()
		p.publish(t, 50, 1)
		m.trim(t)
		second := serve(t, m.consumer(t, m.addr))
		p.publish(t, 30, 1)
		eventually(t, "all reports, or counted as lost", func() bool {
			stats := second.Stats()
			return first.parts+int(stats.Reports+stats.Lost) == p.parts
		})
		// One is left in each shard that had any.
		if lost := second.Stats().Lost; lost < 50-shards || lost > 49 {
			t.Errorf("%d reports counted as lost, want 50 less those that trimming left", lost)
		}
	})
}

// TestBacklog publishes much more than is kept while no server is there.
func TestBacklog(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		if !m.trims {
			t.Skip("keeps all")
		}
		p := newSource(m.publisher(t, m.addr), "a")
		defer p.p.Close()
		p.publish(t, shards*maxLen*4, 1)
		s := serve(t, m.consumer(t, m.addr))
		p.publish(t, 100, 1)
		seen := func() int { s.mu.Lock(); defer s.mu.Unlock(); return s.parts }
		eventually(t, "what was kept", func() bool { return seen() >= shards*maxLen })
		if got := seen(); got > 3*shards*maxLen {
			t.Errorf("got %d reports, though about %d are kept", got, shards*maxLen)
		}
	})
}

// TestRestart kills the server, which comes back empty: what it had is counted
// as lost, and reports come again.
func TestRestart(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		if m.restart == nil {
			t.Skip("cannot be restarted")
		}
		p := newSource(m.publisher(t, m.addr), "a")
		defer p.p.Close()
		s := serve(t, m.consumer(t, m.addr))
		p.publish(t, 100, 1)
		eventually(t, "all counts", p.arrived(s))
		s.mu.Lock() // receives no more
		p.publish(t, 100, 1)
		m.restart()
		s.mu.Unlock()
		p.publish(t, 200, 1)
		eventually(t, "all reports, or counted as lost", func() bool {
			stats := s.Stats()
			return int(stats.Reports+stats.Lost) == p.parts
		})
		eventually(t, "all shards", assigned(s))
		if stats := s.Stats(); stats.Lost == 0 {
			t.Errorf("got %+v, want losses", stats)
		}
		t.Logf("%+v", s.Stats())
	})
}

func TestMalformed(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		p := newSource(m.publisher(t, m.addr), "a")
		defer p.p.Close()
		s := serve(t, m.consumer(t, m.addr))
		p.publish(t, 5, 20)
		for _, data := range []string{"", "R", "R\x02later", "I\x01\x01a\x01n\x01\x00\x00"} {
			m.raw(t, 3, []byte(data))
		}
		p.publish(t, 5, 20)
		eventually(t, "all counts", p.arrived(s))
		eventually(t, "4 malformed", func() bool { return s.Stats().Malformed == 4 })
		if stats := s.Stats(); stats.Lost != 0 {
			t.Errorf("got %+v, want nothing lost", stats)
		}
	})
}

func TestUnreachable(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		t.Parallel() // it waits, most of the time
		nowhere := testserver.FreeAddr(t)
		p := m.publisher(t, nowhere)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := p.Publish(ctx, wire.Report{App: "shop", Node: "n", Counts: []wire.Count{{Key: "k", N: 1}}}); err == nil {
			t.Error("Publish: no error")
		}
		s := serve(t, m.consumer(t, nowhere))
		eventually(t, "failures", func() bool { return s.Stats().Failures > 0 })
		if err := s.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Consume returned %v, want context.Canceled", err)
		}
		p.Close()
	})
}

func TestMisuse(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		p := m.publisher(t, m.addr)
		for want, r := range map[string]wire.Report{
			"App":  {Node: "n", Dropped: 1},
			"Node": {App: "a", Dropped: 1},
		} {
			if err := p.Publish(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Publish without %s: got error %v", want, err)
			}
		}
		for range 2 {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := p.Publish(t.Context(), wire.Report{App: "a", Node: "n", Dropped: 1}); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Publish after Close: got error %v, want ErrClosed", err)
		}
		s := serve(t, m.consumer(t, m.addr))
		eventually(t, "shards", assigned(s))
		if err := s.Consume(t.Context(), s.receive); !errors.Is(err, transport.ErrBusy) {
			t.Errorf("second Consume: got error %v, want ErrBusy", err)
		}
		s.end()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Consume(ctx, s.receive); !errors.Is(err, context.Canceled) {
			t.Errorf("Consume with a context that has ended: got error %v", err)
		}
	})
}

func TestOptions(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	for want, o := range map[string]redisstream.Options{
		"redisstream: Client = nil":                      {},
		"redisstream: Shards = -1: must be 1 to 1024":    {Client: client, Shards: -1},
		"redisstream: Shards = 1025: must be 1 to 1024":  {Client: client, Shards: 1025},
		"redisstream: MaxLen = -1":                       {Client: client, MaxLen: -1},
		"redisstream: Batch = 10001: must be 1 to 10000": {Client: client, Batch: 10001},
		"redisstream: MaxPublishers = -1":                {Client: client, MaxPublishers: -1},
		"redisstream: Lease = 1ns: must be 100ms to 1h":  {Client: client, Lease: 1},
	} {
		_, err := redisstream.NewPublisher(o)
		mentions(t, err, want)
		_, err = redisstream.NewConsumer(o)
		mentions(t, err, want)
	}
	for want, o := range map[string]kafka.Options{
		"kafka: Seeds = []":                {},
		"kafka: Delivery = 1ns: must be 1": {Seeds: []string{"a:1"}, Delivery: 1},
		"kafka: Session = -1ns: must be 1": {Seeds: []string{"a:1"}, Session: -1},
	} {
		_, err := kafka.NewPublisher(o)
		mentions(t, err, want)
		_, err = kafka.NewConsumer(o)
		mentions(t, err, want)
	}
}

func mentions(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
}

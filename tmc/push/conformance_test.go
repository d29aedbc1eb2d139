package push_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
	"github.com/heavykeeper-go/heavykeeper/tmc/push"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/etcd"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/redispubsub"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// channel is what the implementations have beside [wire.Channel].
type channel interface {
	wire.Channel
	Bound() time.Duration
	Stats() push.Stats
}

// medium is what an implementation runs on.
type medium struct {
	dial    func(t *testing.T, addr string) channel // another channel, by way of an address
	addr    string
	restart func()                          // kills the server and starts it again
	raw     func(t *testing.T, data []byte) // sends application "shop" something

	// overtakes says that answers may overtake messages, which Redis and etcd
	// promise they do not. Package miniredis delivers messages from a goroutine
	// of their own.
	overtakes bool

	// direct says that clients cannot go by way of a proxy: the server tells
	// them its own address.
	direct bool
}

const (
	ping    = 50 * time.Millisecond
	timeout = 150 * time.Millisecond
)

var quiet = slog.New(slog.DiscardHandler)

// media are the implementations on what they run on. All tests below hold for
// each.
var media = map[string]func(t *testing.T) medium{
	"redispubsub on miniredis": func(t *testing.T) medium {
		s := miniredis.RunT(t)
		m := redisMedium(s.Addr(), func() {
			s.Close()
			s.FlushAll()
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
		})
		m.overtakes = true
		return m
	},
	"redispubsub on redis-server": func(t *testing.T) medium {
		s := testserver.Redis(t)
		return redisMedium(s.Addr, func() { s.Kill(); s.Start() })
	},
	"redispubsub on a cluster": func(t *testing.T) medium {
		s := testserver.RedisCluster(t)
		m := redisMedium(s.Addr, func() { s.Kill(); s.Start() })
		m.direct = true
		m.dial = func(t *testing.T, addr string) channel {
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, ContextTimeoutEnabled: true})
			t.Cleanup(func() { c.Close() })
			return open(t, c)
		}
		return m
	},
	"etcd": func(t *testing.T) medium {
		s := testserver.Etcd(t)
		client := func(t *testing.T, addr string) *clientv3.Client {
			client, err := etcd.Dial("http://" + addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			return client
		}
		return medium{
			addr:    s.Addr,
			restart: func() { s.Kill(); s.Start() },
			dial: func(t *testing.T, addr string) channel {
				c, err := etcd.New(etcd.Options{Client: client(t, addr), Ping: ping, Timeout: timeout, Logger: quiet})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				return c
			},
			raw: func(t *testing.T, data []byte) {
				if _, err := client(t, s.Addr).Put(t.Context(), "/tmc/shop/written", string(data)); err != nil {
					t.Fatal(err)
				}
			},
		}
	},
}

// open returns a channel on Redis.
func open(t *testing.T, client redis.UniversalClient) channel {
	c, err := redispubsub.New(redispubsub.Options{Client: client, Ping: ping, Timeout: timeout, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func redisMedium(addr string, restart func()) medium {
	client := func(t *testing.T, addr string) *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
		t.Cleanup(func() { c.Close() })
		return c
	}
	return medium{
		addr:    addr,
		restart: restart,
		dial:    func(t *testing.T, addr string) channel { return open(t, client(t, addr)) },
		raw: func(t *testing.T, data []byte) {
			if err := client(t, addr).Publish(t.Context(), "tmc:{shop}:push", data).Err(); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func each(t *testing.T, test func(t *testing.T, m medium)) {
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range media {
			if !yield(name) {
				return
			}
		}
	}) {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && strings.HasSuffix(name, "cluster") {
				t.Skip("a cluster takes seconds to start")
			}
			test(t, media[name](t))
		})
	}
}

// record is what a subscription delivered, in order.
type record struct {
	t     *testing.T
	end   func() error // ends the subscription and returns what Subscribe did
	mu    sync.Mutex
	moved *sync.Cond
	log   []string
	fresh time.Time // latest
	calls int       // under way
	block time.Duration
}

// subscribe subscribes to an application until the test ends.
func subscribe(t *testing.T, c channel, app string) *record {
	r := &record{t: t}
	r.moved = sync.NewCond(&r.mu)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- c.Subscribe(ctx, app, wire.Handler{
			Hot:        func(s wire.HotSet) { r.add(fmt.Sprintf("hot %d %d", s.Version, len(s.Keys))) },
			Invalidate: func(n wire.Invalidation) { r.add(text(n)) },
			Up:         func(up bool) { r.add(fmt.Sprintf("up %v", up)) },
			Fresh: func(at time.Time) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.fresh = at
				r.moved.Broadcast()
			},
		})
	}()
	r.end = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { r.end() })
	return r
}

func text(n wire.Invalidation) string {
	if n.All {
		return "all"
	}
	return fmt.Sprintf("%s %d %v", n.Node, n.Seq, n.Keys)
}

func (r *record) add(line string) {
	r.mu.Lock()
	r.calls++
	if r.calls > 1 {
		r.t.Errorf("%s: called while another call was under way", line)
	}
	r.log = append(r.log, line)
	r.moved.Broadcast()
	block := r.block
	r.mu.Unlock()
	time.Sleep(block)
	r.mu.Lock()
	r.calls--
	r.mu.Unlock()
}

// wait waits until ok says so of the log.
func (r *record) wait(what string, ok func() bool) {
	r.t.Helper()
	timer := time.AfterFunc(20*time.Second, r.moved.Broadcast)
	defer timer.Stop()
	start := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !ok() {
		if time.Since(start) > 20*time.Second {
			r.t.Fatalf("no %s within 20 s: got %q", what, r.log)
		}
		r.moved.Wait()
	}
}

// line waits for a line after the first n, and returns how many lines there
// are then.
func (r *record) line(n int, want string) (after int) {
	r.t.Helper()
	r.wait(want, func() bool {
		i := slices.Index(r.log[n:], want)
		after = n + i + 1
		return i >= 0
	})
	return after
}

// lines waits until the log is want.
func (r *record) lines(want ...string) {
	r.t.Helper()
	r.wait(fmt.Sprintf("%q", want), func() bool { return slices.Equal(r.log, want) })
}

// freshen waits for a Fresh of after now.
func (r *record) freshen() {
	r.t.Helper()
	now := time.Now()
	r.wait("Fresh", func() bool { return r.fresh.After(now) })
}

func pushHot(t *testing.T, c channel, version uint64, keys int) {
	t.Helper()
	s := wire.HotSet{App: "shop", Version: version, At: time.Now(), Keys: make([]wire.HotKey, keys)}
	if err := c.PushHot(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func invalidate(t *testing.T, c channel, app string, seq uint64, keys ...string) {
	t.Helper()
	if err := c.Invalidate(t.Context(), wire.Invalidation{App: app, Node: "a", Seq: seq, Keys: keys}); err != nil {
		t.Fatal(err)
	}
}

func TestDelivers(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		a, b := m.dial(t, m.addr), m.dial(t, m.addr)
		early, other := subscribe(t, a, "shop"), subscribe(t, a, "other")
		early.lines("up true")
		other.lines("up true")
		pushHot(t, b, 7, 2)
		early.lines("up true", "hot 7 2")
		late := subscribe(t, b, "shop")
		late.lines("up true", "hot 7 2")
		for seq := range uint64(3) {
			invalidate(t, a, "shop", seq, "k\x00", fmt.Sprint(seq))
		}
		invalidate(t, b, "other", 9)
		other.lines("up true", "a 9 []")
		want := []string{"up true", "hot 7 2", "a 0 [k\x00 0]", "a 1 [k\x00 1]", "a 2 [k\x00 2]"}
		early.lines(want...)
		late.lines(want...)
		if err := early.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Subscribe returned %v when its context ended, want context.Canceled", err)
		}
		early.lines(append(want, "up false")...)
	})
}

// TestVersions pushes sets out of order: an older one must not replace a newer
// one, neither where it is stored nor at a subscriber.
func TestVersions(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		c := m.dial(t, m.addr)
		r := subscribe(t, c, "shop")
		r.lines("up true")
		const large = math.MaxUint64 - 1
		for i, version := range []uint64{0, 5, 4, 5, 9, 10, 9, large, large + 1, large} {
			pushHot(t, c, version, i)
		}
		want := []string{"up true", "hot 0 0", "hot 5 1", "hot 9 4", "hot 10 5"}
		want = append(want, fmt.Sprintf("hot %d 7", uint64(large)), fmt.Sprintf("hot %d 8", uint64(large+1)))
		invalidate(t, c, "shop", 1) // behind all sets
		r.lines(append(want, "a 1 []")...)
		subscribe(t, c, "shop").lines("up true", want[len(want)-1])
	})
}

// TestFresh checks, while invalidations come, that all that was sent before
// the time of a Fresh has been delivered when it is called.
func TestFresh(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		var mu sync.Mutex
		var sent []time.Time // by Seq, when Invalidate had returned
		received, calls := 0, 0
		handler := wire.Handler{
			Invalidate: func(n wire.Invalidation) {
				if n.Seq != uint64(received) {
					t.Errorf("got invalidation %d, want %d", n.Seq, received)
				}
				received++
			},
			Fresh: func(at time.Time) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				for seq := received; seq < len(sent); seq++ {
					if !m.overtakes && sent[seq].Before(at) {
						t.Errorf("invalidation %d was sent %v before the time of Fresh, and not delivered", seq, at.Sub(sent[seq]))
					}
				}
			},
		}
		a, b := m.dial(t, m.addr), m.dial(t, m.addr)
		up := make(chan bool, 8)
		handler.Up = func(is bool) { up <- is }
		go a.Subscribe(t.Context(), "shop", handler)
		<-up
		for start := time.Now(); time.Since(start) < 8*ping; {
			mu.Lock()
			seq := len(sent)
			mu.Unlock()
			invalidate(t, b, "shop", uint64(seq))
			mu.Lock()
			sent = append(sent, time.Now())
			mu.Unlock()
		}
		a.Close()
		mu.Lock()
		defer mu.Unlock()
		t.Logf("%d invalidations, %d times Fresh", len(sent), calls)
		if calls < 2 {
			t.Errorf("Fresh was called %d times, want several", calls)
		}
	})
}

// TestRestart kills the server: what was up goes down, and up again, and can be
// used again. What Redis had stored is gone; etcd's is not.
func TestRestart(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		c := m.dial(t, m.addr)
		r := subscribe(t, c, "shop")
		r.lines("up true")
		pushHot(t, c, 1, 1)
		r.lines("up true", "hot 1 1")
		m.restart()
		n := r.line(2, "up false")
		n = r.line(n, "up true")
		pushHot(t, c, 2, 2)
		n = r.line(n, "hot 2 2")
		invalidate(t, c, "shop", 3, "k")
		r.line(n, "a 3 [k]")
		if losses := c.Stats().Losses; losses == 0 {
			t.Error("Stats().Losses = 0 after a restart")
		}
	})
}

// TestPartition cuts a subscriber off without a word. It is told, and told of
// what was stored meanwhile when it is back.
func TestPartition(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		if m.direct {
			t.Skip("clients go past a proxy")
		}
		proxy := testserver.NewProxy(t, m.addr)
		near, far := m.dial(t, m.addr), m.dial(t, proxy.Addr)
		r := subscribe(t, far, "shop")
		r.lines("up true")
		r.freshen()
		for round := range uint64(2) {
			n := len(r.log)
			proxy.Partition()
			start := time.Now()
			pushHot(t, near, 2*round+1, 1)
			invalidate(t, near, "shop", round, "lost")
			n = r.line(n, "up false")
			t.Logf("down after %v, bound %v", time.Since(start), far.Bound())
			if r.fresh.After(start.Add(ping)) {
				t.Errorf("Fresh was told of %v after the partition began", r.fresh.Sub(start))
			}
			pushHot(t, near, 2*round+2, int(round))
			proxy.Heal()
			n = r.line(n, "up true")
			r.line(n, fmt.Sprintf("hot %d %d", 2*round+2, round))
			r.freshen()
		}
		for i, line := range r.log {
			if line == "up true" && i > 0 && r.log[i-1] != "up false" || i > 0 && line[0] != 'u' && r.log[i-1] == "up false" {
				t.Errorf("an event between down and up: %q", r.log)
			}
		}
	})
}

// TestSlow slows the server down to where it cannot answer in time, which is as
// if it were down, and to where it can.
func TestSlow(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		if m.direct {
			t.Skip("clients go past a proxy")
		}
		proxy := testserver.NewProxy(t, m.addr)
		c := m.dial(t, proxy.Addr)
		r := subscribe(t, c, "shop")
		r.lines("up true")
		proxy.Slow(timeout)
		n := r.line(1, "up false")
		proxy.Slow(timeout / 50)
		r.line(n, "up true")
		r.freshen()
	})
}

// TestBlocked has a handler that does not return in time: events wait for it,
// so they have not been delivered, and the channel is down.
func TestBlocked(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		c := m.dial(t, m.addr)
		r := subscribe(t, c, "shop")
		r.lines("up true")
		r.mu.Lock()
		r.block = 2 * (ping + timeout)
		r.mu.Unlock()
		invalidate(t, c, "shop", 1, "k")
		r.line(1, "a 1 [k]")
		r.mu.Lock()
		r.block = 0
		r.mu.Unlock()
		invalidate(t, c, "shop", 2, "k")
		n := r.line(1, "up false")
		r.line(n, "up true")
	})
}

// TestMalformed sends what is no message, or one of another application: it may
// have been an invalidation, so all is invalidated.
func TestMalformed(t *testing.T) {
	other, err := (&wire.Invalidation{App: "other", Node: "n"}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, m medium) {
		c := m.dial(t, m.addr)
		r := subscribe(t, c, "shop")
		r.lines("up true")
		for _, data := range []string{"", "I", "I\x02later", "H\x01", "R\x01\x01a\x01n\x00\x00\x00\x00", string(other)} {
			m.raw(t, []byte(data))
		}
		r.lines("up true", "all", "all", "all", "all", "all", "all")
		if got := c.Stats().Malformed; got != 6 {
			t.Errorf("Stats().Malformed = %d, want 6", got)
		}
	})
}

func TestRefuses(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		c := m.dial(t, m.addr)
		if err := c.Subscribe(t.Context(), "a/b", wire.Handler{}); err == nil {
			t.Error("Subscribe to a/b: no error")
		}
		if err := c.PushHot(t.Context(), wire.HotSet{}); err == nil {
			t.Error("PushHot without an application: no error")
		}
		if err := c.Invalidate(t.Context(), wire.Invalidation{App: "shop"}); err == nil {
			t.Error("Invalidate without a node: no error")
		}
	})
}

// TestUnreachable uses a channel whose server is not there: calls fail, and a
// subscription waits.
func TestUnreachable(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		c := m.dial(t, testserver.FreeAddr(t))
		r := subscribe(t, c, "shop")
		ctx, cancel := context.WithTimeout(t.Context(), 4*timeout)
		defer cancel()
		if err := c.Invalidate(ctx, wire.Invalidation{App: "shop", Node: "n"}); err == nil {
			t.Error("Invalidate: no error")
		}
		if err := c.PushHot(ctx, wire.HotSet{App: "shop"}); err == nil {
			t.Error("PushHot: no error")
		}
		if err := r.end(); !errors.Is(err, context.Canceled) || len(r.log) > 0 {
			t.Errorf("Subscribe: got error %v and %q, want context.Canceled and no calls", err, r.log)
		}
	})
}

func TestClose(t *testing.T) {
	each(t, func(t *testing.T, m medium) {
		c := m.dial(t, m.addr)
		done := make(chan error, 1)
		up := make(chan bool, 2)
		go func() {
			done <- c.Subscribe(t.Context(), "shop", wire.Handler{Up: func(is bool) { up <- is }})
		}()
		if !<-up {
			t.Error("got Up(false) first")
		}
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := <-done; !errors.Is(err, push.ErrClosed) || <-up {
			t.Errorf("Subscribe: got error %v, want ErrClosed after Up(false)", err)
		}
		for what, err := range map[string]error{
			"Subscribe":  c.Subscribe(t.Context(), "shop", wire.Handler{}),
			"PushHot":    c.PushHot(t.Context(), wire.HotSet{App: "shop"}),
			"Invalidate": c.Invalidate(t.Context(), wire.Invalidation{App: "shop", Node: "n"}),
		} {
			if !errors.Is(err, push.ErrClosed) {
				t.Errorf("%s after Close: got error %v, want ErrClosed", what, err)
			}
		}
	})
}

func TestOptions(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	remote, err := etcd.Dial("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	for _, test := range []struct {
		redis redispubsub.Options
		etcd  etcd.Options
		want  string
	}{
		{redispubsub.Options{}, etcd.Options{}, "Client = nil: is required"},
		{redispubsub.Options{Client: client, Ping: -1}, etcd.Options{Client: remote, Ping: -1}, "Ping = -1ns: must be 1ms to 1h0m0s"},
		{redispubsub.Options{Client: client, Timeout: 1}, etcd.Options{Client: remote, Timeout: 1}, "Timeout = 1ns: must be 1ms to 1h0m0s"},
		{redispubsub.Options{Client: client, Retain: 1}, etcd.Options{Client: remote, Retain: 1}, "Retain = 1ns: must be "},
		{redispubsub.Options{Client: client, MinBackoff: -1}, etcd.Options{Client: remote, MinBackoff: -1}, "MinBackoff = -1ns"},
		{redispubsub.Options{Client: client, MaxBackoff: math.MaxInt64}, etcd.Options{Client: remote, MaxBackoff: math.MaxInt64}, "MaxBackoff = "},
	} {
		_, err := redispubsub.New(test.redis)
		mentions(t, err, "redispubsub: "+test.want)
		_, err = etcd.New(test.etcd)
		mentions(t, err, "etcd: "+test.want)
	}
}

func mentions(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
		t.Errorf("got error %v, want %q", err, want)
	}
}

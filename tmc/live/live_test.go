package live_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/live/etcdkey"
	"github.com/heavykeeper-go/heavykeeper/tmc/live/rediskey"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/etcd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const slots = 10

func with(change func(*live.Config)) live.Config {
	c := live.Default()
	change(&c)
	return c
}

// good are documents and what they say.
var good = map[string]live.Config{
	`{}`:                     live.Default(),
	`null`:                   live.Default(),
	` {"enabled" : false} `:  with(func(c *live.Config) { c.Enabled = false }),
	`{"threshold":5}`:        with(func(c *live.Config) { c.Threshold, c.Rate = 5, 0 }),
	`{"share":0.5,"rate":7}`: with(func(c *live.Config) { c.Share, c.Rate = 0.5, 7 }),
	`{"topN":10000,"leave":1,"minStay":"1m","enterAfter":3,"certain":true}`: with(func(c *live.Config) {
		c.TopN, c.Leave, c.MinStay, c.EnterAfter, c.Certain = 10000, 1, live.Duration(time.Minute), 3, true
	}),
	`{"cache":{"ttl":"1.5s"}}`: with(func(c *live.Config) { c.Cache.TTL = live.Duration(1500 * time.Millisecond) }),
	`{"rules":[{"action":"deny","match":"prefix","pattern":"s:"},{"name":"m","action":"allow","match":"exact","pattern":"menu","ttl":"1m"},{"action":"detect","match":"glob","pattern":"*","rate":1,"window":9}]}`: with(func(c *live.Config) {
		c.Rules = []live.Rule{
			{Action: "deny", Match: "prefix", Pattern: "s:"},
			{Name: "m", Action: "allow", Match: "exact", Pattern: "menu", TTL: live.Duration(time.Minute)},
			{Action: "detect", Match: "glob", Pattern: "*", Rate: 1, Window: 9},
		}
	}),
}

func TestParse(t *testing.T) {
	for document, want := range good {
		got, err := live.Parse([]byte(document), live.Default(), slots)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v and error %v, want %+v", document, got, err, want)
		}
	}
	base := with(func(c *live.Config) { c.Rules = []live.Rule{{Action: "deny", Match: "exact", Pattern: "x"}} })
	for document, rules := range map[string]int{`{}`: 1, `{"rules":null}`: 1, `{"rules":[]}`: 0} {
		got, err := live.Parse([]byte(document), base, slots)
		if err != nil || len(got.Rules) != rules || len(base.Rules) != 1 {
			t.Errorf("%s: got %v and error %v, want %d rules", document, got.Rules, err, rules)
		}
	}
}

// bad are documents and parts of what is said of them.
var bad = map[string]string{
	``:                        "unexpected end of JSON",
	`[]`:                      "cannot unmarshal array",
	`{} {}`:                   "after top-level value",
	`{"treshold":5}`:          `unknown field "treshold"`,
	`{"cache":{"size":1}}`:    `unknown field "size"`,
	`{"rate":"1"}`:            "cannot unmarshal string",
	`{"rate":-1}`:             "Rate = -1",
	`{"rate":1e999}`:          "1e999",
	`{"threshold":-1}`:        "cannot unmarshal number -1",
	`{"threshold":0}`:         "one of them must be set",
	`{"share":1.5}`:           "Share = 1.5",
	`{"topN":0}`:              "topN = 0: must be 1 to 10000",
	`{"topN":10001}`:          "topN = 10001",
	`{"leave":0}`:             "leave = 0: must be more than 0",
	`{"leave":-0.1}`:          "Leave = -0.1",
	`{"minStay":"1"}`:         "missing unit",
	`{"minStay":"-1s"}`:       "MinStay = -1s",
	`{"minStay":5}`:           "number",
	`{"enterAfter":0}`:        "enterAfter = 0: must be positive",
	`{"enterAfter":-1}`:       "EnterAfter = -1",
	`{"cache":{"bytes":1}}`:   "cache.bytes = 1: must be at least 65536",
	`{"cache":{"ttl":"0"}}`:   "cache.ttl = 0s",
	`{"cache":{"ttl":"25h"}}`: "cache.ttl = 25h0m0s",
	`{"rules":[{"action":"Deny","match":"exact","pattern":"x"}]}`:                                    `rules[0] "": action = "Deny"`,
	`{"rules":[{"name":"n","action":"deny","match":"regex","pattern":"x"}]}`:                         `rules[0] "n": match = "regex"`,
	`{"rules":[{"name":"n","action":"deny","match":"regexp","pattern":"("}]}`:                        "n",
	`{"rules":[{"name":"n","action":"deny","match":"prefix"}]}`:                                      "Pattern",
	`{"rules":[{"name":"n","action":"detect","match":"exact","pattern":"x","rate":1,"window":10}]}`:  "Window = 10",
	`{"rules":[` + strings.Repeat(`{"action":"deny","match":"exact","pattern":"x"},`, 1000) + `{}]}`: "the number of rules = 1001",
	`{"enabled":` + strings.Repeat(" ", live.MaxSize) + `false}`:                                     "must have at most",
}

func TestParseRefuses(t *testing.T) {
	for document, want := range bad {
		got, err := live.Parse([]byte(document), live.Default(), slots)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: got error %v, want %q", document, err, want)
		}
		if !reflect.DeepEqual(got, live.Default()) {
			t.Errorf("%.100s: got %+v with an error, want the base", document, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for document := range good {
		f.Add([]byte(document))
	}
	for document := range bad {
		if len(document) < 1000 {
			f.Add([]byte(document))
		}
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		c, err := live.Parse(document, live.Default(), slots)
		if err != nil {
			if !reflect.DeepEqual(c, live.Default()) {
				t.Fatalf("failed with %v, and got %+v", err, c)
			}
			return
		}
		if err := c.Validate(slots); err != nil {
			t.Fatalf("parsed what is not valid: %v", err)
		}
		if c.TopN < 1 || c.TopN > live.MaxTopN || c.Threshold == 0 && !(c.Rate > 0) && !(c.Share > 0) || math.IsInf(c.Rate, 0) {
			t.Fatalf("parsed %+v", c)
		}
	})
}

// store is where documents are, and how they get there.
type store struct {
	source func(t *testing.T, addr string) live.Source
	addr   string
	put    func(document string)
	remove func()
}

var stores = map[string]func(t *testing.T) store{
	"redis key on miniredis":    func(t *testing.T) store { return redisStore(t, miniredis.RunT(t).Addr()) },
	"redis key on redis-server": func(t *testing.T) store { return redisStore(t, testserver.Redis(t).Addr) },
	"etcd": func(t *testing.T) store {
		addr := testserver.Etcd(t).Addr
		dial := func(t *testing.T, addr string) etcdkey.Source {
			client, err := etcd.Dial("http://" + addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close() })
			return etcdkey.Source{Client: client}
		}
		s := dial(t, addr)
		return store{
			addr:   addr,
			source: func(t *testing.T, addr string) live.Source { return dial(t, addr) },
			put: func(document string) {
				if _, err := s.Client.Put(t.Context(), s.Key("shop"), document); err != nil {
					t.Fatal(err)
				}
			},
			remove: func() {
				if _, err := s.Client.Delete(t.Context(), s.Key("shop")); err != nil {
					t.Fatal(err)
				}
			},
		}
	},
}

func redisStore(t *testing.T, addr string) store {
	dial := func(t *testing.T, addr string) rediskey.Source {
		client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: 200 * time.Millisecond})
		t.Cleanup(func() { client.Close() })
		return rediskey.Source{Client: client, Interval: 20 * time.Millisecond}
	}
	s := dial(t, addr)
	return store{
		addr:   addr,
		source: func(t *testing.T, addr string) live.Source { return dial(t, addr) },
		put: func(document string) {
			if err := s.Client.Set(t.Context(), s.Key("shop"), document, 0).Err(); err != nil {
				t.Fatal(err)
			}
		},
		remove: func() {
			if err := s.Client.Del(t.Context(), s.Key("shop")).Err(); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// TestFollower changes a document, breaks it, removes it, and cuts the store
// off: the last good configuration holds all the time.
func TestFollower(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		t.Run(name, func(t *testing.T) {
			s := stores[name](t)
			proxy := testserver.NewProxy(t, s.addr)
			changes := make(chan live.Config, 100)
			f, err := live.NewFollower(live.FollowerConfig{
				Source: s.source(t, proxy.Addr),
				App:    "shop",
				Logger: slog.New(slog.DiscardHandler),
				Changed: func(c live.Config) error {
					if c.TopN == 13 {
						return errors.New("unlucky")
					}
					changes <- c
					return nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- f.Run(ctx) }()
			topN := func(want int) {
				t.Helper()
				eventually(t, fmt.Sprint("topN ", want), func() bool { return f.Config().TopN == want })
				if got := (<-changes).TopN; got != want {
					t.Errorf("Changed was told of topN %d, want %d", got, want)
				}
			}
			problem := func(want string) {
				t.Helper()
				eventually(t, want, func() bool { return strings.Contains(f.Status().Problem, want) })
			}

			eventually(t, "known that there is none", func() bool { return f.Status().Applied == 1 })
			s.put(`{"topN":7}`)
			topN(7)
			s.put(`{"topN":8,"rate":-1}`)
			problem("Rate = -1")
			s.put(`{"topN":13}`)
			problem("unlucky")
			s.put(``)
			problem("unexpected end")
			if got := f.Config().TopN; got != 7 {
				t.Errorf("topN = %d after bad documents, want 7", got)
			}
			s.put(`{"topN":9}`)
			topN(9)
			proxy.Partition()
			proxy.Reset()
			s.put(`{"topN":11}`)
			if _, isRedis := f.Status(), strings.HasPrefix(name, "redis"); isRedis {
				eventually(t, "unreachable", func() bool { return f.Status().Unreachable != "" })
			}
			if got := f.Config().TopN; got != 9 {
				t.Errorf("topN = %d with the store cut off, want 9", got)
			}
			proxy.Heal()
			topN(11)
			s.remove()
			topN(100)
			status := f.Status()
			if status.Problem != "" || status.Unreachable != "" || status.Document || status.Rejected != 3 {
				t.Errorf("got status %+v, want no document, none the worse, and 3 rejected", status)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run returned %v, want context.Canceled", err)
			}
		})
	}
}

// longest is a hook that knows the longest string that Redis answered.
type longest struct{ n int }

func (*longest) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*longest) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (l *longest) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if c, ok := cmd.(*redis.StringCmd); ok {
			l.n = max(l.n, len(c.Val()))
		}
		return err
	}
}

// TestHuge has a value of another kind in the key: of that, no more is fetched
// again and again than shows that it is no document.
func TestHuge(t *testing.T) {
	m := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer client.Close()
	hook := new(longest)
	client.AddHook(hook)
	source := rediskey.Source{Client: client, Interval: time.Millisecond}
	m.Set(source.Key("shop"), strings.Repeat(" ", 20*live.MaxSize))
	f, err := live.NewFollower(live.FollowerConfig{Source: source, App: "shop", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	eventually(t, "a problem", func() bool { return strings.Contains(f.Status().Problem, "must have at most 1048576") })
	cancel()
	<-done
	if hook.n > live.MaxSize+1 {
		t.Errorf("got %d bytes from Redis, want at most %d", hook.n, live.MaxSize+1)
	}
}

func TestFollowerRefuses(t *testing.T) {
	source := rediskey.Source{}
	wrong := live.Config{}
	for want, c := range map[string]live.FollowerConfig{
		"Source = nil": {App: "a"},
		`App = ""`:     {Source: source},
		"Slots = 1":    {Source: source, App: "a", Slots: 1},
		"topN = 0":     {Source: source, App: "a", Base: &wrong},
	} {
		if _, err := live.NewFollower(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	f, err := live.NewFollower(live.FollowerConfig{Source: source, App: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context()); err == nil {
		t.Error("Run without a client: no error")
	}
	if err := (etcdkey.Source{}).Watch(t.Context(), "a", nil, nil); err == nil {
		t.Error("Watch without a client: no error")
	}
}

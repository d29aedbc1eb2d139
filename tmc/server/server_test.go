package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/live/rediskey"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/redispubsub"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/redisstream"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// channel records the hot sets that are pushed, and fails if told to.
type channel struct {
	wire.Channel
	mu   sync.Mutex
	sets []wire.HotSet
	fail error
}

func (c *channel) PushHot(_ context.Context, s wire.HotSet) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	c.sets = append(c.sets, s)
	return nil
}

// keys returns the keys of the latest set, and how many sets there were.
func (c *channel) keys() (keys []string, sets int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sets) == 0 {
		return nil, 0
	}
	for _, k := range c.sets[len(c.sets)-1].Keys {
		keys = append(keys, k.Key)
	}
	return keys, len(c.sets)
}

// none is a consumer of nothing.
type none struct{}

func (none) Consume(ctx context.Context, _ func(wire.Report) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// cluster is a number of servers that share a Redis and a channel, at a time
// that the test sets.
type cluster struct {
	t       *testing.T
	redis   *miniredis.Miniredis
	client  *redis.Client
	channel *channel
	servers []*Server
	now     time.Time
}

const slot = 3 * time.Second

func newCluster(t *testing.T, n int, change func(*Config)) *cluster {
	t.Helper()
	c := &cluster{t: t, redis: miniredis.RunT(t), channel: &channel{}}
	c.client = redis.NewClient(&redis.Options{Addr: c.redis.Addr()})
	t.Cleanup(func() { c.client.Close() })
	// In the middle of a slot, so that a few seconds do not matter.
	c.now = time.Now()
	c.now = c.now.Add(c.now.Truncate(slot).Add(slot + slot/2).Sub(c.now.Round(0)))
	for i := range n {
		base := live.Default()
		base.Rate, base.Threshold = 0, 100
		config := Config{
			Consumer: none{}, Channel: c.channel, Redis: c.client,
			Name: fmt.Sprint("server-", i), Base: &base, Logger: slog.New(slog.DiscardHandler),
		}
		if change != nil {
			change(&config)
		}
		s, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		c.servers = append(c.servers, s)
	}
	c.pass(0)
	return c
}

// pass lets time pass.
func (c *cluster) pass(d time.Duration) {
	c.now = c.now.Add(d)
	c.redis.SetTime(c.now)
	c.redis.FastForward(d) // of keys' times to live
}

// observe has a server receive a report that is age old.
func (c *cluster) observe(server int, age time.Duration, key string, n uint32) {
	c.servers[server].observe(wire.Report{
		App: "shop", Node: "n", At: c.now.Add(-age).Round(0), Counts: []wire.Count{{Key: key, N: n}},
	}, c.now)
}

// scan lets a slot pass and has servers scan.
func (c *cluster) scan(servers ...int) {
	c.pass(slot)
	for _, i := range servers {
		c.servers[i].scan(c.t.Context(), c.now)
	}
}

func (c *cluster) wantHot(what string, want ...string) {
	c.t.Helper()
	if got, _ := c.channel.keys(); !slices.Equal(got, want) {
		c.t.Errorf("%s: got hot keys %q, want %q", what, got, want)
	}
}

func (c *cluster) wantPushes(what string, want int) {
	c.t.Helper()
	if _, got := c.channel.keys(); got != want {
		c.t.Errorf("%s: got %d pushes, want %d", what, got, want)
	}
}

func (c *cluster) heat() []redis.Z {
	c.t.Helper()
	heat, err := c.client.ZRevRangeWithScores(c.t.Context(), "tmc:{shop}:heat", 0, -1).Result()
	if err != nil {
		c.t.Fatal(err)
	}
	return heat
}

// TestCombines has two servers with different keys of an application push one
// hot set.
func TestCombines(t *testing.T) {
	c := newCluster(t, 2, nil)
	c.observe(0, 0, "a", 100)
	c.observe(0, 0, "cold", 99)
	c.observe(1, 0, "b", 300)
	c.observe(1, 0, "c", 200)
	c.scan(0)
	c.wantHot("the first server alone", "a")
	c.scan(1)
	c.wantHot("both", "b", "c", "a")
	c.wantPushes("both", 2)
	c.scan(0, 1)
	c.wantPushes("no change", 2)
	want := []redis.Z{{Score: 300, Member: "b"}, {Score: 200, Member: "c"}, {Score: 100, Member: "a"}, {Score: 99, Member: "cold"}}
	if got := c.heat(); !reflect.DeepEqual(got, want) {
		t.Errorf("got heat %v, want %v", got, want)
	}
	for range 10 {
		c.observe(0, 0, "a", 30)
		c.observe(1, 0, "c", 30)
		c.scan(0, 1)
	}
	c.wantHot("b has left", "a", "c")
	for i, s := range c.channel.sets {
		if i > 0 && s.Version <= c.channel.sets[i-1].Version {
			t.Errorf("version %d follows %d", s.Version, c.channel.sets[i-1].Version)
		}
	}
	k := c.channel.sets[1].Keys[0]
	if k.Count != 300 || k.Rate <= 0 {
		t.Errorf("got %+v, want its count and rate", k)
	}
}

// TestRefresh checks that an unchanged set is pushed again, by one server, once
// a while.
func TestRefresh(t *testing.T) {
	c := newCluster(t, 2, func(config *Config) { config.Refresh = 4 })
	for i := range 12 {
		c.observe(0, 0, "a", 200)
		c.observe(1, 0, "b", 100)
		c.scan(0, 1)
		if want := 2 + i/4; i > 0 {
			c.wantPushes(fmt.Sprint("scan ", i), want)
		}
	}
}

// TestTakeover ends a server: its keys stay hot while another that has its
// share now learns of them, and leave if they are hot no more.
func TestTakeover(t *testing.T) {
	c := newCluster(t, 2, nil)
	c.observe(0, 0, "stays", 200)
	c.observe(0, 0, "leaves", 150)
	c.observe(1, 0, "other", 1000)
	c.scan(0, 1)
	c.wantHot("before", "other", "stays", "leaves")
	for i := range 9 { // the first server is gone
		c.observe(1, 0, "stays", 20)
		c.observe(1, 0, "other", 100)
		c.scan(1)
		c.wantHot(fmt.Sprint("scan ", i, " after"), "other", "stays", "leaves")
	}
	c.observe(1, 0, "stays", 20)
	c.scan(1)
	c.wantHot("a window after", "other", "stays")
	if got := c.channel.sets[len(c.channel.sets)-1].Keys[1].Count; got != 180 {
		t.Errorf("got count %d of the key that stays, want that of 9 slots of the second server, 180", got)
	}
}

// TestMoves has a key that moves between servers: counts add.
func TestMoves(t *testing.T) {
	c := newCluster(t, 2, nil)
	c.observe(0, 0, "k", 100)
	c.observe(1, 0, "k", 150)
	c.scan(0, 1)
	c.wantHot("both", "k")
	if hot := c.servers[1].Stats().Apps[0].Hot; len(hot) != 1 || hot[0].Count != 250 {
		t.Errorf("got %v, want a count of 250", hot)
	}
	if got := c.heat(); len(got) != 1 || got[0].Score != 250 {
		t.Errorf("got heat %v, want 250", got)
	}
}

// TestLostRedis empties Redis: the next scan pushes again, with a version that
// is greater still.
func TestLostRedis(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.observe(0, 0, "k", 500)
	c.scan(0)
	c.scan(0)
	c.wantPushes("before", 1)
	c.redis.FlushAll()
	c.scan(0)
	c.wantPushes("after", 2)
	c.wantHot("after", "k")
	if a, b := c.channel.sets[0].Version, c.channel.sets[1].Version; b <= a {
		t.Errorf("version %d follows %d", b, a)
	}
}

// TestClockSetBack has Redis replaced by an empty one whose clock is an hour
// behind: versions grow, for all servers, and a part that seems to be of the
// future does not stay.
func TestClockSetBack(t *testing.T) {
	c := newCluster(t, 2, nil)
	c.observe(0, 0, "a", 500)
	c.observe(1, 0, "b", 500)
	c.scan(0, 1)
	parts, err := c.client.HGetAll(t.Context(), "tmc:{shop}:parts").Result()
	if err != nil || len(parts) != 2 {
		t.Fatalf("got %d parts, error %v; want 2", len(parts), err)
	}
	c.redis.FlushAll()
	c.redis.HSet("tmc:{shop}:parts", "gone", parts["server-1"])
	real := c.now
	c.now = c.now.Add(-time.Hour)
	c.pass(0)
	c.now = real
	before := c.channel.sets[len(c.channel.sets)-1].Version
	for range 2 { // the first that meets may have seen less than the other
		for _, s := range c.servers {
			s.scan(t.Context(), c.now)
		}
	}
	if after := c.channel.sets[len(c.channel.sets)-1].Version; after <= before {
		t.Errorf("version %d follows %d", after, before)
	}
	c.wantHot("after", "a", "b")
	if servers := c.servers[1].Stats().Apps[0].Servers; len(servers) != 2 {
		t.Errorf("got parts %+v, want those of two servers", servers)
	}
}

// TestAllowedElsewhere has more hot keys than TopN, one of them allowed by the
// server that does not see the others: the servers do not push in turns what
// each would have.
func TestAllowedElsewhere(t *testing.T) {
	c := newCluster(t, 2, nil)
	c.observe(0, 0, "a", 400)
	c.observe(1, 0, "menu", 5)
	c.configure(`{"topN":1,"threshold":100,"rules":[{"action":"allow","match":"prefix","pattern":"menu"}]}`)
	c.scan(0, 1)
	c.wantHot("both", "menu")
	_, before := c.channel.keys()
	for range 3 {
		c.observe(1, 0, "menu", 5)
		c.scan(0, 1)
	}
	c.wantPushes("no change", before)
}

// TestLargestPart encodes as many keys as can be hot, as long as reports can
// have them.
func TestLargestPart(t *testing.T) {
	var keys []wire.HotKey
	for i := range max(live.MaxTopN, maxHeat) {
		keys = append(keys, wire.HotKey{
			Key: fmt.Sprintf("%0*d", wire.MaxKey, i), Count: math.MaxUint64, Rate: math.MaxFloat64, TTL: math.MaxInt64,
		})
	}
	if _, err := (part{hot: keys[:live.MaxTopN], heat: keys[:maxHeat]}).encode(strings.Repeat("a", wire.MaxApp)); err != nil {
		t.Error(err)
	}
}

// TestFailures has pushes and meetings fail: they are tried again.
func TestFailures(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.observe(0, 0, "k", 500)
	c.channel.fail = errors.New("down")
	c.scan(0)
	c.scan(0)
	c.channel.fail = nil
	c.scan(0)
	c.wantHot("the channel is back", "k")
	c.redis.SetError("LOADING")
	c.observe(0, 0, "l", 400)
	c.scan(0)
	c.redis.SetError("")
	c.scan(0)
	c.wantHot("Redis is back", "k", "l")
	// A part that another version of the program wrote, say.
	c.redis.HSet("tmc:{shop}:parts", "odd", fmt.Sprint(c.now.UnixMilli(), " \x05garbage"))
	c.redis.HSet("tmc:{shop}:parts", "odder", "garbage")
	c.observe(0, 0, "m", 300)
	c.scan(0)
	c.wantHot("a malformed part", "k", "l", "m")
	a := c.servers[0].Stats().Apps[0]
	if a.PushFailures != 2 || a.Pushes != 5 || a.ExchangeFailures == 0 || a.Exchanges != 6 {
		t.Errorf("got %d of %d pushes and %d of %d exchanges failed, want 2 of 5, and some of 6", a.PushFailures, a.Pushes, a.ExchangeFailures, a.Exchanges)
	}
}

// TestTimes checks which slots reports count in, by the clock of their node.
func TestTimes(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.observe(0, 0, "now", 100)
	c.observe(0, 10*time.Second, "waited", 100)
	c.observe(0, 29*time.Second, "almost late", 100)
	c.observe(0, 31*time.Second, "late", 1000)
	c.observe(0, -time.Hour, "ahead", 100)
	c.servers[0].observe(wire.Report{App: "shop", Node: "n", Counts: []wire.Count{{Key: "no time", N: 1000}}}, c.now)
	c.servers[0].scan(t.Context(), c.now)
	got, _ := c.channel.keys()
	slices.Sort(got)
	if want := []string{"ahead", "now", "waited"}; !slices.Equal(slices.DeleteFunc(got, func(k string) bool { return k == "almost late" }), want) {
		t.Errorf("got hot keys %q, want %q", got, want)
	}
	if late := c.servers[0].Stats().Apps[0].Late; late != 2000 {
		t.Errorf("got %d late, want 2000", late)
	}
	for range 7 {
		c.scan(0)
	}
	c.wantHot("7 slots later", "ahead", "now")
	for range 3 {
		c.scan(0)
	}
	c.wantHot("a window later")
}

// TestHostileReports sends reports with as many distinct keys as they like, as
// long as they may be, of all times that can be encoded: memory does not grow
// with them, and what is hot is found all the same.
func TestHostileReports(t *testing.T) {
	c := newCluster(t, 1, nil)
	s := c.servers[0]
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	c.observe(0, 0, "hot", 100)
	long := strings.Repeat("k", wire.MaxKey-6)
	before, sent := heap(), 0
	for i := range 20 {
		r := wire.Report{App: "shop", Node: fmt.Sprint("n", i), At: c.now, Dropped: math.MaxUint64}
		switch i {
		case 1:
			r.At = time.Unix(math.MaxInt64, 999_999_999)
		case 2:
			r.At = time.Unix(math.MinInt64, 0)
		case 3:
			r.At = time.Time{}
		}
		for j := range 1000 {
			r.Counts = append(r.Counts, wire.Count{Key: long + strconv.Itoa(100_000+i*1000+j), N: uint32(j % 3)})
			sent += wire.MaxKey
		}
		r.Counts = append(r.Counts, wire.Count{Key: "most", N: math.MaxUint32})
		data, err := r.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got wire.Report
		if err := got.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		s.observe(got, c.now)
	}
	c.scan(0)
	c.wantHot("after all", "most", "hot")
	after := heap()
	t.Logf("%d MB of keys were sent, the heap grew by %.1f MB", sent>>20, float64(after-before)/(1<<20))
	if limit := before + uint64(sent)/2; after > limit {
		t.Errorf("got a heap of %d bytes, want at most %d", after, limit)
	}
}

func TestApplicationsAreBounded(t *testing.T) {
	c := newCluster(t, 1, func(config *Config) { config.MaxApps, config.Idle = 2, time.Minute })
	s := c.servers[0]
	for i := range 5 {
		s.observe(wire.Report{App: fmt.Sprint("app-", i), Node: "n", At: c.now, Counts: []wire.Count{{Key: "k", N: 10}}}, c.now)
	}
	stats := s.Stats()
	if len(stats.Apps) != 2 || stats.Refused != 3 || stats.RefusedOccurrences != 30 {
		t.Errorf("got %d applications, %d reports of %d refused, want 2, 3, 30", len(stats.Apps), stats.Refused, stats.RefusedOccurrences)
	}
	c.pass(50 * time.Second)
	s.observe(wire.Report{App: "app-1", Node: "n", At: c.now, Dropped: 7}, c.now)
	c.pass(20 * time.Second)
	s.scan(t.Context(), c.now)
	if apps := s.Stats().Apps; len(apps) != 1 || apps[0].Name != "app-1" || apps[0].Dropped != 7 {
		t.Errorf("got %+v, want app-1 only, the other being idle", apps)
	}
	s.observe(wire.Report{App: "app-4", Node: "n", At: c.now}, c.now)
	if got := len(s.Stats().Apps); got != 2 {
		t.Errorf("got %d applications, want 2: a place was free", got)
	}
}

// configure has all servers take on a configuration.
func (c *cluster) configure(document string) {
	c.t.Helper()
	for _, s := range c.servers {
		config, err := live.Parse([]byte(document), *s.config.Base, s.config.Slots)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, a := range s.applications() {
			if err := a.configure(config, s.config.Heat); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// TestConfigures changes the configuration while keys are hot: counts stay.
func TestConfigures(t *testing.T) {
	c := newCluster(t, 2, nil)
	const first, second = 0, 1
	c.observe(first, 0, "a", 400)
	c.observe(second, 0, "b", 300)
	c.observe(first, 0, "c", 200)
	c.observe(second, 0, "d", 50)
	for _, step := range []struct {
		document string
		want     []string
	}{
		{`{}`, []string{"a", "b", "c"}},
		{`{"threshold":260}`, []string{"a", "b"}},
		{`{"threshold":40}`, []string{"a", "b", "c", "d"}},
		{`{"topN":3,"threshold":40}`, []string{"a", "b", "c"}},
		{`{"topN":1}`, []string{"a"}},
		{`{"topN":1000}`, []string{"a", "b", "c"}}, // a larger source
		{`{"enabled":false}`, nil},
		{`{"leave":0.5}`, []string{"a", "b", "c"}},
		{`{"rules":[{"action":"deny","match":"exact","pattern":"a"},{"action":"allow","match":"exact","pattern":"menu","ttl":"1m"}]}`, []string{"b", "c", "menu"}},
		{`{"rules":[{"action":"deny","match":"exact","pattern":"a"},{"action":"allow","match":"exact","pattern":"menu","ttl":"1m"}],"topN":2}`, []string{"b", "menu"}},
		{`{"rules":[{"action":"detect","match":"prefix","pattern":"a","ttl":"9s"}]}`, []string{"a", "b", "c"}},
		{`{"share":0.3}`, []string{"a", "b"}}, // of 950, not of 600 and 350
		{`{"share":0.4,"threshold":100}`, []string{"a"}},
		{`{"rules":[{"action":"detect","match":"exact","pattern":"d","share":0.05}]}`, []string{"a", "b", "c", "d"}},
	} {
		c.configure(step.document)
		c.servers[first].scan(t.Context(), c.now)
		c.servers[second].scan(t.Context(), c.now)
		c.servers[first].scan(t.Context(), c.now) // has seen what the second found
		c.wantHot(step.document, step.want...)
	}
	ttls := map[string]time.Duration{}
	for _, s := range c.channel.sets {
		for _, k := range s.Keys {
			ttls[k.Key] = max(ttls[k.Key], k.TTL)
		}
	}
	if ttls["menu"] != time.Minute || ttls["a"] != 9*time.Second || ttls["b"] != 0 {
		t.Errorf("got times to live %v, want those of the rules", ttls)
	}
}

func TestUnion(t *testing.T) {
	k := func(key string, count uint64) wire.HotKey {
		return wire.HotKey{Key: key, Count: count, Rate: float64(count)}
	}
	parts := map[string]part{
		"x": {hot: []wire.HotKey{k("rule", 0), k("a", 10), k("b", 5)}, allowed: 1, heat: []wire.HotKey{k("a", 10), k("b", 5)}},
		"y": {hot: []wire.HotKey{k("c", 7), k("b", 6), k("rule", 0)}, heat: []wire.HotKey{k("d", math.MaxUint64), k("a", 1)}},
		"z": {},
	}
	for _, test := range []struct {
		topN, most int
		want       string
	}{
		{10, 10, "b:11 a:10 c:7 rule:0 / d:18446744073709551615 a:11 b:5"},
		{3, 1, "b:11 a:10 rule:0 / d:18446744073709551615"},
		{1, 2, "rule:0 / d:18446744073709551615 a:11"},
	} {
		hot, heat := union(parts, test.topN, test.most)
		var got []string
		for _, k := range hot {
			got = append(got, fmt.Sprintf("%s:%d", k.Key, k.Count))
		}
		got = append(got, "/")
		for _, k := range heat {
			got = append(got, fmt.Sprintf("%s:%d", k.Key, k.Count))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("topN %d, %d: got %q, want %q", test.topN, test.most, got, test.want)
		}
	}
	sum := map[string]wire.HotKey{}
	merge(sum, []wire.HotKey{k("a", math.MaxUint64), k("a", 2)})
	if sum["a"].Count != math.MaxUint64 {
		t.Errorf("counts wrapped to %d", sum["a"].Count)
	}
}

func TestDigest(t *testing.T) {
	base := []wire.HotKey{{Key: "a", Count: 2}, {Key: "b", Count: 1}}
	same := []wire.HotKey{{Key: "b", Count: 20, Rate: 3}, {Key: "a", Count: 10}}
	if digest(base) != digest(same) {
		t.Error("counts and ranks make a difference")
	}
	for _, other := range [][]wire.HotKey{nil, base[:1], {{Key: "ab"}, {Key: ""}}, {{Key: "a", TTL: 1}, {Key: "b"}}, {{Key: "a"}, {Key: "c"}}} {
		if digest(base) == digest(other) {
			t.Errorf("%v has the digest of %v", other, base)
		}
	}
}

func FuzzPart(f *testing.F) {
	p := part{at: time.Unix(1, 2).UTC(), allowed: 1, hot: []wire.HotKey{{Key: "a", Count: 1}}, heat: []wire.HotKey{{Key: "b", Count: 2}}}
	data, err := p.encode("shop")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-1])
	f.Add([]byte{0, 2, 0}) // more are allowed than there are
	f.Add([]byte{0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodePart(data)
		if err != nil {
			return
		}
		again, err := p.encode("shop")
		if err != nil {
			t.Fatal(err)
		}
		if q, err := decodePart(again); err != nil || !reflect.DeepEqual(p, q) {
			t.Fatalf("got %+v and error %v, want %+v", q, err, p)
		}
	})
}

func TestPages(t *testing.T) {
	c := newCluster(t, 2, nil)
	c.observe(0, 0, "<b>key", 400)
	c.observe(1, 0, "other", 300)
	c.scan(0, 1)
	h := c.servers[1].Handler()
	get := func(method, url string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, url, nil))
		return w.Code, w.Body.String()
	}
	for _, test := range []struct {
		method, url string
		code        int
		want        []string
	}{
		{"GET", "/", 200, []string{"server-0", "server-1", "&lt;b&gt;key", "other", `href="app?name=shop"`}},
		{"GET", "/app?name=shop", 200, []string{"other"}},
		{"GET", "/app?name=none", 404, nil},
		{"GET", "/elsewhere", 404, nil},
		{"POST", "/", 405, nil},
	} {
		code, body := get(test.method, test.url)
		if code != test.code {
			t.Errorf("%s %s: got %d, want %d", test.method, test.url, code, test.code)
		}
		for _, want := range test.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: has no %q", test.url, want)
			}
		}
		if strings.Contains(body, "<b>key") {
			t.Errorf("%s: has a key that is not escaped", test.url)
		}
	}
	var stats Stats
	if _, body := get("GET", "/?format=json"); json.Unmarshal([]byte(body), &stats) != nil || len(stats.Apps) != 1 || len(stats.Apps[0].Hot) != 2 {
		t.Errorf("JSON: got %s", body)
	}
}

func TestCollector(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.observe(0, 0, "k", 400)
	c.scan(0)
	collector := NewCollector(c.servers[0])
	problems, err := testutil.CollectAndLint(collector)
	if err != nil || len(problems) > 0 {
		t.Errorf("got problems %v and error %v", problems, err)
	}
	want := `
# HELP tmc_server_app_hot_keys Keys of the hot set of all servers.
# TYPE tmc_server_app_hot_keys gauge
tmc_server_app_hot_keys{app="shop"} 1
# HELP tmc_server_app_occurrences_total Reads that were counted.
# TYPE tmc_server_app_occurrences_total counter
tmc_server_app_occurrences_total{app="shop"} 400
# HELP tmc_server_scans_total Scans of all applications.
# TYPE tmc_server_scans_total counter
tmc_server_scans_total 1
`
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want),
		"tmc_server_app_hot_keys", "tmc_server_app_occurrences_total", "tmc_server_scans_total"); err != nil {
		t.Error(err)
	}
	if err := prometheus.NewRegistry().Register(collector); err != nil {
		t.Error(err)
	}
}

// TestMetrics gives each statistic a value of its own, and looks for it in the
// metric that should have it.
func TestMetrics(t *testing.T) {
	stats := Stats{
		Transport: transport.Stats{Reports: 1, Lost: 2, Late: 3, Repeated: 4, Malformed: 5, Failures: 6, Shards: 7},
		Refused:   8, RefusedOccurrences: 9, Scans: 10, LastScan: time.Unix(11, 0), ScanTime: 12 * time.Second,
		Apps: []AppStats{{
			Name: "shop", Reports: 13, Occurrences: 14, Late: 15, Dropped: 16,
			Detector: hotspot.Stats{Hot: 17, Hits: 18, Entered: 19, Left: 20, FlapsPrevented: 21},
			Hot:      make([]wire.HotKey, 22), Servers: make([]ServerPart, 23),
			Pushes: 24, PushFailures: 25, Exchanges: 26, ExchangeFailures: 27,
			Config: live.Config{Enabled: true}, ConfigStatus: live.Status{Applied: 28, Rejected: 29},
		}, {
			Name: "off", ConfigStatus: live.Status{Problem: "bad"},
		}, {
			Name: "far", ConfigStatus: live.Status{Unreachable: "down"},
		}},
	}
	want := map[string]float64{
		"reports_total": 1, "reports_lost_total": 2, "reports_late_total": 3, "reports_repeated_total": 4,
		"reports_malformed_total": 5, "transport_failures_total": 6, "shards": 7, "refused_reports_total": 8,
		"refused_occurrences_total": 9, "apps": 3, "scans_total": 10, "last_scan_timestamp_seconds": 11, "scan_seconds": 12,
		"shop app_reports_total": 13, "shop app_occurrences_total": 14, "shop app_late_occurrences_total": 15,
		"shop app_dropped_occurrences_total": 16, "shop app_own_hot_keys": 17, "shop app_hot_occurrences_total": 18,
		"shop app_entered_total": 19, "shop app_left_total": 20, "shop app_flaps_prevented_total": 21, "shop app_hot_keys": 22,
		"shop app_servers": 23, "shop app_pushes_total": 24, "shop app_push_failures_total": 25, "shop app_exchanges_total": 26,
		"shop app_exchange_failures_total": 27, "shop app_enabled": 1, "shop app_config_applied_total": 28,
		"shop app_config_rejected_total": 29, "shop app_config_problem": 0, "off app_config_problem": 1, "far app_config_problem": 1,
		"off app_enabled": 0,
	}
	collector := NewCollector(nil)
	ch := make(chan prometheus.Metric, 1000)
	collector.send(ch, stats)
	close(ch)
	got := map[string]float64{}
	for metric := range ch {
		var m dto.Metric
		if err := metric.Write(&m); err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(metric.Desc().String(), "tmc_server_")
		name, _, _ = strings.Cut(name, `"`)
		if len(m.Label) > 0 {
			name = m.Label[0].GetValue() + " " + name
		}
		got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		if _, ok := want[name]; !ok && !strings.HasPrefix(name, "off ") && !strings.HasPrefix(name, "far ") {
			t.Errorf("%s: got a metric that this test does not know", name)
		}
	}
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			t.Errorf("%s: got %v, want %v", name, v, value)
		}
	}
}

func TestConfig(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	ok := Config{Consumer: none{}, Channel: &channel{}, Redis: client, Name: "n"}
	bad := live.Config{}
	for want, change := range map[string]func(*Config){
		"Consumer = nil":               func(c *Config) { c.Consumer = nil },
		"Channel = nil":                func(c *Config) { c.Channel = nil },
		"Redis = nil":                  func(c *Config) { c.Redis = nil },
		`Name = ""`:                    func(c *Config) { c.Name = "" },
		"Slots = 1: must be 2 to 1000": func(c *Config) { c.Slots = 1 },
		"Slot = -1ns":                  func(c *Config) { c.Slot = -1 },
		"Heat = -1":                    func(c *Config) { c.Heat = -1 },
		"MaxApps = -1":                 func(c *Config) { c.MaxApps = -1 },
		"Idle = 29s: must be 30s":      func(c *Config) { c.Idle = 29 * time.Second },
		"Refresh = 10001":              func(c *Config) { c.Refresh = 10001 },
		"topN = 0":                     func(c *Config) { c.Base = &bad },
	} {
		c := ok
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	if _, err := New(ok); err != nil {
		t.Error(err)
	}
}

// TestRun runs two servers on the real transport and channel, with a live
// configuration, and ends them.
func TestRun(t *testing.T) {
	m := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer client.Close()
	logger := slog.New(slog.DiscardHandler)
	base := live.Default()
	base.Rate, base.Threshold = 0, 50
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 2)
	for i := range 2 {
		streams := redisstream.Options{Client: client, Shards: 4, Lease: 300 * time.Millisecond, Name: fmt.Sprint("server-", i), Logger: logger}
		consumer, err := redisstream.NewConsumer(streams)
		if err != nil {
			t.Fatal(err)
		}
		pubsub, err := redispubsub.New(redispubsub.Options{Client: client, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		defer pubsub.Close()
		s, err := New(Config{
			Consumer: consumer, Channel: pubsub, Redis: client, Name: consumer.Name(), Base: &base,
			Live:  rediskey.Source{Client: client, Interval: 10 * time.Millisecond},
			Slots: 10, Slot: 100 * time.Millisecond, Logger: logger,
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() { done <- s.Run(ctx) }()
	}
	publisher, err := redisstream.NewPublisher(redisstream.Options{Client: client, Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	pubsub, err := redispubsub.New(redispubsub.Options{Client: client, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer pubsub.Close()
	sets := make(chan wire.HotSet, 1000)
	go pubsub.Subscribe(ctx, "shop", wire.Handler{Hot: func(s wire.HotSet) { sets <- s }})

	until := func(what string, ok func(keys map[string]bool) bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
			r := wire.Report{App: "shop", Node: "n", At: time.Now()}
			for i := range 8 {
				r.Counts = append(r.Counts, wire.Count{Key: fmt.Sprint("k", i), N: 10})
			}
			if err := publisher.Publish(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			select {
			case s := <-sets:
				keys := map[string]bool{}
				for _, k := range s.Keys {
					keys[k.Key] = true
				}
				if ok(keys) {
					return
				}
			case <-time.After(20 * time.Millisecond):
			}
		}
		t.Fatalf("not within 20 s: %s", what)
	}
	until("all 8 keys are hot", func(keys map[string]bool) bool { return len(keys) == 8 })
	deny := `{"rules":[{"action":"deny","match":"exact","pattern":"k3"}]}`
	if err := client.Set(ctx, rediskey.Source{}.Key("shop"), deny, 0).Err(); err != nil {
		t.Fatal(err)
	}
	until("k3 is denied", func(keys map[string]bool) bool { return len(keys) == 7 && !keys["k3"] })
	if err := client.Set(ctx, rediskey.Source{}.Key("shop"), `{"enabled":false}`, 0).Err(); err != nil {
		t.Fatal(err)
	}
	until("all is off", func(keys map[string]bool) bool { return len(keys) == 0 })
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want context.Canceled", err)
		}
	}
}

// TestRunFails has the consumer fail for good.
func TestRunFails(t *testing.T) {
	c := newCluster(t, 1, func(config *Config) { config.Consumer = broken{} })
	if err := c.servers[0].Run(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("Run returned %v, want the consumer's error", err)
	}
	if err := c.servers[0].Run(t.Context()); err == nil {
		t.Error("second Run: no error")
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Consume(context.Context, func(wire.Report) error) error { return errBroken }

// BenchmarkObserve measures what a server does with a report of 100 keys.
func BenchmarkObserve(b *testing.B) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	s, err := New(Config{Consumer: none{}, Channel: &channel{}, Redis: client, Name: "n", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	r := wire.Report{App: "shop", Node: "n", At: now.Round(0)}
	for i := range 100 {
		r.Counts = append(r.Counts, wire.Count{Key: fmt.Sprint("item:", i*i), N: uint32(100 - i)})
	}
	s.observe(r, now)
	b.ReportAllocs()
	for b.Loop() {
		s.observe(r, now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/count")
}

package tmc

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
)

// attach returns a client of a new miniredis, with a Cache for which all keys
// are hot unless options say otherwise.
func attach(t *testing.T, options Options) (*redis.Client, *Cache, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	client, cache := attachTo(t, server.Addr(), options)
	return client, cache, server
}

func attachTo(t *testing.T, addr string, options Options) (*redis.Client, *Cache) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { client.Close() })
	if options.Channel == nil {
		options.Alone = true
	}
	if options.Hot.Rules == nil {
		options.Hot = allHot
	}
	options.Logger = slog.New(slog.DiscardHandler)
	cache, err := Attach(client, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	return client, cache
}

// got is what the caller sees of a command.
type got struct {
	Value, Err string
}

// see returns what the caller sees of a command.
func see(cmd redis.Cmder) got {
	var g got
	if err := cmd.Err(); err != nil {
		g.Err = err.Error()
	}
	value := reflect.ValueOf(cmd).MethodByName("Val").Call(nil)[0]
	g.Value = fmt.Sprintf("%#v", value.Interface())
	return g
}

// commandsFor draws a command, as a caller would make it.
func drawCommand(ctx context.Context, random *rand.Rand, more bool) func(redis.Cmdable) redis.Cmder {
	key := func() string { return fmt.Sprint("{k}", random.IntN(6)) }
	name := func() string { return fmt.Sprint("f", random.IntN(3)) }
	value := fmt.Sprint("v", random.IntN(1000))
	k, l, f := key(), key(), name()
	// Most are the reads that may be served.
	if x := random.IntN(9); x < 7 {
		return []func(redis.Cmdable) redis.Cmder{
			func(c redis.Cmdable) redis.Cmder { return c.Get(ctx, k) },
			func(c redis.Cmdable) redis.Cmder { return c.MGet(ctx, k, l, k) },
			func(c redis.Cmdable) redis.Cmder { return c.HGet(ctx, k, f) },
			func(c redis.Cmdable) redis.Cmder { return c.HGetAll(ctx, k) },
			func(c redis.Cmdable) redis.Cmder { return do(ctx, c, "GET", k) },
			func(c redis.Cmdable) redis.Cmder { return do(ctx, c, "HGET", []byte(k), f) },
			func(c redis.Cmdable) redis.Cmder { return do(ctx, c, "mget", k, l) },
		}[x]
	}
	list := []func(redis.Cmdable) redis.Cmder{
		func(c redis.Cmdable) redis.Cmder { return c.Set(ctx, k, value, 0) },
		func(c redis.Cmdable) redis.Cmder { return c.Set(ctx, k, value, 0) },
		func(c redis.Cmdable) redis.Cmder { return c.Set(ctx, k, value, time.Hour) },
		func(c redis.Cmdable) redis.Cmder { return c.MSet(ctx, k, value, l, "both") },
		func(c redis.Cmdable) redis.Cmder { return c.HSet(ctx, k, f, value) },
		func(c redis.Cmdable) redis.Cmder { return c.HSet(ctx, k, "f0", value, "f1", value) },
		func(c redis.Cmdable) redis.Cmder { return c.HDel(ctx, k, f) },
		func(c redis.Cmdable) redis.Cmder { return c.Del(ctx, k, l) },
		func(c redis.Cmdable) redis.Cmder { return c.Del(ctx, k) },
		func(c redis.Cmdable) redis.Cmder { return c.Rename(ctx, k, l) },
		func(c redis.Cmdable) redis.Cmder { return c.Copy(ctx, k, l, 0, true) },
		func(c redis.Cmdable) redis.Cmder { return c.Append(ctx, k, "+") },
		func(c redis.Cmdable) redis.Cmder { return c.Incr(ctx, k) },
		func(c redis.Cmdable) redis.Cmder { return c.GetDel(ctx, k) },
		func(c redis.Cmdable) redis.Cmder { return c.GetSet(ctx, k, value) },
		func(c redis.Cmdable) redis.Cmder { return c.SetRange(ctx, k, 1, "xx") },
		func(c redis.Cmdable) redis.Cmder { return c.Expire(ctx, k, time.Hour) },
		func(c redis.Cmdable) redis.Cmder { return c.Expire(ctx, k, -time.Second) },
		func(c redis.Cmdable) redis.Cmder { return c.LPush(ctx, k, value) },
		func(c redis.Cmdable) redis.Cmder { return c.LPop(ctx, k) },
		func(c redis.Cmdable) redis.Cmder { return c.SAdd(ctx, k, value) },
		func(c redis.Cmdable) redis.Cmder { return c.SUnionStore(ctx, k, l) },
		func(c redis.Cmdable) redis.Cmder {
			return c.Eval(ctx, "return redis.call('SET', KEYS[1], ARGV[1])", []string{k}, value)
		},
		func(c redis.Cmdable) redis.Cmder { return do(ctx, c, "SeT", k, 17) },
		func(c redis.Cmdable) redis.Cmder { return do(ctx, c, "get") },
		func(c redis.Cmdable) redis.Cmder { return c.Type(ctx, k) },
		func(c redis.Cmdable) redis.Cmder { return c.Exists(ctx, k, l) },
		func(c redis.Cmdable) redis.Cmder { return c.StrLen(ctx, k) },
	}
	if random.IntN(60) == 0 {
		return func(c redis.Cmdable) redis.Cmder { return c.FlushDB(ctx) }
	}
	if more && random.IntN(2) == 0 {
		lines := moreCommands
		line := lines[random.IntN(len(lines))]
		args := split(strings.NewReplacer("K", k, "L", l, "F", f, "V", value).Replace(line))
		return func(c redis.Cmdable) redis.Cmder { return do(ctx, c, args...) }
	}
	return list[random.IntN(len(list))]
}

// moreCommands are those that miniredis has not, or not in full. K and L stand
// for keys, F for a field and V for a value.
var moreCommands = strings.Split(`getex K ex 100
getex K persist
psetex K 100000 V
setnx K V
msetnx K V L V
incrbyfloat K 1.5
decrby K 3
setbit K 3 1
bitfield K set u8 0 65
bitop or K L K
pfadd K V
pfmerge K L
hincrby K F 2
hsetnx K F V
hmset K F V
renamenx K L
copy K L
move K 1
persist K
pexpire K 100000
expireat K 1
restore K 0 x
lmove K L left right
rpoplpush K L
blmove K L left right 0.01
blpop K L 0.01
lmpop 2 K L left
blmpop 0.01 1 K left
linsert K before V x
ltrim K 0 1
lset K 0 V
smove K L V
spop K
sinterstore K L K
zadd K 1 V
zincrby K 1 V
zpopmin K
zrangestore K L 0 -1
zunionstore K 2 K L
bzpopmin K 0.01
zmpop 1 K min
sort K by nosort store L
geoadd K 1 2 V
geosearchstore K L fromlonlat 1 2 byradius 10 km
xadd K 1-* F V
xtrim K maxlen 1
xgroup create K g 0 mkstream
xreadgroup group g c streams K 0
eval return(redis.call('DEL',KEYS[1],KEYS[2])) 2 K L
eval return(redis.call('HSET',KEYS[1],'f0','V')) 1 K
eval_ro return(redis.call('TYPE',KEYS[1])) 1 K
unlink K L
touch K
object encoding K
getdel K
swapdb 0 1
flushall`, "\n")

// do is Do, which is not in Cmdable.
func do(ctx context.Context, c redis.Cmdable, args ...any) redis.Cmder {
	switch c := c.(type) {
	case redis.Pipeliner:
		return c.Do(ctx, args...)
	case redis.UniversalClient:
		return c.Do(ctx, args...)
	case *redis.Conn:
		cmd := redis.NewCmd(ctx, args...)
		_ = c.Process(ctx, cmd)
		return cmd
	case *redis.Tx:
		cmd := redis.NewCmd(ctx, args...)
		_ = c.Process(ctx, cmd)
		return cmd
	}
	panic(fmt.Sprintf("%T", c))
}

// carryOut carries out commands in one of the ways that go-redis has, and
// returns what the caller sees.
func carryOut(ctx context.Context, client *redis.Client, way int, draw []func(redis.Cmdable) redis.Cmder) []got {
	var seen []got
	queue := func(p redis.Pipeliner) error {
		for _, f := range draw {
			f(p)
		}
		return nil
	}
	pipelined := func(cmds []redis.Cmder, err error) {
		for _, cmd := range cmds {
			seen = append(seen, see(cmd))
		}
		seen = append(seen, got{Err: fmt.Sprint(err)})
	}
	one := func(c redis.Cmdable) {
		for _, f := range draw {
			seen = append(seen, see(f(c)))
		}
	}
	switch way {
	case 0:
		pipelined(client.Pipelined(ctx, queue))
	case 1:
		pipelined(client.TxPipelined(ctx, queue))
	case 2:
		conn := client.Conn()
		defer conn.Close()
		one(conn)
		pipelined(conn.Pipelined(ctx, queue))
	case 3:
		err := client.Watch(ctx, func(tx *redis.Tx) error {
			one(tx)
			pipelined(tx.TxPipelined(ctx, queue))
			return nil
		}, "{k}0")
		seen = append(seen, got{Err: fmt.Sprint(err)})
	default:
		one(client)
	}
	return seen
}

// TestSameReplies carries out the same random commands on two servers, by a
// client that is attached and by one that is not. Nobody should see a
// difference.
func TestSameReplies(t *testing.T) {
	for _, options := range []Options{{}, {Absent: true}, {IgnoreExpiry: true}, {CacheBytes: 64 << 10, ValueBytes: 330}} {
		t.Run(fmt.Sprintf("absent=%t/expiry=%t/values=%d", options.Absent, !options.IgnoreExpiry, options.ValueBytes), func(t *testing.T) {
			plain := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
			defer plain.Close()
			attached, cache, _ := attach(t, options)
			compare(t, plain, attached, cache, false)
		})
	}
}

// TestSameRepliesOfRedis does so with Redis and with more commands.
func TestSameRepliesOfRedis(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip(err)
	}
	for _, absent := range []bool{false, true} {
		t.Run(fmt.Sprint("absent=", absent), func(t *testing.T) {
			attached, cache := attachTo(t, testserver.Redis(t).Addr, Options{Absent: absent})
			compare(t, testserver.Redis(t).Client(), attached, cache, true)
		})
	}
}

func compare(t *testing.T, plain, attached *redis.Client, cache *Cache, more bool) {
	ctx := t.Context()
	random := rand.New(rand.NewPCG(5, 6))
	rounds := 1200
	if testing.Short() {
		rounds = 300
	}
	for round := range rounds {
		draw := make([]func(redis.Cmdable) redis.Cmder, 1+random.IntN(4))
		for i := range draw {
			draw[i] = drawCommand(ctx, random, more)
		}
		way := random.IntN(10)
		want, got := carryOut(ctx, plain, way, draw), carryOut(ctx, attached, way, draw)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d, way %d: got\n%+v\nwant\n%+v", round, way, got, want)
		}
	}
	s := cache.Stats()
	t.Logf("%d reads, %d of them served locally", s.Reads, s.Hits)
	if s.Hits < s.Reads/20 {
		t.Errorf("%d of %d reads were served locally: the test tests little", s.Hits, s.Reads)
	}
}

// TestCopies changes what a caller can get hold of.
func TestCopies(t *testing.T) {
	client, _, _ := attach(t, Options{})
	ctx := t.Context()
	client.Set(ctx, "s", "value", 0)
	client.HSet(ctx, "h", "f", "value")
	for i := range 4 {
		if got, err := client.Get(ctx, "s").Bytes(); err != nil || string(got) != "value" {
			t.Fatalf("read %d: got %q, %v; want %q", i, got, err, "value")
		} else {
			copy(got, "XXXXX")
		}
		if got, err := client.HGet(ctx, "h", "f").Bytes(); err != nil || string(got) != "value" {
			t.Fatalf("read %d: got %q, %v; want %q", i, got, err, "value")
		} else {
			copy(got, "XXXXX")
		}
		got, err := client.HGetAll(ctx, "h").Result()
		if err != nil || !reflect.DeepEqual(got, map[string]string{"f": "value"}) {
			t.Fatalf("read %d: got %q, %v", i, got, err)
		}
		got["f"], got["g"] = "x", "y"
		values, err := client.MGet(ctx, "s", "s").Result()
		if err != nil || !reflect.DeepEqual(values, []any{"value", "value"}) {
			t.Fatalf("read %d: got %q, %v", i, values, err)
		}
		values[0] = "x"
	}
}

// scribble reads a text and writes over it, as a decoder may that works in place.
type scribble string

func (s *scribble) UnmarshalText(text []byte) error {
	*s = scribble(text)
	for i := range text {
		text[i] = 'X'
	}
	return nil
}

// TestScan has what a caller scans into write over the reply: go-redis passes it
// on without a copy.
func TestScan(t *testing.T) {
	client, _, _ := attach(t, Options{})
	ctx := t.Context()
	client.Set(ctx, "s", "value", 0)
	client.HSet(ctx, "h", "f", "value")
	var into struct {
		S scribble `redis:"s"`
		F scribble `redis:"f"`
	}
	for i := range 4 {
		for name, scan := range map[string]func() error{
			"HGETALL": func() error { return client.HGetAll(ctx, "h").Scan(&into) },
			"MGET":    func() error { return client.MGet(ctx, "s").Scan(&into) },
		} {
			into.S, into.F = "", ""
			if err := scan(); err != nil || into.S+into.F != "value" {
				t.Errorf("read %d, %s: got %q, %v; want %q", i, name, into.S+into.F, err, "value")
			}
		}
	}
}

// TestServedLocally tests which reads do not reach Redis any more.
func TestServedLocally(t *testing.T) {
	ctx := t.Context()
	for _, test := range []struct {
		name string
		read func(c *redis.Client) redis.Cmder
		want int // commands that Redis gets for the second read
	}{
		{"get", func(c *redis.Client) redis.Cmder { return c.Get(ctx, "s") }, 0},
		{"do get", func(c *redis.Client) redis.Cmder { return c.Do(ctx, "GET", "s") }, 0},
		{"mget", func(c *redis.Client) redis.Cmder { return c.MGet(ctx, "s", "t") }, 0},
		{"hget", func(c *redis.Client) redis.Cmder { return c.HGet(ctx, "h", "f") }, 0},
		{"hgetall", func(c *redis.Client) redis.Cmder { return c.HGetAll(ctx, "h") }, 0},
		{"hget after hgetall", func(c *redis.Client) redis.Cmder {
			c.HGetAll(ctx, "h")
			return c.HGet(ctx, "h", "g")
		}, 0},
		{"pipeline", func(c *redis.Client) redis.Cmder {
			cmds, _ := c.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.Get(ctx, "s")
				p.HGetAll(ctx, "h")
				return nil
			})
			return cmds[0]
		}, 0},
		{"pipeline with others", func(c *redis.Client) redis.Cmder {
			cmds, _ := c.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.Get(ctx, "s")
				p.StrLen(ctx, "s")
				p.HGetAll(ctx, "h")
				return nil
			})
			return cmds[0]
		}, 1},
		{"transaction", func(c *redis.Client) redis.Cmder {
			cmds, _ := c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, "s"); return nil })
			return cmds[0]
		}, 3},
		{"watch", func(c *redis.Client) (cmd redis.Cmder) {
			_ = c.Watch(ctx, func(tx *redis.Tx) error { cmd = tx.Get(ctx, "s"); return nil }, "s")
			return cmd
		}, 3},
		{"connection", func(c *redis.Client) redis.Cmder {
			conn := c.Conn()
			defer conn.Close()
			return conn.Get(ctx, "s")
		}, 1},
		{"expiring", func(c *redis.Client) redis.Cmder { return c.Get(ctx, "e") }, 0},
		{"absent", func(c *redis.Client) redis.Cmder { return c.Get(ctx, "nothing") }, 2}, // PTTL goes with it
		{"other commands", func(c *redis.Client) redis.Cmder { return c.StrLen(ctx, "s") }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, _, server := attach(t, Options{TTL: time.Hour})
			client.MSet(ctx, "s", "1", "t", "2")
			client.Set(ctx, "e", "3", time.Minute)
			client.HSet(ctx, "h", "f", "v", "g", "w")
			first := see(test.read(client))
			before := server.CommandCount()
			if second := see(test.read(client)); second != first {
				t.Errorf("got %v the second time; want %v", second, first)
			}
			if got := server.CommandCount() - before; got != test.want {
				t.Errorf("got %d commands for the second read; want %d", got, test.want)
			}
		})
	}
}

// TestExpiry tests that a copy does not outlive its key.
func TestExpiry(t *testing.T) {
	ctx := t.Context()
	for _, ignore := range []bool{false, true} {
		client, _, server := attach(t, Options{TTL: time.Hour, IgnoreExpiry: ignore})
		client.Set(ctx, "k", "v", 30*time.Millisecond)
		client.Get(ctx, "k")
		time.Sleep(40 * time.Millisecond)
		server.FastForward(40 * time.Millisecond)
		if _, err := client.Get(ctx, "k").Result(); isNil(err) == ignore {
			t.Errorf("IgnoreExpiry = %t: got error %v after the key expired", ignore, err)
		}
	}
}

// TestMoved changes a connection of the pool, after which replies may be those
// of another database.
func TestMoved(t *testing.T) {
	ctx := t.Context()
	for _, test := range []struct {
		name string
		do   func(*redis.Client)
		want bool // serving
	}{
		{"select", func(c *redis.Client) { c.Do(ctx, "SELECT", 1) }, false},
		{"select in a pipeline", func(c *redis.Client) {
			c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Do(ctx, "select", 1); return nil })
		}, false},
		{"hello", func(c *redis.Client) { c.Do(ctx, "hello") }, true},
		{"hello 2", func(c *redis.Client) { c.Do(ctx, "hello", 2) }, false},
		{"select on a connection", func(c *redis.Client) { conn := c.Conn(); conn.Select(ctx, 1); conn.Close() }, true},
		{"transaction", func(c *redis.Client) {
			c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, "a", 1, 0); return nil })
		}, true},
	} {
		client, cache, _ := attach(t, Options{})
		test.do(client)
		if got := cache.Stats().Serving; got != test.want {
			t.Errorf("%s: got serving = %t, want %t", test.name, got, test.want)
		}
	}
}

// TestBrokenPipeline tests that what cannot be served locally fails as it would
// without.
func TestBrokenPipeline(t *testing.T) {
	ctx := t.Context()
	client, _, server := attach(t, Options{TTL: time.Hour})
	client.Set(ctx, "s", "1", 0)
	client.Get(ctx, "s")
	server.SetError("broken")
	if got, err := client.Get(ctx, "s").Result(); got != "1" || err != nil {
		t.Errorf("got %q, %v; want what is local", got, err)
	}
	cmds, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Get(ctx, "s")
		p.Get(ctx, "t")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got error %v of the pipeline; want that of Redis", err)
	}
	if cmds[0].Err() != nil || cmds[1].Err() == nil {
		t.Errorf("got errors %v, %v; want one of the second", cmds[0].Err(), cmds[1].Err())
	}
	if err := client.MGet(ctx, "s", "t").Err(); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got error %v of MGET; want that of Redis", err)
	}
	server.SetError("")
	server.Close()
	if err := client.Set(ctx, "s", "2", 0).Err(); err == nil {
		t.Error("got no error of a write without a server")
	}
	if _, err := client.Get(ctx, "s").Result(); err == nil {
		t.Error("got a value after a write that may have been carried out")
	}
}

// TestRefusedPTTL has Redis refuse PTTL, as an ACL may: reads are answered, and
// nothing is kept.
func TestRefusedPTTL(t *testing.T) {
	ctx := t.Context()
	client, cache, server := attach(t, Options{})
	client.MSet(ctx, "a", "1", "b", "2")
	server.Server().SetPreHook(func(peer *miniserver.Peer, name string, _ ...string) bool {
		if strings.EqualFold(name, "pttl") {
			peer.WriteError("NOPERM this user has no permissions")
			return true
		}
		return false
	})
	for range 3 {
		if got, err := client.Get(ctx, "a").Result(); got != "1" || err != nil {
			t.Errorf("GET: got %q, %v; want 1", got, err)
		}
		if got, err := client.MGet(ctx, "a", "b").Result(); !reflect.DeepEqual(got, []any{"1", "2"}) || err != nil {
			t.Errorf("MGET: got %q, %v; want 1, 2", got, err)
		}
		cmds, err := client.Pipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, "a"); p.Get(ctx, "b"); return nil })
		if err != nil || len(cmds) != 2 || cmds[0].Err() != nil || cmds[1].(*redis.StringCmd).Val() != "2" {
			t.Errorf("pipeline: got %v, %v; want 1, 2", cmds, err)
		}
		if got, err := client.Get(ctx, "nothing").Result(); !isNil(err) {
			t.Errorf("GET: got %q, %v; want redis.Nil", got, err)
		}
		if _, err := client.Pipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, "nothing"); return nil }); !isNil(err) {
			t.Errorf("pipeline: got error %v; want redis.Nil", err)
		}
	}
	if s := cache.Stats(); s.Hits != 0 || s.Unkept == 0 {
		t.Errorf("got %d hits, %d not kept; want none, and some", s.Hits, s.Unkept)
	}
}

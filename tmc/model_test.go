package tmc

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
)

// allHot has every key hot from the beginning.
var allHot = hotspot.Config[string]{
	Rate:  1,
	Rules: []hotspot.Rule{{Action: hotspot.Allow, Match: hotspot.Glob, Pattern: "*"}},
}

// modelRedis is a Redis that knows GET and SET, takes its time, and remembers
// when each key had which value. Version i of a key has the value i; version 0
// is that there is none.
type modelRedis struct {
	latency func() time.Duration // of a request, and of a reply

	mu      sync.Mutex
	written map[string][]time.Time // when version i came, from 1 on
}

func (m *modelRedis) process(_ context.Context, cmd redis.Cmder) error {
	time.Sleep(m.latency())
	err := m.carryOut(cmd)
	time.Sleep(m.latency())
	return err
}

func (m *modelRedis) pipeline(_ context.Context, cmds []redis.Cmder) error {
	time.Sleep(m.latency())
	for _, cmd := range cmds {
		cmd.SetErr(m.carryOut(cmd))
	}
	time.Sleep(m.latency())
	return firstError(cmds)
}

func (m *modelRedis) carryOut(cmd redis.Cmder) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := cmd.Args()[1].(string)
	switch cmd := cmd.(type) {
	case *redis.StringCmd:
		if len(m.written[key]) == 0 {
			return redis.Nil
		}
		cmd.SetVal(strconv.Itoa(len(m.written[key])))
	case *redis.IntCmd: // SET here answers with the version
		m.written[key] = append(m.written[key], time.Now())
		cmd.SetVal(int64(len(m.written[key])))
	}
	return nil
}

// replaced returns when a version of key was replaced by the next; ok is false
// if it has not been.
func (m *modelRedis) replaced(key string, version int) (at time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if version >= len(m.written[key]) {
		return at, false
	}
	return m.written[key][version], true
}

// modelNode is a Cache on a modelRedis.
type modelNode struct {
	*Cache
	channel  *memoryChannel
	redis    *modelRedis
	process  redis.ProcessHook
	pipeline redis.ProcessPipelineHook

	mu   sync.Mutex
	done map[string]int // the latest version whose write by this node has returned
}

func newModelNode(t *testing.T, m *modelRedis, channel *memoryChannel, options Options) *modelNode {
	t.Helper()
	options.Channel = channel
	options.Hot = allHot
	options.IgnoreExpiry = true // the model has none
	options.Logger = slog.New(slog.DiscardHandler)
	options, err := options.resolve()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCache(nil, options)
	if err != nil {
		t.Fatal(err)
	}
	h := &hook{cache: c}
	h.attaching.Store(true)
	return &modelNode{
		Cache: c, channel: channel, redis: m, done: make(map[string]int),
		process: h.ProcessHook(m.process), pipeline: h.ProcessPipelineHook(m.pipeline),
	}
}

func (n *modelNode) write(t *testing.T, key string) {
	cmd := redis.NewIntCmd(t.Context(), "set", key, "next")
	if err := n.process(t.Context(), cmd); err != nil {
		t.Errorf("set: %v", err)
	}
	n.wrote(key, int(cmd.Val()))
}

func (n *modelNode) wrote(key string, version int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.done[key] = max(n.done[key], version)
}

// read reads key and checks that what comes was current no longer than bound
// ago, and is no older than what this node has written.
func (n *modelNode) read(t *testing.T, key string, bound time.Duration) {
	start := time.Now()
	n.mu.Lock()
	least := n.done[key]
	n.mu.Unlock()
	cmd := redis.NewStringCmd(t.Context(), "get", key)
	n.check(t, cmd, n.process(t.Context(), cmd), start, least, bound)
}

func (n *modelNode) check(t *testing.T, cmd *redis.StringCmd, err error, start time.Time, least int, bound time.Duration) {
	key := cmd.Args()[1].(string)
	version := 0
	switch {
	case err == nil:
		version, err = strconv.Atoi(cmd.Val())
		if err != nil {
			t.Errorf("get %s: %v", key, err)
		}
	case !isNil(err):
		t.Errorf("get %s: %v", key, err)
	}
	if version < least {
		t.Errorf("get %s: got version %d; want %d, which this node has written, or later", key, version, least)
	}
	if at, ok := n.redis.replaced(key, version); ok && start.Sub(at) > bound {
		t.Errorf("get %s: got version %d, which was replaced %v before; want %v at most", key, version, start.Sub(at), bound)
	}
}

// both writes and reads in one pipeline, in which the read must see the write.
func (n *modelNode) both(t *testing.T, key, other string, bound time.Duration) {
	start := time.Now()
	n.mu.Lock()
	least := n.done[other]
	n.mu.Unlock()
	set := redis.NewIntCmd(t.Context(), "set", key, "next")
	get := redis.NewStringCmd(t.Context(), "get", key)
	second := redis.NewStringCmd(t.Context(), "get", other)
	_ = n.pipeline(t.Context(), []redis.Cmder{set, get, second})
	n.check(t, get, get.Err(), start, int(set.Val()), bound)
	if key != other {
		n.check(t, second, second.Err(), start, least, bound)
	}
	n.wrote(key, int(set.Val()))
}

// modelRun are nodes, readers and writers and what is done to them.
type modelRun struct {
	options  Options
	bound    time.Duration // of the channel
	cut      int           // nodes from 0 on that are cut off now and then
	silent   int           // nodes from 0 on that do not write
	toldDown bool          // whether a node that is cut off is told, within the bound
	want     time.Duration
}

const (
	modelLatency = 2 * time.Millisecond // at most, either way
	modelDelay   = 5 * time.Millisecond // of a message, at most
)

func (r modelRun) run(t *testing.T, seed uint64) (served, reads uint64) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		upTo := func(d time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(random.Int64N(int64(d)))
		}
		hub := &memory{delay: func() time.Duration { return upTo(modelDelay) }}
		m := &modelRedis{latency: func() time.Duration { return upTo(modelLatency) }, written: make(map[string][]time.Time)}
		var nodes []*modelNode
		for i := range 3 {
			options := r.options
			options.Node = fmt.Sprint("node", i)
			nodes = append(nodes, newModelNode(t, m, hub.join(r.bound), options))
		}
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		var group sync.WaitGroup
		for i, node := range nodes {
			for g := range 4 {
				group.Go(func() { r.work(ctx, t, node, i >= r.silent, rand.New(rand.NewPCG(seed, uint64(10*i+g+2)))) })
			}
			group.Go(func() { r.network(ctx, node, i < r.cut, upTo) })
		}
		group.Wait()
		for _, node := range nodes {
			node.Close()
			s := node.Stats()
			served, reads = served+s.Hits, reads+s.Reads
		}
	})
	return served, reads
}

// work reads and writes until ctx ends.
func (r modelRun) work(ctx context.Context, t *testing.T, n *modelNode, writes bool, random *rand.Rand) {
	for ctx.Err() == nil {
		key, other := string(rune('a'+random.IntN(4))), string(rune('a'+random.IntN(4)))
		switch x := random.IntN(100); {
		case x < 3 && writes:
			n.write(t, key)
		case x < 5 && writes:
			n.both(t, key, other, r.want)
		default:
			n.read(t, key, r.want)
		}
		time.Sleep(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
	}
}

// network tells a node that its channel is fine, and cuts it off now and then.
func (r modelRun) network(ctx context.Context, n *modelNode, cut bool, upTo func(time.Duration) time.Duration) {
	for ctx.Err() == nil {
		for range 1 + upTo(20) {
			time.Sleep(20 * time.Millisecond)
			n.channel.tellFresh()
		}
		if !cut || ctx.Err() != nil {
			continue
		}
		n.channel.setCut(true)
		time.Sleep(upTo(100 * time.Millisecond))
		if r.toldDown {
			n.channel.tellUp(false)
		}
		time.Sleep(upTo(300 * time.Millisecond))
		n.channel.setCut(false)
		n.channel.tellUp(true)
	}
}

// TestModel runs random reads, writes, invalidations and partitions on a model
// of Redis, in which every read is checked.
func TestModel(t *testing.T) {
	const ttl = 250 * time.Millisecond
	for _, test := range []struct {
		name string
		run  modelRun
	}{
		// A write is told once its reply has come.
		{"connected", modelRun{options: Options{TTL: time.Hour}, want: modelLatency + modelDelay}},
		{"nodes that write nothing are cut off", modelRun{
			options: Options{TTL: time.Hour}, bound: 100 * time.Millisecond, cut: 2, silent: 2, toldDown: true,
			want: 100*time.Millisecond + modelLatency + modelDelay}},
		{"and are not told", modelRun{
			options: Options{TTL: time.Hour}, bound: 100 * time.Millisecond, cut: 2, silent: 2,
			want: 100*time.Millisecond + modelLatency + modelDelay}},
		{"all are cut off", modelRun{options: Options{TTL: ttl}, bound: 100 * time.Millisecond, cut: 3, toldDown: true, want: ttl}},
		{"served when down", modelRun{options: Options{TTL: ttl, ServeWhenDown: true}, cut: 3, toldDown: true, want: ttl}},
		{"absent", modelRun{options: Options{TTL: ttl, Absent: true}, cut: 3, toldDown: true, want: ttl}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var served, reads uint64
			for seed := range uint64(6) {
				if testing.Short() && seed == 2 {
					break
				}
				s, r := test.run.run(t, seed)
				served, reads = served+s, reads+r
			}
			t.Logf("%d reads, %d of them served locally", reads, served)
			if served < reads/10 {
				t.Errorf("%d of %d reads were served locally: the test tests little", served, reads)
			}
		})
	}
}

package faulttest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/heavykeeper-go/heavykeeper/tmc"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/etcd"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/redispubsub"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/redisstream"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// nodeVariable is the environment variable that makes this test's program a
// node: it holds a nodeConfig.
const nodeVariable = "TMC_FAULTTEST_NODE"

// nodeConfig says what a node does.
type nodeConfig struct {
	Name   string
	Data   string // address of Redis, for the application and its reports
	Push   string // address of Redis or etcd, for the channel
	Etcd   bool
	Writes []int // hot keys that the node writes
	Truth  string
	TTL    time.Duration
	Ping   time.Duration // and as long to answer
}

// nodeReport is what a node tells when asked.
type nodeReport struct {
	Requests   uint64
	Failed     uint64        // requests
	Unexcused  []string      // failures while plain requests had none
	Plain      uint64        // requests of the plain client
	PlainFails uint64        // of those
	Stale      time.Duration // longest, since the last report
	OwnStale   uint64        // reads of a value older than the node had written before
	OwnDetail  string
	Stats      tmc.Stats
	Goroutines int
	Files      int
}

// node is a process with the SDK, and a plain client beside it.
type node struct {
	config nodeConfig
	truth  *truth
	cache  *tmc.Cache
	client *redis.Client // attached
	plain  *redis.Client
	paused atomic.Bool
	idle   sync.RWMutex // held for reading by loads at work

	requests, failed, plains, plainFails, ownStale atomic.Uint64

	mu       sync.Mutex
	stale    time.Duration
	failures []failure // of the attached client
	outages  []failure // of the plain client
	own      string
}

// failure is a request that failed.
type failure struct {
	from, to time.Time
	err      string
}

// grace is how far from a failure of the plain client one of the attached
// client may be to be excused by it.
const grace = 500 * time.Millisecond

func redisOptions(addr string) *redis.Options {
	return &redis.Options{
		Addr: addr, DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second,
		ContextTimeoutEnabled: true,
	}
}

// nodeMain runs a node: it answers each line of its input with a line.
func nodeMain(text string) int {
	redis.SetLogger(silent{})
	n := &node{}
	if err := json.Unmarshal([]byte(text), &n.config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := n.run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, n.config.Name, err)
		return 1
	}
	return 0
}

// silent keeps the Redis client from saying that it cannot connect.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func (n *node) run(in io.Reader, out io.Writer) (err error) {
	if n.truth, err = openTruth(n.config.Truth); err != nil {
		return err
	}
	before := runtime.NumGoroutine()
	closeAll, err := n.attach()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() { n.read(ctx) })
	}
	for _, key := range n.config.Writes {
		group.Go(func() { n.write(ctx, key) })
	}
	group.Go(func() { n.compare(ctx) })

	encoder := json.NewEncoder(out)
	commands := bufio.NewScanner(in)
	for commands.Scan() {
		switch commands.Text() {
		case "pause":
			n.paused.Store(true)
			n.idle.Lock() // until none is at work
			n.idle.Unlock()
		case "resume":
			n.paused.Store(false)
		case "close":
			stop()
			group.Wait()
			closeAll()
			r := n.report()
			r.Goroutines = settle(before) - before
			return encoder.Encode(r)
		}
		if err := encoder.Encode(n.report()); err != nil {
			return err
		}
	}
	return errors.New("the input ended")
}

// settle waits until there are as few goroutines as before, or for some
// seconds, and returns how many there are.
func settle(before int) int {
	for range 100 {
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

// attach makes the clients of the node.
func (n *node) attach() (closeAll func(), err error) {
	c := n.config
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", c.Name)
	n.client, n.plain = redis.NewClient(redisOptions(c.Data)), redis.NewClient(redisOptions(c.Data))
	side := redis.NewClient(redisOptions(c.Data)) // not attached: its reads do not count
	closers := []func() error{n.client.Close, n.plain.Close, side.Close}
	publisher, err := redisstream.NewPublisher(redisstream.Options{Client: side})
	if err != nil {
		return nil, err
	}
	closers = append(closers, publisher.Close)
	var channel wire.Channel
	if c.Etcd {
		var client *clientv3.Client
		if client, err = etcd.Dial("http://" + c.Push); err != nil {
			return nil, err
		}
		closers = append(closers, client.Close)
		channel, err = etcd.New(etcd.Options{Client: client, Ping: c.Ping, Timeout: c.Ping, Logger: logger})
	} else {
		client := redis.NewClient(redisOptions(c.Push))
		closers = append(closers, client.Close)
		channel, err = redispubsub.New(redispubsub.Options{Client: client, Ping: c.Ping, Timeout: c.Ping, Logger: logger})
	}
	if err != nil {
		return nil, err
	}
	closers = append(closers, channel.Close)
	n.cache, err = tmc.Attach(n.client, tmc.Options{
		App: "shop", Node: c.Name, Channel: channel, Publisher: publisher, TTL: c.TTL, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	closers = append(closers, n.cache.Close)
	return func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}, nil
}

func hotKey(i int) string { return fmt.Sprint("hot:", i) }

// read reads: four of five times a hot key.
func (n *node) read(ctx context.Context) {
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), rand.Uint64()))
	n.each(ctx, 5*time.Millisecond, func(ctx context.Context) {
		start := time.Now()
		if random.IntN(5) == 0 {
			err := n.client.Get(ctx, fmt.Sprint("cold:", random.IntN(5000))).Err()
			n.note(start, err)
			return
		}
		key := random.IntN(hotKeys)
		n.get(ctx, key)
	})
}

// get reads a hot key and returns its version, 0 if there is none.
func (n *node) get(ctx context.Context, key int) (version int, ok bool) {
	start := time.Now()
	text, err := n.client.Get(ctx, hotKey(key)).Result()
	n.note(start, err)
	if err != nil {
		return 0, errors.Is(err, redis.Nil)
	}
	version, err = strconv.Atoi(text)
	if err != nil {
		n.note(start, fmt.Errorf("%s has %q", hotKey(key), text))
		return 0, false
	}
	stale := n.truth.staleness(key, version, start)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stale = max(n.stale, stale)
	return version, true
}

// write writes the next version of a key, and reads it. A version whose write
// fails may have been written, so it is written again until that succeeds.
func (n *node) write(ctx context.Context, key int) {
	version := n.truth.latest(key) + 1
	n.each(ctx, 400*time.Millisecond, func(ctx context.Context) {
		if version >= versions {
			return
		}
		start := time.Now()
		err := n.client.Set(ctx, hotKey(key), strconv.Itoa(version), 0).Err()
		n.note(start, err)
		if err != nil {
			return
		}
		n.truth.acknowledge(key, version)
		// Redis may have lost it since, but there is no way to something older.
		if got, ok := n.get(ctx, key); ok && got != 0 && got < version {
			n.ownStale.Add(1)
			n.mu.Lock()
			n.own = fmt.Sprintf("%s: read version %d after writing %d", hotKey(key), got, version)
			n.mu.Unlock()
		}
		version++
	})
}

// compare makes requests of the plain client.
func (n *node) compare(ctx context.Context) {
	n.each(ctx, 10*time.Millisecond, func(ctx context.Context) {
		start := time.Now()
		err := n.plain.Get(ctx, "cold:1").Err()
		n.plains.Add(1)
		if err != nil && !errors.Is(err, redis.Nil) && ctx.Err() == nil {
			n.plainFails.Add(1)
			n.mu.Lock()
			defer n.mu.Unlock()
			n.outages = append(n.outages, failure{start, time.Now(), err.Error()})
		}
	})
}

// each calls f at intervals, unless the node is paused.
func (n *node) each(ctx context.Context, interval time.Duration, f func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			n.idle.RLock()
			if !n.paused.Load() {
				f(ctx)
			}
			n.idle.RUnlock()
		}
	}
}

// note counts a request that began at start.
func (n *node) note(start time.Time, err error) {
	n.requests.Add(1)
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, context.Canceled) {
		return
	}
	n.failed.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failures = append(n.failures, failure{start, time.Now(), err.Error()})
}

// report returns what has happened, and forgets what it tells once.
func (n *node) report() nodeReport {
	r := nodeReport{
		Requests: n.requests.Load(), Failed: n.failed.Load(), Plain: n.plains.Load(), PlainFails: n.plainFails.Load(),
		OwnStale: n.ownStale.Load(), Stats: n.cache.Stats(), Goroutines: runtime.NumGoroutine(), Files: files(),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	r.Stale, n.stale = n.stale, 0
	r.OwnDetail = n.own
	var undecided []failure
	for _, f := range n.failures {
		switch {
		case excused(f, n.outages):
		case time.Since(f.to) < 3*time.Second && !n.paused.Load():
			undecided = append(undecided, f) // a plain request that failed may not have ended
		case len(r.Unexcused) < 5:
			r.Unexcused = append(r.Unexcused, f.from.Format("15:04:05.000 ")+f.err)
		}
	}
	n.failures = undecided
	for len(n.outages) > 0 && time.Since(n.outages[0].to) > time.Minute {
		n.outages = n.outages[1:]
	}
	return r
}

// excused reports whether a plain request failed at the time that f did.
func excused(f failure, outages []failure) bool {
	for _, o := range outages {
		if f.from.Before(o.to.Add(grace)) && o.from.Before(f.to.Add(grace)) {
			return true
		}
	}
	return false
}

// files returns the number of open files of this process.
func files() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	sockets := 0
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(target, "socket:") {
			sockets++
		}
	}
	return sockets
}

package tmc

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heavykeeper-go/heavykeeper/internal/stripe"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// reporter counts reads for the servers to find out which keys are hot, and
// knows which they say are.
//
// Reads are counted in maps, one for each processor, so that the hottest key
// does not have all wait for one lock. Every so often, or when a map is full,
// it is put into a queue, from which a goroutine makes reports. A read waits
// for neither: what finds the queue full is dropped and counted.
type reporter struct {
	publisher wire.Publisher
	app, node string
	every     time.Duration
	keys      int // most in a map
	log       *slog.Logger

	stripes *stripe.Set[map[string]uint32]
	spare   sync.Pool // of empty maps
	queue   chan map[string]uint32

	reads    tally         // counted
	dropped  atomic.Uint64 // reads that were counted and will not arrive
	unsaid   atomic.Uint64 // those of dropped that no report has told of
	reports  atomic.Uint64
	failures atomic.Uint64

	set atomic.Pointer[hotSet]
}

// hotSet is the hot set as the servers say.
type hotSet struct {
	version uint64
	at      time.Time
	keys    map[string]time.Duration // their times to live
	list    []wire.HotKey
}

func newReporter(o Options) *reporter {
	r := &reporter{
		publisher: o.Publisher, app: o.App, node: o.life,
		every: o.ReportEvery, keys: o.ReportKeys, log: o.Logger,
		queue: make(chan map[string]uint32, o.ReportQueue),
	}
	r.spare.New = func() any { return make(map[string]uint32) }
	r.stripes = stripe.New(runtime.GOMAXPROCS(0), func(m *map[string]uint32) { *m = r.empty() })
	r.set.Store(&hotSet{})
	return r
}

func (r *reporter) empty() map[string]uint32 { return r.spare.Get().(map[string]uint32) }

func (r *reporter) observe(key string) bool {
	r.reads.add(1)
	p := r.stripes.Lock()
	if n, ok := p.Value[key]; ok {
		p.Value[key] = max(n+1, n) // stays at the most there is
	} else {
		if len(p.Value) >= r.keys {
			r.enqueue(&p.Value)
		}
		p.Value[strings.Clone(key)] = 1
	}
	r.stripes.Unlock(p)
	return r.hot(key)
}

// enqueue takes a map, whose stripe is locked, and leaves an empty one.
func (r *reporter) enqueue(m *map[string]uint32) {
	full := *m
	if len(full) == 0 {
		return
	}
	select {
	case r.queue <- full:
		*m = r.empty()
	default:
		r.drop(full)
		clear(full)
	}
}

// drop counts reads that will not arrive.
func (r *reporter) drop(m map[string]uint32) {
	var n uint64
	for _, count := range m {
		n += uint64(count)
	}
	r.dropped.Add(n)
	r.unsaid.Add(n)
}

func (r *reporter) hot(key string) bool {
	_, ok := r.set.Load().keys[key]
	return ok
}

func (r *reporter) ttl(key string) time.Duration { return r.set.Load().keys[key] }
func (r *reporter) len() int                     { return len(r.set.Load().keys) }

// setHot replaces the hot set, unless s is older.
func (r *reporter) setHot(s wire.HotSet) {
	next := &hotSet{version: s.Version, at: s.At, keys: make(map[string]time.Duration, len(s.Keys)), list: s.Keys}
	for _, key := range s.Keys {
		next.keys[key.Key] = key.TTL
	}
	for old := r.set.Load(); old.version <= s.Version; old = r.set.Load() {
		if r.set.CompareAndSwap(old, next) {
			return
		}
	}
}

func (r *reporter) run(ctx context.Context, group *sync.WaitGroup) {
	// What is left when ctx ends has a little longer.
	last, cancel := context.WithCancel(context.Background())
	context.AfterFunc(ctx, func() { time.AfterFunc(closeTimeout, cancel) })
	group.Go(func() { r.collect(ctx, last) })
	group.Go(func() {
		defer cancel()
		r.publish(last)
	})
}

// collect empties the maps into the queue once an interval, and a last time
// when ctx ends.
func (r *reporter) collect(ctx, last context.Context) {
	ticker := time.NewTicker(r.every)
	defer ticker.Stop()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-ticker.C:
		}
		for _, m := range r.stripes.Locked() {
			r.enqueue(m)
		}
	}
	// A read may still fill a map, so the queue is not closed: its end is a nil.
	select {
	case r.queue <- nil:
	case <-last.Done():
	}
}

// publish sends what is in the queue until its end, or until ctx ends.
func (r *reporter) publish(ctx context.Context) {
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			return
		case counts := <-r.queue:
			if counts == nil {
				return
			}
			ended = r.gather(counts)
			r.send(ctx, counts)
			r.recycle(counts)
		}
	}
}

// gather adds to counts what else is in the queue, if it fits in a report, and
// tells whether that was its end.
func (r *reporter) gather(counts map[string]uint32) (ended bool) {
	for len(counts) < r.keys {
		select {
		case more := <-r.queue:
			if more == nil {
				return true
			}
			merge(counts, more)
			r.recycle(more)
		default:
			return false
		}
	}
	return false
}

func (r *reporter) recycle(m map[string]uint32) {
	clear(m)
	r.spare.Put(m)
}

// merge adds what is in b to a.
func merge(a, b map[string]uint32) {
	for key, n := range b {
		if sum := a[key] + n; sum >= n {
			a[key] = sum
		} else {
			a[key] = 1<<32 - 1
		}
	}
}

// send makes a report of counts and sends it.
func (r *reporter) send(ctx context.Context, counts map[string]uint32) {
	unsaid := r.unsaid.Swap(0)
	report := wire.Report{App: r.app, Node: r.node, At: time.Now(), Dropped: unsaid, Counts: make([]wire.Count, 0, len(counts))}
	for key, n := range counts {
		report.Counts = append(report.Counts, wire.Count{Key: key, N: n})
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if err := r.publisher.Publish(ctx, report); err != nil {
		r.failures.Add(1)
		r.unsaid.Add(unsaid)
		r.drop(counts)
		r.log.Debug("tmc: report lost", "app", r.app, "keys", len(counts), "error", err)
		return
	}
	r.reports.Add(1)
}

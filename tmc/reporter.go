package tmc

import (
	"context"
	"log/slog"
	"math"
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
// Reads are counted in batches, one for each processor, so that the hottest key
// does not have all wait for one lock. Every so often, or when a batch is full,
// it is put into a queue, from which a goroutine makes reports. A read waits
// for neither: what finds the queue full is dropped and counted.
type reporter struct {
	publisher wire.Publisher
	app, node string
	every     time.Duration
	keys      int // most in a batch
	log       *slog.Logger

	stripes *stripe.Set[*batch]
	spare   sync.Pool // of empty batches
	queue   chan *batch

	reads    tally         // counted
	dropped  atomic.Uint64 // reads that were counted and will not arrive
	unsaid   atomic.Uint64 // those of dropped that no report has told of
	reports  atomic.Uint64
	failures atomic.Uint64

	set atomic.Pointer[hotSet]
}

// batch are counts of reads.
type batch struct {
	counts map[string]uint32
	bytes  int // of keys
}

// batchBytes is how many bytes of keys a batch may have. A report has less than
// twice as many, which every transport takes, whatever the keys are.
const batchBytes = 256 << 10

// takes reports whether one more key fits.
func (b *batch) takes(key string, keys int) bool {
	return len(b.counts) < keys && b.bytes+len(key) <= batchBytes
}

// add counts n reads of key.
func (b *batch) add(key string, n uint32) {
	old, ok := b.counts[key]
	if !ok {
		b.bytes += len(key)
	}
	if old+n < n {
		old = math.MaxUint32 - n // stays at the most there is
	}
	b.counts[key] = old + n
}

// reads returns how many reads are counted.
func (b *batch) reads() uint64 {
	var sum uint64
	for _, n := range b.counts {
		sum += uint64(n)
	}
	return sum
}

func (b *batch) clear() {
	clear(b.counts)
	b.bytes = 0
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
		queue: make(chan *batch, o.ReportQueue),
	}
	r.spare.New = func() any { return &batch{counts: make(map[string]uint32)} }
	r.stripes = stripe.New(runtime.GOMAXPROCS(0), func(b **batch) { *b = r.empty() })
	r.set.Store(&hotSet{})
	return r
}

func (r *reporter) empty() *batch { return r.spare.Get().(*batch) }

func (r *reporter) observe(key string) bool {
	r.reads.add(1)
	if len(key) > wire.MaxKey {
		r.drop(1)
		return r.hot(key)
	}
	p := r.stripes.Lock()
	if n, ok := p.Value.counts[key]; ok {
		p.Value.counts[key] = max(n+1, n) // stays at the most there is
	} else {
		if !p.Value.takes(key, r.keys) {
			r.enqueue(&p.Value)
		}
		p.Value.add(strings.Clone(key), 1)
	}
	r.stripes.Unlock(p)
	return r.hot(key)
}

// enqueue takes a batch, whose stripe is locked, and leaves an empty one.
func (r *reporter) enqueue(b **batch) {
	full := *b
	if len(full.counts) == 0 {
		return
	}
	select {
	case r.queue <- full:
		*b = r.empty()
	default:
		r.drop(full.reads())
		full.clear()
	}
}

// drop counts reads that will not arrive.
func (r *reporter) drop(n uint64) {
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

// collect puts the batches into the queue once an interval, and a last time
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
		for _, b := range r.stripes.Locked() {
			r.enqueue(b)
		}
	}
	// A read may still fill a batch, so the queue is not closed: its end is a nil.
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
		case b := <-r.queue:
			if b == nil {
				return
			}
			ended = r.gather(b)
			r.send(ctx, b)
			r.recycle(b)
		}
	}
}

// gather adds to b what else is in the queue, while it is not full, and tells
// whether that was its end.
func (r *reporter) gather(b *batch) (ended bool) {
	for b.takes("", r.keys) {
		select {
		case more := <-r.queue:
			if more == nil {
				return true
			}
			for key, n := range more.counts {
				b.add(key, n)
			}
			r.recycle(more)
		default:
			return false
		}
	}
	return false
}

func (r *reporter) recycle(b *batch) {
	b.clear()
	r.spare.Put(b)
}

// send makes a report of b and sends it.
func (r *reporter) send(ctx context.Context, b *batch) {
	unsaid := r.unsaid.Swap(0)
	report := wire.Report{App: r.app, Node: r.node, At: time.Now(), Dropped: unsaid, Counts: make([]wire.Count, 0, len(b.counts))}
	for key, n := range b.counts {
		report.Counts = append(report.Counts, wire.Count{Key: key, N: n})
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if err := r.publisher.Publish(ctx, report); err != nil {
		r.failures.Add(1)
		r.unsaid.Add(unsaid)
		r.drop(b.reads())
		r.log.Debug("tmc: report lost", "app", r.app, "keys", len(b.counts), "error", err)
		return
	}
	r.reports.Add(1)
}

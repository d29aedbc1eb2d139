package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/heavykeeper-go/heavykeeper/bench/baseline"
	"github.com/heavykeeper-go/heavykeeper/bench/measure"
	"github.com/heavykeeper-go/heavykeeper/bench/stream"
)

// lab is what the sections share.
type lab struct {
	options
	keys, events int
	passes       int // of timings; the median counts
	algorithms   []baseline.Algorithm[uint64]
	progress     *progress
	figures      []figure
	glance       glance
}

func newLab(o options) *lab {
	l := &lab{options: o, keys: 1_000_000, events: 5_000_000, passes: 5, algorithms: baseline.All[uint64](), progress: newProgress(), glance: newGlance()}
	if o.quick {
		l.keys, l.events = l.keys/20, l.events/20
		l.passes = 3
	}
	return l
}

// workload is a stream with its truth.
type workload struct {
	name    string
	keys    []uint64
	weights []uint32 // nil: all 1
	truth   *measure.Truth[uint64]
}

func newWorkload(name string, keys []uint64, weights []uint32) *workload {
	return &workload{name, keys, weights, measure.Count(keys, weights)}
}

// zipf returns the reference stream of a skew.
func (l *lab) zipf(skew float64) *workload {
	return newWorkload(fmt.Sprintf("Zipf %.1f", skew), stream.Zipf(l.seed, skew, l.keys, l.events), nil)
}

func (w *workload) feed(c baseline.Counter[uint64]) {
	if w.weights == nil {
		for _, key := range w.keys {
			c.Add(key)
		}
		return
	}
	for i, key := range w.keys {
		c.AddN(key, w.weights[i])
	}
}

// trial is one algorithm on one stream in one size.
type trial struct {
	on        *workload
	algorithm baseline.Algorithm[uint64]
	bytes, k  int
	cells     int     // in cellsSection
	asked     int     // keys to report, if not k
	threshold float64 // share of the total, if heavy hitters are asked for

	fits bool
	used int // bytes
	measure.Accuracy
	hitters measure.Threshold
}

func (l *lab) config(bytes, k int) baseline.Config[uint64] {
	return baseline.Config[uint64]{Bytes: bytes, K: k, Hash: baseline.HashUint64(l.seed), Seed: l.seed}
}

// run makes the trials, as many at a time as there are processors.
func (l *lab) run(section string, trials []*trial) {
	l.progress.begin(section, len(trials))
	var group sync.WaitGroup
	next := make(chan *trial)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for t := range next {
				t.run(l)
				l.progress.step()
			}
		})
	}
	for _, t := range trials {
		next <- t
	}
	close(next)
	group.Wait()
}

func (t *trial) run(l *lab) {
	c, err := t.algorithm.New(l.config(t.bytes, t.k))
	if err != nil {
		return
	}
	t.fits = true
	t.on.feed(c)
	t.used = c.Bytes()
	asked := t.asked
	if asked == 0 {
		asked = t.k
	}
	if t.threshold > 0 {
		t.hitters = t.on.truth.HeavyHitters(c.Top(t.bytes), uint64(t.threshold*float64(t.on.truth.Total)))
		return
	}
	t.Accuracy = t.on.truth.Of(c.Top(asked), asked)
}

// progress is one line on stderr, safe for concurrent use.
type progress struct {
	mu       sync.Mutex
	started  time.Time
	section  string
	at, last int
}

func newProgress() *progress { return &progress{started: time.Now()} }

func (p *progress) begin(section string, steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.section, p.at, p.last = section, 0, steps
	p.print()
}

func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at++
	p.print()
}

// print must be called with p.mu held.
func (p *progress) print() {
	fmt.Fprintf(os.Stderr, "\r\x1b[K%5.0fs  %s %d/%d", time.Since(p.started).Seconds(), p.section, p.at, p.last)
}

func (p *progress) done() { fmt.Fprintln(os.Stderr) }

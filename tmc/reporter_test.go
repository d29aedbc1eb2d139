package tmc

import (
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// publisher keeps what is published, or fails, or hangs.
type publisher struct {
	mu      sync.Mutex
	reports []wire.Report
	err     error
	hang    bool
}

func (p *publisher) Publish(ctx context.Context, r wire.Report) error {
	p.mu.Lock()
	hang := p.hang
	p.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	p.reports = append(p.reports, r)
	return nil
}

func (p *publisher) Close() error { return nil }

// sum returns how often each key was reported, and how many reads were told to
// be lost.
func (p *publisher) sum() (counts map[string]uint64, total, dropped uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts = make(map[string]uint64)
	for _, r := range p.reports {
		dropped += r.Dropped
		for _, c := range r.Counts {
			counts[c.Key] += uint64(c.N)
			total += uint64(c.N)
		}
	}
	return counts, total, dropped
}

func startReporter(t *testing.T, p *publisher, o Options) (r *reporter, stop func()) {
	t.Helper()
	o.Publisher, o.Logger = p, slog.New(slog.DiscardHandler)
	o, err := o.resolve()
	if err != nil {
		t.Fatal(err)
	}
	r = newReporter(o)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	r.run(ctx, &group)
	return r, func() { cancel(); group.Wait() }
}

// TestReporterCounts reads from many goroutines: all is reported, once.
func TestReporterCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{}
		r, stop := startReporter(t, p, Options{ReportEvery: 100 * time.Millisecond, ReportKeys: 50, ReportQueue: 1 << 16})
		var group sync.WaitGroup
		for g := range 8 {
			group.Go(func() {
				for i := range 5000 {
					r.observe("hot")
					r.observe(fmt.Sprint("key", (i*7+g)%200))
					if i%1000 == 0 {
						time.Sleep(30 * time.Millisecond)
					}
				}
			})
		}
		group.Wait()
		stop()
		counts, total, dropped := p.sum()
		if counts["hot"] != 40_000 || total != 80_000 || dropped != 0 || len(counts) != 201 {
			t.Errorf("got %d of hot, %d in all, %d dropped, %d keys; want 40000, 80000, 0, 201", counts["hot"], total, dropped, len(counts))
		}
		if r.reads.load() != 80_000 {
			t.Errorf("got %d reads counted", r.reads.load())
		}
	})
}

// TestReporterDrops has the publisher fail and hang: reads do not wait, and what
// was lost is counted, here and in a later report.
func TestReporterDrops(t *testing.T) {
	for _, hang := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := &publisher{err: errors.New("down"), hang: hang}
			r, stop := startReporter(t, p, Options{ReportEvery: 10 * time.Millisecond, ReportKeys: 10, ReportQueue: 2})
			for i := range 1000 {
				start := time.Now()
				r.observe(fmt.Sprint("key", i))
				if waited := time.Since(start); waited != 0 {
					t.Fatalf("a read waited for %v", waited)
				}
				time.Sleep(time.Millisecond)
			}
			time.Sleep(sendTimeout)
			p.mu.Lock()
			p.err, p.hang = nil, false
			p.mu.Unlock()
			time.Sleep(2 * sendTimeout)
			r.observe("after")
			time.Sleep(time.Second)
			stop()
			_, total, dropped := p.sum()
			if total+dropped != 1001 || dropped == 0 || r.dropped.Load() != dropped {
				t.Errorf("hang = %t: got %d reported, %d told to be dropped, %d counted; want 1001 in all", hang, total, dropped, r.dropped.Load())
			}
		})
	}
}

// TestReporterLongKeys reads keys that are long: reports stay small enough for
// any transport, and a key that no report may have is counted as dropped.
func TestReporterLongKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{}
		r, stop := startReporter(t, p, Options{ReportEvery: 100 * time.Millisecond})
		long := strings.Repeat("x", wire.MaxKey-4)
		for i := range 1000 {
			r.observe(fmt.Sprint(long, 1000+i))
		}
		r.observe(strings.Repeat("y", wire.MaxKey+1))
		time.Sleep(time.Second)
		stop()
		_, total, dropped := p.sum()
		if len(p.reports) < 2 || total+dropped != 1001 || r.dropped.Load() != dropped || dropped == 0 {
			t.Errorf("got %d reported in %d reports, %d told to be dropped, %d counted; want 1001 in all", total, len(p.reports), dropped, r.dropped.Load())
		}
		for _, report := range p.reports {
			if data, err := report.MarshalBinary(); err != nil || len(data) > 2*batchBytes+batchBytes/8 {
				t.Errorf("got a report of %d bytes, error %v; want %d at most", len(data), err, 2*batchBytes)
			}
		}
	})
}

func TestBatch(t *testing.T) {
	b := batch{counts: map[string]uint32{}}
	for _, n := range []uint32{1, 1<<32 - 3, 1, 1, 7, 1<<32 - 1} {
		b.add("k", n)
	}
	if got := b.counts["k"]; got != 1<<32-1 || b.bytes != 1 || b.reads() != 1<<32-1 {
		t.Errorf("got a count of %d, %d bytes, %d reads; want the most there is, 1, the same", got, b.bytes, b.reads())
	}
}

// TestReporterClose ends in time, even if the publisher hangs.
func TestReporterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{hang: true}
		r, stop := startReporter(t, p, Options{ReportEvery: 10 * time.Millisecond, ReportKeys: 1, ReportQueue: 1})
		for i := range 100 {
			r.observe(fmt.Sprint(i))
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		stop()
		if took := time.Since(start); took > closeTimeout {
			t.Errorf("closing took %v, want %v at most", took, closeTimeout)
		}
	})
}

func TestReporterHotSet(t *testing.T) {
	r := newReporter(Options{ReportQueue: 1})
	set := func(version uint64, keys ...string) {
		s := wire.HotSet{App: "app", Version: version}
		for _, key := range keys {
			s.Keys = append(s.Keys, wire.HotKey{Key: key, TTL: time.Duration(version) * time.Second, Rate: 1.5})
		}
		r.setHot(s)
	}
	check := func(want ...string) {
		t.Helper()
		if r.len() != len(want) {
			t.Errorf("got %d hot keys, want %d", r.len(), len(want))
		}
		for _, key := range want {
			if !r.hot(key) {
				t.Errorf("%s is not hot", key)
			}
		}
	}
	check()
	set(2, "a", "b")
	check("a", "b")
	set(1, "c")
	check("a", "b")
	set(3, "c", "<d>")
	check("c", "<d>")
	if got := r.ttl("c"); got != 3*time.Second {
		t.Errorf("got a TTL of %v, want 3s", got)
	}
	for query, want := range map[string]string{"": html.EscapeString("<d>"), "?format=json": `\u003cd\u003e`} {
		recorder := httptest.NewRecorder()
		r.serve(recorder, httptest.NewRequest("GET", "/"+query, nil))
		if !strings.Contains(recorder.Body.String(), want) || strings.Contains(recorder.Body.String(), "<d>") {
			t.Errorf("%q: got %s; want %s in it", query, recorder.Body, want)
		}
	}
}

// TestClusterMode has a node serve what the servers say is hot.
func TestClusterMode(t *testing.T) {
	ctx := t.Context()
	channel := (&memory{}).join(0)
	p := &publisher{}
	client, cache, server := attach(t, Options{Channel: channel, Publisher: p, TTL: time.Hour, ReportEvery: 10 * time.Millisecond})
	waitUp(t, cache)
	client.Set(ctx, "k", "v", 0)
	served := func() bool {
		client.Get(ctx, "k")
		before := server.CommandCount()
		client.Get(ctx, "k")
		return server.CommandCount() == before
	}
	if served() {
		t.Error("served before the servers said so")
	}
	if err := channel.PushHot(ctx, wire.HotSet{App: "default", Version: 1, Keys: []wire.HotKey{{Key: "k"}}}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); !served(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not served after the servers said so")
		}
	}
	cache.Close()
	counts, _, dropped := p.sum()
	if s := cache.Stats(); counts["k"] != s.Reads || dropped != 0 {
		t.Errorf("got %d reads reported, %d dropped; want %d", counts["k"], dropped, s.Reads)
	}
}

package tmc

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func serving(t *testing.T, bytes int64) *local {
	t.Helper()
	l, err := newLocal(bytes, bytes/4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	l.setServe(true)
	return l
}

// TestLocalLease does something between the moment that a read takes its lease
// and the moment that its copy is looked up, wherever in between the copy is
// stored: past put, which would not store it.
func TestLocalLease(t *testing.T) {
	p := place{key: "k"}
	for _, test := range []struct {
		name string
		do   func(l *local)
		want bool
	}{
		{"nothing", func(*local) {}, true},
		{"another key", func(l *local) { l.invalidate("other") }, true},
		{"invalidation", func(l *local) { l.invalidate("k") }, false},
		{"begin of a write", func(l *local) { l.guard.begin("k") }, false},
		{"a whole write", func(l *local) { l.guard.begin("k"); l.guard.end("k") }, false},
		{"two writes", func(l *local) { l.guard.begin("k"); l.guard.begin("k"); l.guard.end("k"); l.guard.end("k") }, false},
		{"flush", func(l *local) { l.flush() }, false},
		{"begin of a flush", func(l *local) { l.flushing.Add(1) }, false},
		{"stop", func(l *local) { l.setServe(false) }, false},
		{"stop and go", func(l *local) { l.setServe(false); l.setServe(true) }, false},
		{"no news", func(l *local) { l.freshUntil.Store(int64(l.now())) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, when := range []string{"before the copy is stored", "after"} {
				l := serving(t, 1<<20)
				lease := l.lease(p.key)
				if !lease.valid() {
					t.Fatal("got no lease")
				}
				if when == "after" && !l.put(p, copied{text: "v"}, lease, time.Hour, forever) {
					t.Fatal("the copy was not stored")
				}
				test.do(l)
				l.cache.Set(p, &copied{text: "v", lease: lease, expires: forever})
				if _, got := l.get(p); got != test.want {
					t.Errorf("%s: got served = %t, want %t", when, got, test.want)
				}
			}
		})
	}
}

func TestLocalNoLease(t *testing.T) {
	l := serving(t, 1<<20)
	l.guard.begin("k")
	if l.lease("k").valid() {
		t.Error("got a lease while a write is under way")
	}
	l.guard.end("k")
	if !l.lease("k").valid() {
		t.Error("got no lease after the write")
	}
	l.flushing.Add(1)
	if l.lease("k").valid() {
		t.Error("got a lease while a flush is under way")
	}
	l.flushing.Add(-1)
	l.setServe(false)
	if l.lease("k").valid() {
		t.Error("got a lease while nothing is served")
	}
	if l.put(place{key: "k"}, copied{}, lease{}, time.Hour, forever) {
		t.Error("a copy without a lease was stored")
	}
}

// TestLocalTime tests from when on a copy is not served: its time counts from
// the lease, not from when it was stored.
func TestLocalTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serving(t, 1<<20)
		defer l.close()
		p := place{key: "k"}
		for _, test := range []struct {
			ttl, until, want time.Duration
		}{
			{time.Second, forever, time.Second},
			{time.Second, 300 * time.Millisecond, 300 * time.Millisecond},
			{time.Second, 2 * time.Second, time.Second},
		} {
			start := l.now()
			lease := l.lease(p.key)
			time.Sleep(100 * time.Millisecond)
			until := test.until
			if until != forever {
				until += start
			}
			if !l.put(p, copied{text: "v"}, lease, test.ttl, until) {
				t.Fatal("the copy was not stored")
			}
			time.Sleep(start + test.want - l.now() - 1)
			if _, ok := l.get(p); !ok {
				t.Errorf("%+v: not served 1 ns before", test)
			}
			time.Sleep(1 * time.Nanosecond)
			if _, ok := l.get(p); ok {
				t.Errorf("%+v: served then", test)
			}
		}
		lease := l.lease(p.key)
		time.Sleep(time.Second)
		if l.put(p, copied{}, lease, time.Second, forever) {
			t.Error("a copy whose time is over was stored")
		}
	})
}

// TestLocalMemory fills the cache, and compares what it says that it takes with
// what the heap says.
func TestLocalMemory(t *testing.T) {
	limit := 8 << 20
	if testing.Short() {
		limit = 2 << 20
	}
	for _, test := range []struct{ fields, size int }{
		{0, 0}, {0, 10}, {0, 1000}, {0, 50_000}, {1, 10}, {8, 1}, {9, 10}, {57, 10}, {113, 10}, {113, 100}, {900, 10},
	} {
		name := fmt.Sprintf("values of %d bytes, hashes of %d fields", test.size, test.fields)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		l := serving(t, int64(limit))
		for i, total := 0, int64(0); total < 2*int64(limit); i++ {
			key := fmt.Sprintf("some:key:%08d", i)
			c, p := copied{text: strings.Repeat("x", test.size)}, place{key: key}
			if test.fields > 0 {
				c, p.kind = copied{fields: make(map[string]string)}, fields
				for f := range test.fields {
					c.fields[fmt.Sprint("field", f)] = strings.Repeat("x", test.size)
				}
			}
			total += c.size(p)
			l.put(p, c, l.lease(key), time.Hour, forever)
		}
		l.cache.CleanUp()
		runtime.GC()
		runtime.ReadMemStats(&after)
		weight := l.cache.WeightedSize()
		heap := after.HeapAlloc - before.HeapAlloc
		t.Logf("%s: %d copies, %.2f MB counted, %.2f MB of heap", name, l.cache.EstimatedSize(), float64(weight)/1e6, float64(heap)/1e6)
		if weight > uint64(limit) {
			t.Errorf("%s: got %d counted, want %d at most", name, weight, limit)
		}
		if fixed := uint64(1 << 20); heap > weight*12/10+fixed {
			t.Errorf("%s: got %d bytes of heap, want no more than a fifth above %d and %d for the cache itself", name, heap, weight, fixed)
		}
		if weight < uint64(limit)*8/10 {
			t.Errorf("%s: got %d counted, want nearly %d", name, weight, limit)
		}
		runtime.KeepAlive(l)
	}
}

func TestLocalLarge(t *testing.T) {
	l := serving(t, 1<<20)
	for _, size := range []int{1<<18 - overhead - 1, 1<<18 - overhead} {
		got := l.put(place{key: "k"}, copied{text: strings.Repeat("x", size)}, l.lease("k"), time.Hour, forever)
		if want := size < 1<<18-overhead; got != want {
			t.Errorf("value of %d bytes: got stored = %t, want %t", size, got, want)
		}
	}
}

// TestGuardSpread tests that keys spread over the slots.
func TestGuardSpread(t *testing.T) {
	var g guard
	random := rand.New(rand.NewPCG(1, 2))
	for range 1 << slotBits {
		g.invalidate(fmt.Sprint("user:", random.Uint64()))
	}
	empty := 0
	for i := range g.slots {
		if g.slots[i].Load() == 0 {
			empty++
		}
	}
	if want := float64(len(g.slots)) / 2.718; float64(empty) < 0.95*want || float64(empty) > 1.05*want {
		t.Errorf("got %d empty slots, want about %.0f", empty, want)
	}
}

package main

import (
	"bytes"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRun plays a short sale in both modes, and with all servers given, in which
// no read may be too stale.
func TestRun(t *testing.T) {
	for _, test := range []struct {
		name  string
		args  func(t *testing.T) string
		local string // what is known of the sale's key
	}{
		{"embedded", func(*testing.T) string { return "-mode embedded" }, ", [1-9]"},
		{"cluster", func(*testing.T) string { return "-mode cluster" }, ", [1-9]"},
		{"addresses", func(t *testing.T) string {
			return "-transport redis -redis " + testserver.Redis(t).Addr + " -etcd http://" + testserver.Etcd(t).Addr
		}, `\n`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // they wait, most of the time
			var out, problems bytes.Buffer
			args := strings.Fields("-rate 1000 -workers 4 -nodes 2 -keys 500 -top 50 -change 50ms -off 500ms -calm 2s -rise 500ms -sale 2s " +
				"-hot-within 0 -local 0 -local-sale 0 " + test.args(t))
			if status := run(t.Context(), args, &out, &problems); status != 0 {
				t.Errorf("got status %d, %s; want 0", status, &problems)
			}
			for _, want := range []string{
				`(?m)^ +\d+  sale .*%`,
				`hot after crossing the threshold, by node:  [0-9.]+ s  [0-9.]+ s\n`,
				`served locally in the sale: [1-9][0-9.]*% of all reads` + test.local,
				`stale for longer than 2s: 0; on the node that wrote: 0\n$`,
			} {
				if !regexp.MustCompile(want).Match(out.Bytes()) {
					t.Errorf("got\n%s\nwant %q in it", &out, want)
				}
			}
		})
	}
}

func TestArguments(t *testing.T) {
	for _, args := range []string{
		"-mode x", "-transport x", "-transport redis", "-nodes 0", "-workers 0", "-rate 0", "-rate NaN", "-share 0", "-share 1.1",
		"-keys 0", "-skew 1", "-top 0", "-change 0s", "-sale 0s", "-off -1s",
		"-hot-within -1s", "-local -1", "-local NaN", "-local-sale 1.1", "more", "-unknown",
	} {
		var out, problems bytes.Buffer
		if status := run(t.Context(), strings.Fields(args), &out, &problems); status != 2 || problems.Len() == 0 {
			t.Errorf("%s: got status %d, %q; want 2 and a reason", args, status, &problems)
		}
	}
}

// TestFaults has each of what is demanded not come out, alone.
func TestFaults(t *testing.T) {
	demand, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	good := func() *result {
		return &result{
			judge: newJudge(2 * time.Second), exact: true, found: []time.Duration{0, 3 * time.Second},
			sale: span{reads: 100, hits: 80, saleReads: 100, saleOps: 5},
		}
	}
	for _, test := range []struct {
		change func(*result)
		want   string
	}{
		{func(*result) {}, ""},
		{func(r *result) { r.exact, r.sale.saleOps = false, 0 }, ""},
		{func(r *result) { r.judge.beyond.Store(1) }, "1 reads were stale for longer than 2s"},
		{func(r *result) { r.judge.own.Store(2) }, "2 reads missed what their node had written"},
		{func(r *result) { r.failed, r.problem = 3, io.EOF }, "3 requests failed, the last: EOF"},
		{func(r *result) { r.found[0] = -1 }, "node 0 did not find the sale's key"},
		{func(r *result) { r.found[1]++ }, "node 1 found the sale's key after 3.000000001s, later than -hot-within = 3s"},
		{func(r *result) { r.sale.hits-- }, "79.0% of all reads were served locally, less than -local = 0.8"},
		{func(r *result) { r.sale.reads = 0 }, "0.0% of all reads were served locally, less than -local = 0.8"},
		{func(r *result) { r.sale.saleOps++ }, "94.0% of the reads of the sale's key were served locally, less than -local-sale = 0.95"},
		{func(r *result) { r.sale.saleReads = 0 }, "0.0% of the reads of the sale's key were served locally, less than -local-sale = 0.95"},
	} {
		r := good()
		test.change(r)
		if got := strings.Join(r.faults(demand), "; "); got != test.want {
			t.Errorf("got faults %q, want %q", got, test.want)
		}
	}
}

func TestJudge(t *testing.T) {
	a, b := &node{}, &node{}
	j := newJudge(time.Hour)
	before := time.Now()
	j.read("k", a, before, 0)
	if got := j.next("k"); got != 1 {
		t.Fatalf("got version %d, want 1", got)
	}
	j.written("k", a)
	j.next("k")
	j.written("k", b)
	after := time.Now().Add(time.Minute)
	for _, test := range []struct {
		n                  *node
		start              time.Time
		version            int
		stale, own, beyond uint64
	}{
		{a, before, 0, 0, 0, 0},
		{a, after, 2, 0, 0, 0},
		{a, after, 1, 1, 0, 0},
		{a, after, 0, 1, 1, 0},
		{b, after, 1, 1, 1, 0},
		{a, after.Add(2 * time.Hour), 1, 1, 0, 1},
	} {
		j.stale.Store(0)
		j.own.Store(0)
		j.beyond.Store(0)
		j.read("k", test.n, test.start, test.version)
		if j.stale.Load() != test.stale || j.own.Load() != test.own || j.beyond.Load() != test.beyond {
			t.Errorf("version %d: got %d stale, %d own, %d beyond; want %d, %d, %d", test.version,
				j.stale.Load(), j.own.Load(), j.beyond.Load(), test.stale, test.own, test.beyond)
		}
	}
}

func TestHistogram(t *testing.T) {
	last := -1
	for _, n := range []uint64{0, 1, 15, 16, 17, 31, 32, 33, 100, 1000, 1 << 20, 1<<20 + 1<<16, math.MaxInt64} {
		i := bucket(n)
		if i < last || uint64(least(i)) > n || i+1 < 1024 && n < math.MaxInt64 && uint64(least(i+1)) <= n {
			t.Errorf("%d: got bucket %d, from %d to %d", n, i, least(i), least(i+1))
		}
		last = i
	}
	var h histogram
	var all []time.Duration
	for i := range 1000 {
		d := time.Duration(i*i) * time.Microsecond
		all = append(all, d)
		h.add(d)
	}
	slices.Sort(all)
	c := h.take()
	for _, q := range []float64{0, 0.5, 0.99} {
		got, want := c.quantile(q), all[int(q*1000)]
		if got > want || float64(got) < 0.93*float64(want) {
			t.Errorf("quantile %v: got %v, want %v or a little less", q, got, want)
		}
	}
	if again := h.take(); c.total() != 1000 || again.total() != 0 {
		t.Errorf("got %d, then %d; want 1000, 0", c.total(), again.total())
	}
}

func TestZipfShare(t *testing.T) {
	var sum float64
	for rank := 1; rank <= 50; rank++ {
		sum += zipfShare(1.2, 50, rank)
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("got %v in all, want 1", sum)
	}
}

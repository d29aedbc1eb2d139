package faulttest

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
	"github.com/heavykeeper-go/heavykeeper/tmc/server"
)

var enabled = flag.Bool("faults", false, "play the faults, which takes minutes")

var long = flag.Bool("long", false, "keep up each fault for longer, and play all with both channels")

func TestMain(m *testing.M) {
	if text := os.Getenv(nodeVariable); text != "" {
		os.Exit(nodeMain(text))
	}
	flag.Parse()
	os.Exit(m.Run())
}

const (
	slot   = 300 * time.Millisecond
	window = 10 * slot
	ttl    = 6 * time.Second
	ping   = 500 * time.Millisecond
	bound  = 2 * ping // of the channels
)

// slack is what passes between the acknowledgement of a write and the moment
// that it was published: next to nothing, but this machine may be busy.
const slack = 2 * time.Second

// fault is something that goes wrong for a while.
type fault struct {
	name  string
	begin func(s *system)
	end   func(s *system)

	// data says that the path to the Redis with the data is touched, so that
	// plain requests may fail too.
	data bool

	// writers says that nodes that write may not reach the channel, so that
	// only the time to live bounds what others read.
	writers bool

	// forgets says that a server or a node loses its memory, and with it what
	// it had counted. loses says that reports are lost that must be counted.
	forgets, loses bool

	// etcd says that it is for that channel only.
	etcd bool

	// short says that it is part of the short form.
	short bool
}

func nothing(*system) {}

var faults = []fault{
	{name: "none", begin: nothing, end: nothing},
	{name: "a server is killed", forgets: true, short: true,
		begin: func(s *system) { s.servers[0].Kill() }, end: func(s *system) { s.servers[0].Start() }},
	{name: "both servers are killed", forgets: true,
		begin: func(s *system) { s.servers[0].Kill(); s.servers[1].Kill() },
		end:   func(s *system) { s.servers[0].Start(); s.servers[1].Start() }},
	{name: "a server is stopped and goes on",
		begin: func(s *system) { s.servers[1].Pause() }, end: func(s *system) { s.servers[1].Resume() }},
	{name: "a reading node is cut off from the channel", short: true,
		begin: func(s *system) { s.push[2].Partition() }, end: func(s *system) { s.push[2].Heal() }},
	{name: "a writing node is cut off from the channel", writers: true,
		begin: func(s *system) { s.push[0].Partition() }, end: func(s *system) { s.push[0].Heal() }},
	{name: "all connections to the channel break", writers: true,
		begin: func(s *system) {
			for _, p := range s.push {
				p.Reset()
			}
		}, end: nothing},
	{name: "Redis is 20 ms slow", data: true, short: true,
		begin: func(s *system) { s.slow(20 * time.Millisecond) }, end: func(s *system) { s.slow(0) }},
	{name: "Redis is 700 ms slow", data: true, writers: true,
		begin: func(s *system) { s.slow(700 * time.Millisecond) }, end: func(s *system) { s.slow(0) }},
	{name: "Redis is stopped and goes on", data: true, writers: true,
		begin: func(s *system) { s.redis.Pause() }, end: func(s *system) { s.redis.Resume() }},
	{name: "Redis is killed and comes back empty", data: true, writers: true, short: true,
		begin: func(s *system) { s.redis.Kill() }, end: func(s *system) { s.redis.Start() }},
	{name: "Redis is killed with reports in it", data: true, writers: true, loses: true,
		begin: func(s *system) {
			for _, server := range s.servers {
				server.Pause()
			}
			time.Sleep(slot + time.Second) // reports are sent, and not received
			s.redis.Kill()
			s.redis.Start()
		},
		end: func(s *system) {
			for _, server := range s.servers {
				server.Resume()
			}
		}},
	{name: "etcd is killed", etcd: true, writers: true, short: true,
		begin: func(s *system) { s.etcd.Kill() }, end: func(s *system) { s.etcd.Start() }},
	{name: "etcd is stopped and goes on", etcd: true, writers: true,
		begin: func(s *system) { s.etcd.Pause() }, end: func(s *system) { s.etcd.Resume() }},
	{name: "a node is killed", forgets: true,
		begin: func(s *system) { s.nodes[1].restart() }, end: nothing},
	{name: "a node is stopped and goes on", writers: true,
		begin: func(s *system) { s.nodes[2].signal(syscall.SIGSTOP) }, end: func(s *system) { s.nodes[2].signal(syscall.SIGCONT) }},
}

// played reports whether a fault is played, with etcd for the channel or without.
// Unless all are asked for, those that are not about the channel are played once.
func (f fault) played(etcd bool) bool {
	switch {
	case f.etcd && !etcd:
		return false
	case testing.Short():
		return f.short && f.etcd == etcd
	}
	return *long || !etcd || f.etcd || strings.Contains(f.name, "channel")
}

// system is all that runs.
type system struct {
	t       *testing.T
	redis   *testserver.Server
	etcd    *testserver.Server // nil: the channel is on Redis
	servers []*testserver.Server
	data    []*testserver.Proxy // before Redis, of each node
	push    []*testserver.Proxy // before the channel, of each node
	nodes   []*process
	account account // as of the latest rest
}

func TestFaults(t *testing.T) {
	if !*enabled {
		t.Skip("needs -faults")
	}
	if runtime.GOARCH == "386" {
		t.Skip("shares 64-bit counters between processes")
	}
	command := filepath.Join(t.TempDir(), "tmc-server")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", command, "../cmd/tmc-server")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building tmc-server: %v\n%s", err, out)
	}
	for _, etcd := range []bool{false, true} {
		name := "channel on Redis"
		if etcd {
			name = "channel on etcd"
		}
		t.Run(name, func(t *testing.T) { play(t, command, etcd) })
	}
}

// play plays the faults of a channel.
func play(t *testing.T, command string, etcd bool) {
	s := newSystem(t, command, etcd)
	s.recover("the start")
	before := s.resources()
	s.account = s.rest()
	lasts := 2 * time.Second
	switch {
	case *long:
		lasts = 15 * time.Second
	case testing.Short():
		lasts = 1500 * time.Millisecond
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "fault\trequests\tfailed\tplain failed\tbeyond plain\tlocal\tstale\tbound\tback after\tdropped\tlost\tuncounted\t")
	for _, f := range faults {
		if !f.played(etcd) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			s.t = t
			fmt.Fprintln(w, s.play(f, lasts))
		})
		s.t = t
	}
	w.Flush()
	t.Logf("%s, window %v, time to live %v, %d processors:\n%s", t.Name(), window, ttl, runtime.NumCPU(), table.String())
	s.finish(before)
}

func newSystem(t *testing.T, command string, etcd bool) *system {
	s := &system{t: t, redis: testserver.Redis(t)}
	channel := s.redis.Addr
	if etcd {
		s.etcd = testserver.Etcd(t)
		channel = s.etcd.Addr
	}
	base := filepath.Join(t.TempDir(), "base.json")
	if err := os.WriteFile(base, []byte(`{"rate":15,"topN":50}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		addr := testserver.FreeAddr(t)
		args := []string{"-listen", addr, "-redis", s.redis.Addr, "-config", "none", "-config-base", base,
			"-slot", slot.String(), "-lease", "1s"}
		if etcd {
			args = append(args, "-push", "etcd", "-etcd", "http://"+channel)
		}
		log := logs(t, fmt.Sprint("server-", i))
		s.servers = append(s.servers, testserver.Program(t, addr, "/readyz", func() *exec.Cmd {
			cmd := exec.Command(command, append([]string{"-name", fmt.Sprint("server-", i)}, args...)...)
			cmd.Stderr = log
			return cmd
		}))
	}
	truth := filepath.Join(t.TempDir(), "truth")
	for i, writes := range [][]int{{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}, nil} {
		s.data = append(s.data, testserver.NewProxy(t, s.redis.Addr))
		s.push = append(s.push, testserver.NewProxy(t, channel))
		s.nodes = append(s.nodes, startNode(t, nodeConfig{
			Name: fmt.Sprint("node-", i), Data: s.data[i].Addr, Push: s.push[i].Addr, Etcd: etcd,
			Writes: writes, Truth: truth, TTL: ttl, Ping: ping,
		}))
	}
	return s
}

// slow has all that nodes send to Redis, and what it answers, take longer.
func (s *system) slow(d time.Duration) {
	for _, p := range s.data {
		p.Slow(d / 2)
	}
	if s.etcd == nil {
		for _, p := range s.push {
			p.Slow(d / 2)
		}
	}
}

// amiss returns what nodes have told since it was called before: the longest
// staleness, and the failures that plain requests do not excuse.
func (s *system) amiss() (stale time.Duration, unexcused []string) {
	for _, n := range s.nodes {
		stale = max(stale, n.stale)
		unexcused = append(unexcused, n.unexcused...)
		n.stale, n.unexcused = 0, nil
	}
	return stale, unexcused
}

// total adds up what all nodes tell.
func (s *system) total() (sum nodeReport, each []nodeReport) {
	s.t.Helper()
	for _, n := range s.nodes {
		r := n.ask("report")
		each = append(each, r)
		sum.Requests += r.Requests
		sum.Failed += r.Failed
		sum.Plain += r.Plain
		sum.PlainFails += r.PlainFails
		sum.OwnStale += r.OwnStale
		sum.Stats.Reads += r.Stats.Reads
		sum.Stats.Hits += r.Stats.Hits
		sum.Stats.Dropped += r.Stats.Dropped
		sum.OwnDetail += r.OwnDetail
	}
	return sum, each
}

// counted returns what servers tell: the reads that they counted, and the
// reports that were lost.
func (s *system) counted() (occurrences, lost uint64) {
	s.t.Helper()
	for i := range s.servers {
		stats, err := s.stats(i)
		if err != nil {
			s.t.Fatal(err)
		}
		lost += stats.Transport.Lost - stats.Transport.Late
		for _, a := range stats.Apps {
			occurrences += a.Occurrences + a.Late
		}
	}
	return occurrences, lost
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

func (s *system) stats(i int) (stats server.Stats, err error) {
	response, err := client.Get("http://" + s.servers[i].Addr + "/?format=json")
	if err != nil {
		return stats, err
	}
	defer response.Body.Close()
	return stats, json.NewDecoder(response.Body).Decode(&stats)
}

// detects reports whether servers find all hot keys, each those of its share.
func (s *system) detects() bool {
	found := 0
	for i := range s.servers {
		stats, err := s.stats(i)
		if err != nil {
			return false
		}
		for _, a := range stats.Apps {
			found += a.Detector.Hot
		}
	}
	return found >= hotKeys
}

// recover waits until servers find the hot keys and all nodes serve them
// locally, and returns how long that took.
func (s *system) recover(what string) time.Duration {
	s.t.Helper()
	start := time.Now()
	_, before := s.total()
	for {
		time.Sleep(200 * time.Millisecond)
		_, after := s.total()
		all := true
		for i := range after {
			reads, hits := after[i].Stats.Reads-before[i].Stats.Reads, after[i].Stats.Hits-before[i].Stats.Hits
			all = all && after[i].Stats.Serving && after[i].Stats.HotKeys >= hotKeys && reads > 0 && 2*hits >= reads
		}
		if all && s.detects() {
			return time.Since(start)
		}
		if time.Since(start) > 20*window {
			s.t.Fatalf("%s: nodes do not serve locally again within %v: %+v", what, 20*window, after)
		}
		before = after
	}
}

// account is what has become of reads: those that servers counted, and the
// others.
type account struct{ reads, dropped, counted, lost uint64 }

// rest has nodes pause until servers have received all reports, and returns
// what has been counted.
func (s *system) rest() account {
	s.t.Helper()
	for _, n := range s.nodes {
		n.ask("pause")
	}
	var a account
	quiet := 0
	for range 100 {
		time.Sleep(200 * time.Millisecond)
		sum, each := s.total()
		queued := 0
		for _, r := range each {
			queued += r.Stats.Queue
		}
		c, l := s.counted()
		next := account{sum.Stats.Reads, sum.Stats.Dropped, c, l}
		if queued > 0 || a != next {
			quiet = 0
		}
		a = next
		if quiet++; quiet == 4 {
			return a
		}
	}
	s.t.Fatal("reports still come 20 s after all reads")
	return a
}

// play plays a fault and checks what it demands of all. It returns a line of
// the table.
func (s *system) play(f fault, lasts time.Duration) string {
	s.t.Helper()
	for _, n := range s.nodes {
		n.ask("resume")
	}
	s.recover("before " + f.name)
	before, _ := s.total()
	s.amiss()
	f.begin(s)
	time.Sleep(lasts)
	f.end(s)
	back := s.recover(f.name)
	time.Sleep(lasts / 3) // old values may come up yet
	after, _ := s.total()
	account, last := s.rest(), s.account
	s.account = account
	s.total() // decides on the failures of the end
	stale, unexcused := s.amiss()

	limit := bound + slack
	if f.writers {
		limit = ttl
	}
	failed := after.Failed - before.Failed
	switch {
	case len(unexcused) > 0:
		s.t.Errorf("%s: requests failed when plain ones did not: %q", f.name, unexcused)
	case !f.data && failed > 0:
		s.t.Errorf("%s: %d requests failed, which has nothing to do with the data", f.name, failed)
	}
	if stale > limit {
		s.t.Errorf("%s: a read returned what was overwritten %v before, more than %v", f.name, stale, limit)
	}
	if after.OwnStale > before.OwnStale {
		s.t.Errorf("%s: %d reads missed what their node had written: %s", f.name, after.OwnStale-before.OwnStale, after.OwnDetail)
	}
	uncounted := int64(account.reads-last.reads) - int64(account.counted-last.counted) - int64(account.dropped-last.dropped)
	lost, note := int64(account.lost-last.lost), fmt.Sprint(uncounted)
	switch {
	case f.forgets:
		note = "-"
		if lost < 0 { // servers count from 0 again
			lost = int64(account.lost)
		}
	case uncounted > 0 && lost == 0:
		s.t.Errorf("%s: %d reads are not counted, and not told of as dropped, and no report as lost", f.name, uncounted)
	case f.loses && lost == 0:
		s.t.Errorf("%s: no report is told of as lost", f.name)
	}
	rate := float64(after.Stats.Hits-before.Stats.Hits) / float64(max(1, after.Stats.Reads-before.Stats.Reads))
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%.0f %%\t%v\t%v\t%v\t%d\t%d\t%s\t", f.name,
		after.Requests-before.Requests, failed, after.PlainFails-before.PlainFails, len(unexcused), 100*rate,
		stale.Round(time.Millisecond), limit, back.Round(100*time.Millisecond), account.dropped-last.dropped, lost, note)
}

// resources are what might leak.
type resources struct{ goroutines, files int }

// resources returns what all nodes have.
func (s *system) resources() (list []resources) {
	_, each := s.total()
	for _, r := range each {
		list = append(list, resources{r.Goroutines, r.Files})
	}
	return list
}

// finish ends all in order and looks for leaks.
func (s *system) finish(before []resources) {
	s.t.Helper()
	for _, n := range s.nodes {
		n.ask("resume")
	}
	s.recover("the end")
	for i, after := range s.resources() {
		s.t.Logf("node %d: %d goroutines and %d sockets, %d and %d before the faults", i, after.goroutines, after.files, before[i].goroutines, before[i].files)
		// Pools may have grown to all their connections.
		if after.goroutines > before[i].goroutines+20 || after.files > before[i].files+60 {
			s.t.Errorf("node %d: has leaked", i)
		}
	}
	for i, n := range s.nodes {
		if r := n.close(); r.Goroutines > 0 {
			s.t.Errorf("node %d: %d goroutines are left after all was closed", i, r.Goroutines)
		}
	}
	for _, server := range s.servers {
		server.Terminate()
	}
}

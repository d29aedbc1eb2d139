package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/kafka"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/redisstream"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func environment(string) string { return "" }

// buffer is a [bytes.Buffer] for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start runs the command until the test ends, and checks its exit status.
func start(t *testing.T, args ...string) (addr string) {
	t.Helper()
	addr = testserver.FreeAddr(t)
	ctx, cancel := context.WithCancel(context.Background())
	log := new(buffer)
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"-listen", addr, "-log-format", "json"}, args...), environment, io.Discard, log)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case code := <-done:
			if code != 0 {
				t.Errorf("exit status %d, want 0", code)
			}
		case <-time.After(20 * time.Second):
			t.Error("did not end within 20 s")
		}
		if t.Failed() {
			t.Log(log)
		}
	})
	return addr
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func get(addr, path string) (code int, body string) {
	response, err := client.Get("http://" + addr + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(data)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// TestServes runs the command with each transport, and finds a hot key on its
// pages.
func TestServes(t *testing.T) {
	m := miniredis.RunT(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer client.Close()
	streams, err := redisstream.NewPublisher(redisstream.Options{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	defer streams.Close()
	seeds := cluster.ListenAddrs()[0]
	topic, err := kafka.NewPublisher(kafka.Options{Seeds: []string{seeds}})
	if err != nil {
		t.Fatal(err)
	}
	defer topic.Close()
	for _, test := range []struct {
		name      string
		publisher wire.Publisher
		args      []string
	}{
		{"redis", streams, nil},
		{"kafka", topic, []string{"-transport", "kafka", "-kafka", seeds, "-kafka-partitions", "4", "-prefix", "other"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			addr := start(t, append(test.args, "-redis", m.Addr(), "-slot", "100ms", "-lease", "300ms")...)
			eventually(t, "ready", func() bool { code, _ := get(addr, "/readyz"); return code == http.StatusOK })
			eventually(t, "a hot key on the page", func() bool {
				r := wire.Report{App: "shop", Node: "n", At: time.Now(), Counts: []wire.Count{{Key: "item:1", N: 100}}}
				if err := test.publisher.Publish(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				_, body := get(addr, "/")
				return strings.Contains(body, "item:1")
			})
			for path, want := range map[string]string{
				"/healthz":       "ok",
				"/metrics":       `tmc_server_app_hot_keys{app="shop"} 1`,
				"/app?name=shop": "item:1",
				"/?format=json":  `"Key":"item:1"`,
			} {
				if code, body := get(addr, path); code != http.StatusOK || !strings.Contains(body, want) {
					t.Errorf("%s: got %d, which does not have %q", path, code, want)
				}
			}
		})
	}
}

// TestStartsFirst starts the command before the Redis and the Kafka that it
// connects to: it serves its pages, waits for them, and creates its topic.
func TestStartsFirst(t *testing.T) {
	redis, broker := testserver.FreeAddr(t), testserver.FreeAddr(t)
	addr := start(t, "-redis", redis, "-transport", "kafka", "-kafka", broker, "-kafka-partitions", "4", "-slot", "100ms")
	eventually(t, "alive", func() bool { code, _ := get(addr, "/healthz"); return code == http.StatusOK })
	eventually(t, "ready", func() bool { code, _ := get(addr, "/readyz"); return code == http.StatusOK })
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr(redis); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, text, _ := net.SplitHostPort(broker)
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	eventually(t, "all partitions", func() bool {
		_, body := get(addr, "/metrics")
		return strings.Contains(body, "\ntmc_server_shards 4\n")
	})
}

// TestArguments runs the command with arguments that end it.
func TestArguments(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.json", `{"rate":5}`)
	bad := file("bad.json", `{"rate":-5}`)
	taken := miniredis.RunT(t)
	for _, test := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"-help", 0, "", "-transport"},
		{"-nonsense", 2, "", "-nonsense"},
		{"-slot soon", 2, "", "soon"},
		{"start", 2, "", `unexpected argument "start"`},
		{"-transport pigeon", 2, "", `-transport = "pigeon": must be one of: redis kafka`},
		{"-push pigeon", 2, "", "-push"},
		{"-config pigeon", 2, "", "-config"},
		{"-log-level loud", 2, "", "-log-level"},
		{"-log-format xml", 2, "", "-log-format"},
		{"-kafka-partitions -2", 2, "", "-kafka-partitions = -2"},
		{"-kafka-partitions 100001", 2, "", "-kafka-partitions = 100001"},
		{"-kafka-replicas 0", 2, "", "-kafka-replicas = 0"},
		{"-kafka-replicas 65535", 2, "", "-kafka-replicas = 65535"},
		{"-check " + good, 0, "good.json: good", ""},
		{"-check " + bad, 1, "", "Rate = -5"},
		{"-check " + filepath.Join(dir, "none"), 1, "", "no such file"},
		{"-config-base " + bad, 1, "", "Rate = -5"},
		{"-slots 1", 1, "", "Slots = 1"},
		{"-shards -1", 1, "", "Shards = -1"},
		{"-retain 30s", 2, "", "-retain = 30s: must be more than -refresh times -slot"},
		{"-slot 1m", 2, "", "-retain = 10m0s: must be more"},
		{"-retain 1001h", 1, "", "Retain = 1001h"},
		{"-transport kafka -kafka-session 1ns", 1, "", "Session = 1ns"},
		{"-listen " + taken.Addr(), 1, "", "address already in use"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(test.args), environment, &stdout, &stderr)
		if code != test.code || !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
			t.Errorf("%s: got status %d, output %q and %q, want %d, %q and %q", test.args, code, &stdout, &stderr, test.code, test.stdout, test.stderr)
		}
	}
}

// TestShardsDiffer starts a server with another number of shards than others
// have: it ends and says why, rather than miss some.
func TestShardsDiffer(t *testing.T) {
	m := miniredis.RunT(t)
	m.Set("tmc:{tmc}:shards", "8")
	var stderr bytes.Buffer
	code := run(t.Context(), strings.Fields(fmt.Sprintf("-listen 127.0.0.1:0 -redis %s", m.Addr())), environment, io.Discard, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "Shards = 16") {
		t.Errorf("got status %d and %s, want 1 and the shards", code, &stderr)
	}
}

// TestEtcd runs the command with all that etcd can do.
func TestEtcd(t *testing.T) {
	etcd, m := testserver.Etcd(t), miniredis.RunT(t)
	addr := start(t, "-redis", m.Addr(), "-etcd", "http://"+etcd.Addr, "-push", "etcd", "-config", "etcd", "-slot", "100ms")
	eventually(t, "ready", func() bool { code, _ := get(addr, "/readyz"); return code == http.StatusOK })
}

package tmc

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
)

// benchRedis returns the address of a server on loopback: Redis if it is
// installed, else miniredis.
func benchRedis(b *testing.B) string {
	if _, err := exec.LookPath("redis-server"); err == nil {
		return testserver.Redis(b).Addr
	}
	b.Log("redis-server is not installed: using miniredis")
	return miniredis.RunT(b).Addr()
}

func benchClient(b *testing.B, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr})
	b.Cleanup(func() { client.Close() })
	return client
}

func benchAttach(b *testing.B, client *redis.Client, options Options) *Cache {
	options.Alone, options.Logger = true, slog.New(slog.DiscardHandler)
	cache, err := Attach(client, options)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cache.Close() })
	return cache
}

// coldOnly has no key hot, so that every read passes.
var coldOnly = Options{Hot: hotspot.Config[string]{Rate: 1e12}}

func get(b *testing.B, client *redis.Client, key string) {
	if _, err := client.Get(context.Background(), key).Result(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPassingGet reads a key that is not hot, by a client that is attached
// and by one that is not, in turn, so that both see the same machine. It
// reports what the hook adds to a read: the median of pairs of blocks of reads.
func BenchmarkPassingGet(b *testing.B) {
	addr := benchRedis(b)
	plain, attached := benchClient(b, addr), benchClient(b, addr)
	benchAttach(b, attached, coldOnly)
	plain.Set(context.Background(), "key", strings.Repeat("x", 100), 0)
	const block = 50
	run := func(client *redis.Client) time.Duration {
		start := time.Now()
		for range block {
			get(b, client, "key")
		}
		return time.Since(start)
	}
	for range 20 { // connect
		run(plain)
		run(attached)
	}
	var ratios []float64
	b.ResetTimer()
	for n := 0; n < b.N; n += 2 * block {
		// Either is the first of a pair as often as the other.
		first, second := plain, attached
		if n/(2*block)%2 == 1 {
			first, second = attached, plain
		}
		x, y := run(first), run(second)
		if first == attached {
			x, y = y, x
		}
		ratios = append(ratios, float64(y)/float64(x))
	}
	b.ReportMetric(100*(median(ratios)-1), "%-added")
}

// BenchmarkHook has the hook pass a read on to nothing: what it costs by itself.
func BenchmarkHook(b *testing.B) {
	client := benchClient(b, "127.0.0.1:1")
	cache := benchAttach(b, client, coldOnly)
	h := &hook{cache: cache}
	h.attaching.Store(true)
	process := h.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	ctx := context.Background()
	for _, line := range []string{"get key", "strlen key", "set key value", "mget a b c d e f g h"} {
		b.Run("command="+strings.Fields(line)[0], func(b *testing.B) {
			cmd := redis.NewCmd(ctx, split(line)...)
			b.ReportAllocs()
			for b.Loop() {
				_ = process(ctx, cmd)
			}
		})
	}
}

// BenchmarkRead compares a read that is served locally with the round trip that
// it saves, in turn, so that both see the same machine. It reports the medians of
// blocks of reads, and of how many times longer the one takes in a pair of them.
//
// The process holds as much as a full cache. With a heap of nothing else, the
// copies that callers get would have it collected every few hundred reads.
func BenchmarkRead(b *testing.B) {
	ballast := make([]byte, 64<<20)
	for _, size := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint("bytes=", size), func(b *testing.B) {
			addr := benchRedis(b)
			plain, attached := benchClient(b, addr), benchClient(b, addr)
			benchAttach(b, attached, Options{Hot: allHot, TTL: time.Hour})
			plain.Set(context.Background(), "key", strings.Repeat("x", size), 0)
			const block = 50
			run := func(client *redis.Client) float64 {
				start := time.Now()
				for range block {
					get(b, client, "key")
				}
				return float64(time.Since(start)) / block
			}
			var remote, local, ratios []float64
			run(plain)
			run(attached)
			b.ResetTimer()
			for n := 0; n < b.N; n += 2 * block {
				x, y := run(plain), run(attached)
				remote, local, ratios = append(remote, x), append(local, y), append(ratios, x/y)
			}
			b.ReportMetric(median(remote), "redis-ns/read")
			b.ReportMetric(median(local), "local-ns/read")
			b.ReportMetric(median(ratios), "times-faster")
		})
	}
	runtime.KeepAlive(ballast)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkReadParallel reads one hot key from all processors.
func BenchmarkReadParallel(b *testing.B) {
	addr := miniredis.RunT(b).Addr()
	client := benchClient(b, addr)
	benchAttach(b, client, Options{Hot: allHot, TTL: time.Hour})
	client.Set(context.Background(), "key", strings.Repeat("x", 100), 0)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			get(b, client, "key")
		}
	})
}

// TestPassingAllocatesNothing tests that the hook allocates nothing for a read
// that it passes on.
func TestPassingAllocatesNothing(t *testing.T) {
	ctx := t.Context()
	_, cache, _ := attach(t, Options{Hot: hotspot.Config[string]{Rate: 1e12, Rules: []hotspot.Rule{}}})
	h := &hook{cache: cache}
	h.attaching.Store(true)
	process := h.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	for _, line := range []string{"get key", "hget key field", "mget a b c", "strlen key"} {
		cmd := redis.NewCmd(ctx, split(line)...)
		_ = process(ctx, cmd)
		if got := testing.AllocsPerRun(1000, func() { _ = process(ctx, cmd) }); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", line, got)
		}
	}
}

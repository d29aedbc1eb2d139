package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc"
	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
	"github.com/heavykeeper-go/heavykeeper/tmc/live/rediskey"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/redisstream"
)

// TestUsers runs a server and a node as the Redis users of docs/operators.md,
// who must be allowed all that they do.
func TestUsers(t *testing.T) {
	data, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	s := testserver.Redis(t)
	admin := s.Client()
	for _, line := range regexp.MustCompile(`(?m)^    ACL SETUSER .*$`).FindAllString(string(data), -1) {
		var args []any
		for _, word := range strings.Fields(line) {
			args = append(args, word)
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	// What the application uses itself.
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "shop", "on", ">secret", "~item:*", "+set").Err(); err != nil {
		t.Fatal(err)
	}

	addr := testserver.FreeAddr(t)
	ctx, cancel := context.WithCancel(t.Context())
	log, done := new(buffer), make(chan int, 1)
	go func() {
		args := []string{"-listen", addr, "-redis", s.Addr, "-redis-user", "tmc-server", "-slot", "100ms", "-lease", "300ms"}
		done <- run(ctx, args, func(string) string { return "secret" }, log, log)
	}()
	dial := func() *redis.Client {
		return redis.NewClient(&redis.Options{Addr: s.Addr, Username: "shop", Password: "secret"})
	}
	client, side := dial(), dial()
	defer client.Close()
	defer side.Close()
	publisher, err := redisstream.NewPublisher(redisstream.Options{Client: side})
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	cache, err := tmc.Attach(client, tmc.Options{
		App: "shop", Publisher: publisher, ReportEvery: 20 * time.Millisecond, Live: rediskey.Source{Client: side},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	if err := client.Set(t.Context(), "item:1", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a local hit", func() bool {
		for range 50 {
			if err := client.Get(t.Context(), "item:1").Err(); err != nil {
				t.Fatal(err)
			}
		}
		return cache.Stats().Hits > 0
	})
	if stats := cache.Stats(); stats.SendFailures > 0 || stats.ReportFailures > 0 {
		t.Errorf("got %+v, want no failures", stats)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit status %d", code)
	}
	denied, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range denied {
		t.Errorf("denied: %v", entry)
	}
	for _, bad := range []string{"NOPERM", "WARN", "ERROR"} {
		if strings.Contains(log.String(), bad) {
			t.Errorf("the log has %s:\n%s", bad, log)
		}
	}
}

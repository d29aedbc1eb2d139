package redisstream

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// TestConfirmLate confirms a report after the lease has ended and another
// server has stored later numbers: those stay.
func TestConfirmLate(t *testing.T) {
	m := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer client.Close()
	c, err := NewConsumer(Options{Client: client, Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, key := t.Context(), c.options.sequencesKey(0)
	if err := c.createGroup(ctx, 0); err != nil {
		t.Fatal(err)
	}
	s := &shard{sequences: newSequences(10)}
	receive := func(number uint64) {
		id, err := client.XAdd(ctx, &redis.XAddArgs{Stream: c.options.stream(0), Values: []any{"r", "x"}}).Result()
		if err != nil {
			t.Fatal(err)
		}
		read := redis.XReadGroupArgs{Group: group, Consumer: "a", Streams: []string{c.options.stream(0), ">"}}
		if err := client.XReadGroup(ctx, &read).Err(); err != nil {
			t.Fatal(err)
		}
		s.sequences.note("p", number)
		s.received = append(s.received, id)
	}
	for _, step := range []struct {
		until  time.Duration // the lease ends after
		number uint64
		other  string // stored by another server meanwhile
		want   string
	}{
		{time.Hour, 90, "", "90 ffffffffffffffff"},
		{-time.Second, 91, "110 1", "110 1"},
		{time.Hour, 111, "", "111 3"}, // taken over again
	} {
		c.membership.until = time.Now().Add(step.until)
		receive(step.number)
		if step.other != "" {
			m.HSet(key, "p", step.other)
		}
		if err := c.confirm(ctx, s); err != nil {
			t.Fatal(err)
		}
		if got := m.HGet(key, "p"); got != step.want {
			t.Errorf("report %d: got %q stored, want %q", step.number, got, step.want)
		}
		if n, err := client.XLen(ctx, c.options.stream(0)).Result(); err != nil || n != 0 || len(s.received) != 0 {
			t.Errorf("report %d: got %d in the stream and %q to confirm, error %v; want none", step.number, n, s.received, err)
		}
		stored, err := client.HGetAll(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		s.sequences.load(stored)
	}
}

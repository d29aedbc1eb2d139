package tmc

import (
	"context"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// hooked returns the hook of a Cache for which all keys are hot, and which sends
// what it does not serve by f.
func hooked(t *testing.T, options Options, f func(redis.Cmder) error) (*Cache, redis.ProcessHook) {
	t.Helper()
	options.Alone, options.Hot, options.Logger = true, allHot, slog.New(slog.DiscardHandler)
	options, err := options.resolve()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCache(nil, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	h := &hook{cache: c}
	h.attaching.Store(true)
	process := h.ProcessHook(func(_ context.Context, cmd redis.Cmder) error {
		err := f(cmd)
		cmd.SetErr(err)
		return err
	})
	h.ProcessPipelineHook(func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			cmd.SetErr(f(cmd))
		}
		return firstError(cmds)
	})
	return c, process
}

// TestExpiryOfReply tests when a copy ends by what PTTL says: Redis has cut off
// up to 1 ms.
func TestExpiryOfReply(t *testing.T) {
	const asked = time.Hour
	for _, test := range []struct {
		ms   int64
		want time.Duration
	}{
		{-1, forever}, {-2, 0}, {0, asked - time.Millisecond}, {1, asked}, {1000, asked + 999*time.Millisecond},
		{24 * 3600 * 1000, asked + 24*time.Hour - time.Millisecond}, {24*3600*1000 + 1, forever}, {1<<63 - 1, forever},
	} {
		if got := expiry(asked, test.ms); got != test.want {
			t.Errorf("PTTL = %d: got %v, want %v", test.ms, got, test.want)
		}
	}
}

// TestTooLarge tests that a value which is too large for a copy is not copied
// to find that out.
func TestTooLarge(t *testing.T) {
	const size = 1 << 20
	value := strings.Repeat("x", size)
	hash := map[string]string{"f": value}
	c, process := hooked(t, Options{ValueBytes: 1000, IgnoreExpiry: true}, func(cmd redis.Cmder) error {
		switch cmd := cmd.(type) {
		case *redis.StringCmd:
			cmd.SetVal(value)
		case *redis.MapStringStringCmd:
			cmd.SetVal(hash)
		case *redis.SliceCmd:
			cmd.SetVal([]any{value})
		}
		return nil
	})
	ctx := t.Context()
	for _, cmd := range []redis.Cmder{
		redis.NewStringCmd(ctx, "get", "k"), redis.NewStringCmd(ctx, "hget", "h", "f"),
		redis.NewMapStringStringCmd(ctx, "hgetall", "h"), redis.NewSliceCmd(ctx, "mget", "k"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := process(ctx, cmd); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > size/2 {
			t.Errorf("%v: got %d bytes allocated, want much less than %d", cmd.Args(), got, size)
		}
	}
	if s := c.Stats(); s.Copies != 0 || s.Unkept != 4 {
		t.Errorf("got %d copies, %d not kept; want 0, 4", s.Copies, s.Unkept)
	}
}

// TestCommandUsedAgain carries out a command twice: what it returned the first
// time is gone.
func TestCommandUsedAgain(t *testing.T) {
	for _, cmd := range []redis.Cmder{redis.NewStringCmd(t.Context(), "get", "k"), redis.NewCmd(t.Context(), "get", "k")} {
		_, process := hooked(t, Options{Absent: true, IgnoreExpiry: true}, func(redis.Cmder) error { return redis.Nil })
		other := redis.NewStringCmd(t.Context(), "get", "k")
		_ = process(t.Context(), other) // so that there is a copy of nothing
		switch cmd := cmd.(type) {
		case *redis.StringCmd:
			cmd.SetVal("old")
		case *redis.Cmd:
			cmd.SetVal("old")
		}
		if err := process(t.Context(), cmd); !isNil(err) {
			t.Fatalf("%T: got error %v, want redis.Nil", cmd, err)
		}
		if got := reflect.ValueOf(cmd).MethodByName("Val").Call(nil)[0].Interface(); got != "" && got != nil {
			t.Errorf("%T: got value %q beside redis.Nil; want none", cmd, got)
		}
	}
}

// TestShortReply has something between here and Redis answer an MGET with fewer
// values than it has keys: the caller sees that, and no values that are not there.
func TestShortReply(t *testing.T) {
	_, process := hooked(t, Options{IgnoreExpiry: true}, func(cmd redis.Cmder) error {
		switch cmd := cmd.(type) {
		case *redis.StringCmd:
			cmd.SetVal("v")
		case *redis.SliceCmd:
			cmd.SetVal([]any{"short"})
		}
		return nil
	})
	ctx := t.Context()
	for range 2 {
		if err := process(ctx, redis.NewStringCmd(ctx, "get", "a")); err != nil {
			t.Fatal(err)
		}
	}
	cmd := redis.NewSliceCmd(ctx, "mget", "a", "b", "c")
	if err := process(ctx, cmd); err != nil || len(cmd.Val()) != 1 {
		t.Errorf("got %q, %v; want what Redis has answered", cmd.Val(), err)
	}
}

package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestStep(t *testing.T) {
	b := Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for round := range 2 {
		for i, full := range []time.Duration{100, 200, 400, 800, 1000, 1000, 1000} {
			full *= time.Millisecond
			if d := b.step(); d < full/2 || d > full {
				t.Errorf("round %d, wait %d: got %v, want %v to %v", round, i, d, full/2, full)
			}
		}
		b.Reset()
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Backoff{Min: time.Second, Max: time.Minute}
		start := time.Now()
		if err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < time.Second/2 || d > time.Second {
			t.Errorf("waited %v, want 0.5 s to 1 s", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start = time.Now()
		if err := b.Wait(ctx); !errors.Is(err, context.Canceled) || time.Since(start) != 0 {
			t.Errorf("after cancel: got error %v after %v, want context.Canceled at once", err, time.Since(start))
		}
	})
}

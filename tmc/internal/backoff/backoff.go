// Package backoff waits between attempts to reach a server.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff says how long to wait before the next attempt: Min at first, then
// twice as long each time, up to Max. From a half of that to all of it is
// waited, at random, so that those who lost a server together do not all come
// back at once. It is not safe for concurrent use.
type Backoff struct {
	Min, Max time.Duration // more than 0
	next     time.Duration
}

// Wait waits, or returns ctx's error if that ends before.
func (b *Backoff) Wait(ctx context.Context) error {
	timer := time.NewTimer(b.step())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// step returns how long to wait now.
func (b *Backoff) step() time.Duration {
	d := max(b.next, b.Min)
	b.next = min(2*d, b.Max)
	return d/2 + rand.N(d/2+1)
}

// Reset makes the next wait the shortest.
func (b *Backoff) Reset() { b.next = 0 }

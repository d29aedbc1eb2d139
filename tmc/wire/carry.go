package wire

import (
	"context"
	"time"
)

// Publisher sends reports to the servers. It is safe for concurrent use.
type Publisher interface {
	// Publish sends r, and returns once it is stored. An error means that it
	// may be lost; the caller counts it as Dropped. It retains nothing of r.
	Publish(ctx context.Context, r Report) error
	// Close ends what the publisher started. It does not close a client that
	// it was given.
	Close() error
}

// Consumer receives reports as one of a group of servers.
type Consumer interface {
	// Consume calls f with each report that is of this server's share, from
	// one goroutine at a time. It returns when ctx ends, with its error, or
	// when f fails, with that error. A report counts as received once f has
	// returned nil; one that was not may be received again, here or elsewhere.
	// While the transport is down, Consume tries again.
	Consume(ctx context.Context, f func(Report) error) error
}

// Channel carries hot sets to SDKs, and invalidations among them. It is safe
// for concurrent use.
type Channel interface {
	// PushHot stores s for those who subscribe later and sends it to those who
	// have. A set whose Version is not above the stored one's is ignored.
	PushHot(ctx context.Context, s HotSet) error

	// Invalidate sends inv to all who subscribe, the sender too. A nil error
	// means that each will get it, or be told that the channel is down.
	Invalidate(ctx context.Context, inv Invalidation) error

	// Subscribe calls h with the events of app until ctx ends, and returns its
	// error. It connects again by itself. Calls are in order and one at a time.
	// Bad arguments are an error at once.
	Subscribe(ctx context.Context, app string, h Handler) error

	// Close ends all subscriptions and what the channel started. It does not
	// close a client that it was given.
	Close() error
}

// Handler is called with the events of a subscription. It must not block:
// events wait for it. Each field may be nil.
type Handler struct {
	// Hot is called with the stored hot set, if there is one, after Up(true),
	// and with each newer one.
	Hot func(HotSet)

	// Invalidate is called with each invalidation.
	Invalidate func(Invalidation)

	// Up is called with true once subscribed, before any event that follows,
	// and with false as soon as the channel is known to be down. Between the
	// two no invalidation is missed; before and after, any may be.
	Up func(bool)

	// Fresh is called again and again while the channel is up, with a time on
	// this machine's clock: all that was sent before then has been delivered.
	// The first call may come some time after Up(true). If Fresh stays away for
	// longer than the channel's bound, Up(false) follows; one who must not rely
	// on being told in time, as a process may be stopped and resumed, compares
	// the time of the last Fresh with the clock.
	Fresh func(time.Time)
}

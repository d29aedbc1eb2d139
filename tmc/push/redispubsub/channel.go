package redispubsub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/backoff"
	"github.com/heavykeeper-go/heavykeeper/tmc/push"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/internal/session"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Channel is a [wire.Channel] on Redis pub/sub. All methods are safe for
// concurrent use.
type Channel struct {
	options Options // resolved
	keeper  *session.Keeper
}

var _ wire.Channel = (*Channel)(nil)

// New returns a channel. It connects to nothing yet. It fails if a parameter is
// out of range.
func New(options Options) (*Channel, error) {
	options, err := options.resolve()
	if err != nil {
		return nil, err
	}
	wait := backoff.Backoff{Min: options.MinBackoff, Max: options.MaxBackoff}
	return &Channel{options: options, keeper: session.NewKeeper(wait, options.Logger)}, nil
}

// Bound returns the longest time from the moment that an event should have
// come and did not to Up(false): Options.Ping + Options.Timeout.
func (c *Channel) Bound() time.Duration { return c.options.Ping + c.options.Timeout }

// Stats returns what c has done so far.
func (c *Channel) Stats() push.Stats { return c.keeper.Stats() }

// Close ends all subscriptions and waits for them. It can be called again.
func (c *Channel) Close() error {
	c.keeper.Close()
	return nil
}

func (c *Channel) hotKey(app string) string  { return c.options.Prefix + ":{" + app + "}:hot" }
func (c *Channel) channel(app string) string { return c.options.Prefix + ":{" + app + "}:push" }

// pushHot stores a set and publishes it, unless one as new is stored. Versions
// have 20 digits, so that they are compared as text: Lua's numbers would lose
// some.
var pushHot = redis.NewScript(`
local stored = redis.call('HGET', KEYS[1], 'version')
if stored and stored >= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'set', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', ARGV[4], ARGV[2])
return 1`)

// PushHot stores s and publishes it; see [wire.Channel].
func (c *Channel) PushHot(ctx context.Context, s wire.HotSet) error {
	if c.keeper.Closed() {
		return push.ErrClosed
	}
	data, err := s.MarshalBinary()
	if err != nil {
		return err
	}
	version := fmt.Sprintf("%020d", s.Version)
	err = pushHot.Run(ctx, c.options.Client, []string{c.hotKey(s.App)},
		version, data, c.options.Retain.Milliseconds(), c.channel(s.App)).Err()
	if err != nil {
		return fmt.Errorf("redispubsub: pushing the hot set of %s: %w", s.App, err)
	}
	return nil
}

// Invalidate publishes inv; see [wire.Channel].
func (c *Channel) Invalidate(ctx context.Context, inv wire.Invalidation) error {
	if c.keeper.Closed() {
		return push.ErrClosed
	}
	data, err := inv.MarshalBinary()
	if err != nil {
		return err
	}
	if err := c.publish(ctx, inv.App, data); err != nil {
		return fmt.Errorf("redispubsub: publishing an invalidation of %s: %w", inv.App, err)
	}
	return nil
}

// Subscribe calls h with the events of app; see [wire.Channel].
func (c *Channel) Subscribe(ctx context.Context, app string, h wire.Handler) error {
	return c.keeper.Keep(ctx, app, h, func(ctx context.Context, s *session.Session) error {
		return c.connect(ctx, app, s)
	})
}

// connect subscribes once and delivers events until the connection ends, or is
// found to be down.
func (c *Channel) connect(ctx context.Context, app string, s *session.Session) error {
	server, err := c.server(ctx, app)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	sub := server.Subscribe(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	// Receive does not return when a context ends, but when its connection is
	// closed. Handlers hear of it first: closing may have to wait for a write.
	group.Go(func() {
		<-ctx.Done()
		s.End()
		sub.Close()
	})

	asOf := time.Now()
	stored, err := c.begin(ctx, cancel, sub, app, s)
	if err != nil {
		return cause(ctx, err)
	}
	s.Begin(asOf, stored)
	pongs := make(chan struct{}, 1)
	stays := func() error { return c.stays(ctx, app, server) }
	group.Go(func() { c.watch(ctx, cancel, sub, s, pongs, stays) })
	return cause(ctx, receive(ctx, sub, s, pongs))
}

// cause returns why ctx was cancelled, if it was, or err.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	return err
}

// begin subscribes, waits until Redis says so, and only then reads the stored
// hot set, so that no later one is missed.
func (c *Channel) begin(ctx context.Context, cancel context.CancelCauseFunc, sub *redis.PubSub, app string, s *session.Session) (*wire.HotSet, error) {
	overdue := time.AfterFunc(c.options.Timeout, func() { cancel(session.ErrTimeout) })
	defer overdue.Stop()
	if err := sub.Subscribe(ctx, c.channel(app)); err != nil {
		return nil, err
	}
	message, err := sub.Receive(ctx)
	if err != nil {
		return nil, err
	}
	if m, ok := message.(*redis.Subscription); !ok || m.Kind != "subscribe" {
		return nil, fmt.Errorf("redispubsub: got %v in answer to SUBSCRIBE", message)
	}
	data, err := c.options.Client.HGet(ctx, c.hotKey(app), "set").Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return s.Stored(data), nil
}

// watch tests the connection until ctx ends, and ends it if an answer is
// overdue, or if events are published elsewhere now.
func (c *Channel) watch(ctx context.Context, cancel context.CancelCauseFunc, sub *redis.PubSub, s *session.Session, pongs <-chan struct{}, stays func() error) {
	ticker := time.NewTicker(c.options.Ping)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := stays(); err != nil {
			cancel(err)
			return
		}
		asOf := time.Now()
		overdue := time.AfterFunc(c.options.Timeout, func() { cancel(session.ErrTimeout) })
		if err := sub.Ping(ctx); err != nil {
			overdue.Stop()
			cancel(err)
			return
		}
		select {
		case <-ctx.Done():
			overdue.Stop()
			return
		case <-pongs:
			overdue.Stop()
			s.Fresh(asOf)
		}
	}
}

// receive delivers what comes until the connection ends.
func receive(ctx context.Context, sub *redis.PubSub, s *session.Session, pongs chan<- struct{}) error {
	for {
		message, err := sub.Receive(ctx)
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *redis.Message:
			s.Deliver([]byte(m.Payload))
		case *redis.Pong:
			// Answers come in order, and one is waited for at a time.
			select {
			case pongs <- struct{}{}:
			default:
			}
		default:
			// The client connected again by itself: messages were missed.
			return fmt.Errorf("redispubsub: got %v in the middle of a subscription", m)
		}
	}
}

package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/backoff"
	"github.com/heavykeeper-go/heavykeeper/tmc/push"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/internal/session"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Channel is a [wire.Channel] on etcd's watch. All methods are safe for
// concurrent use.
type Channel struct {
	options Options // resolved
	keeper  *session.Keeper

	mu     sync.Mutex // of leases
	leases map[string]clientv3.LeaseID
}

var _ wire.Channel = (*Channel)(nil)

// maxLeases is the most leases that a channel remembers. One that it does not
// remember ends by itself.
const maxLeases = 10_000

// New returns a channel. It fails if a parameter is out of range.
func New(options Options) (*Channel, error) {
	options, err := options.resolve()
	if err != nil {
		return nil, err
	}
	wait := backoff.Backoff{Min: options.MinBackoff, Max: options.MaxBackoff}
	return &Channel{
		options: options,
		keeper:  session.NewKeeper(wait, options.Logger),
		leases:  make(map[string]clientv3.LeaseID),
	}, nil
}

// Bound returns the longest time from the moment that an event should have
// come and did not to Up(false): Options.Ping + Options.Timeout.
func (c *Channel) Bound() time.Duration { return c.options.Ping + c.options.Timeout }

// Stats returns what c has done so far.
func (c *Channel) Stats() push.Stats { return c.keeper.Stats() }

// Close ends all subscriptions and waits for them. It can be called again.
// Stored hot sets stay until Options.Retain has passed.
func (c *Channel) Close() error {
	c.keeper.Close()
	return nil
}

func (c *Channel) dir(app string) string        { return c.options.Prefix + "/" + app + "/" }
func (c *Channel) hotKey(app string) string     { return c.dir(app) + "hot" }
func (c *Channel) writtenKey(app string) string { return c.dir(app) + "written" }

// PushHot stores s, which notifies; see [wire.Channel].
func (c *Channel) PushHot(ctx context.Context, s wire.HotSet) error {
	if c.keeper.Closed() {
		return push.ErrClosed
	}
	data, err := s.MarshalBinary()
	if err != nil {
		return err
	}
	for {
		done, err := c.push(ctx, s, string(data))
		if err != nil {
			return fmt.Errorf("etcd: pushing the hot set of %s: %w", s.App, err)
		}
		if done {
			return nil
		}
	}
}

// push stores a set unless one as new is stored. It is not done if another was
// stored meanwhile.
func (c *Channel) push(ctx context.Context, s wire.HotSet, data string) (done bool, err error) {
	key := c.hotKey(s.App)
	got, err := c.options.Client.Get(ctx, key)
	if err != nil {
		return false, err
	}
	revision := int64(0) // of a key that does not exist
	if len(got.Kvs) > 0 {
		revision = got.Kvs[0].ModRevision
		var stored wire.HotSet
		if stored.UnmarshalBinary(got.Kvs[0].Value) == nil && stored.Version >= s.Version {
			return true, nil
		}
	}
	lease, err := c.lease(ctx, s.App)
	if err != nil {
		return false, err
	}
	put, err := c.options.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpPut(key, data, clientv3.WithLease(lease))).
		Commit()
	if err != nil {
		if errors.Is(err, rpctypes.ErrLeaseNotFound) { // it ended in between
			return false, nil
		}
		return false, err
	}
	return put.Succeeded, nil
}

// lease returns a lease for the hot set of app that has Retain left.
func (c *Channel) lease(ctx context.Context, app string) (clientv3.LeaseID, error) {
	c.mu.Lock()
	id, ok := c.leases[app]
	c.mu.Unlock()
	if ok {
		_, err := c.options.Client.KeepAliveOnce(ctx, id)
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return id, err
		}
	}
	grant, err := c.options.Client.Grant(ctx, int64(c.options.Retain/time.Second))
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.leases) >= maxLeases {
		clear(c.leases)
	}
	c.leases[app] = grant.ID
	return grant.ID, nil
}

// Invalidate stores inv, which notifies; see [wire.Channel].
func (c *Channel) Invalidate(ctx context.Context, inv wire.Invalidation) error {
	if c.keeper.Closed() {
		return push.ErrClosed
	}
	data, err := inv.MarshalBinary()
	if err != nil {
		return err
	}
	if _, err := c.options.Client.Put(ctx, c.writtenKey(inv.App), string(data)); err != nil {
		return fmt.Errorf("etcd: storing an invalidation of %s: %w", inv.App, err)
	}
	return nil
}

// Subscribe calls h with the events of app; see [wire.Channel].
func (c *Channel) Subscribe(ctx context.Context, app string, h wire.Handler) error {
	return c.keeper.Keep(ctx, app, h, func(ctx context.Context, s *session.Session) error {
		return c.connect(ctx, app, s)
	})
}

// connect watches once and delivers events until the watch ends, or is found
// to be down.
func (c *Channel) connect(ctx context.Context, app string, s *session.Session) error {
	ctx, cancel := context.WithCancelCause(clientv3.WithRequireLeader(ctx))
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { s.End() })()

	asOf := time.Now()
	stored, revision, events, err := c.begin(ctx, cancel, app, s)
	if err != nil {
		if why := context.Cause(ctx); why != nil {
			return why
		}
		return err
	}
	s.Begin(asOf, stored)
	p := newProgress(revision)
	group.Go(func() { c.watch(ctx, cancel, app, s, p) })
	for response := range events {
		if err := response.Err(); err != nil {
			return err
		}
		for _, event := range response.Events {
			if event.Type == clientv3.EventTypePut {
				s.Deliver(event.Kv.Value)
			}
			p.reach(event.Kv.ModRevision)
		}
	}
	return context.Cause(ctx)
}

// begin reads the stored hot set and watches what comes after it.
func (c *Channel) begin(ctx context.Context, cancel context.CancelCauseFunc, app string, s *session.Session) (stored *wire.HotSet, revision int64, events clientv3.WatchChan, err error) {
	overdue := time.AfterFunc(c.options.Timeout, func() { cancel(session.ErrTimeout) })
	defer overdue.Stop()
	got, err := c.options.Client.Get(ctx, c.hotKey(app))
	if err != nil {
		return nil, 0, nil, err
	}
	if len(got.Kvs) > 0 {
		stored = s.Stored(got.Kvs[0].Value)
	}
	revision = got.Header.Revision
	events = c.options.Client.Watch(ctx, c.dir(app), clientv3.WithPrefix(), clientv3.WithRev(revision+1), clientv3.WithCreatedNotify())
	created := <-events
	if err := created.Err(); err != nil {
		return nil, 0, nil, err
	}
	if !created.Created {
		return nil, 0, nil, errors.New("etcd: the watch ended before it began")
	}
	return stored, revision, events, nil
}

// watch tests the subscription until ctx ends, and ends it if an answer is
// overdue.
func (c *Channel) watch(ctx context.Context, cancel context.CancelCauseFunc, app string, s *session.Session, p *progress) {
	ticker := time.NewTicker(c.options.Ping)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asOf := time.Now()
		test, stop := context.WithTimeoutCause(ctx, c.options.Timeout, session.ErrTimeout)
		err := c.test(test, app, p)
		if err != nil && test.Err() != nil {
			err = context.Cause(test)
		}
		stop()
		if err != nil {
			cancel(err)
			return
		}
		s.Fresh(asOf)
	}
}

// test returns nil once all that was written before it was called has been
// delivered.
func (c *Channel) test(ctx context.Context, app string, p *progress) error {
	got, err := c.options.Client.Get(ctx, c.dir(app), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	latest := int64(0)
	for _, kv := range got.Kvs {
		latest = max(latest, kv.ModRevision)
	}
	return p.wait(ctx, latest)
}

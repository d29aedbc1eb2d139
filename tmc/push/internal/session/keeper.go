package session

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/backoff"
	"github.com/heavykeeper-go/heavykeeper/tmc/push"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Keeper keeps the subscriptions of a channel: it begins a new session when
// one ends. See [NewKeeper]. It is safe for concurrent use.
type Keeper struct {
	wait backoff.Backoff
	log  *slog.Logger

	ctx       context.Context
	cancel    context.CancelFunc
	mu        sync.Mutex // of running.Add against Close
	running   sync.WaitGroup
	losses    atomic.Uint64
	malformed atomic.Uint64
}

// NewKeeper returns a Keeper that waits as wait says between sessions.
func NewKeeper(wait backoff.Backoff, log *slog.Logger) *Keeper {
	k := &Keeper{wait: wait, log: log}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// Keep calls connect, with a session that it should begin, again and again
// until ctx ends, whose error it returns, or Close is called. connect returns
// when the connection has ended or its context has.
func (k *Keeper) Keep(ctx context.Context, app string, h wire.Handler, connect func(context.Context, *Session) error) error {
	if err := wire.CheckApp(app); err != nil {
		return err
	}
	if !k.enter() {
		return push.ErrClosed
	}
	defer k.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.ctx, cancel)()

	wait := k.wait
	for ctx.Err() == nil {
		s := &Session{h: h, app: app, keeper: k}
		err := connect(ctx, s)
		if ctx.Err() != nil {
			s.End()
			break
		}
		if s.End() {
			wait.Reset()
			k.losses.Add(1)
			k.log.Warn("push channel lost", "app", app, "error", err)
		} else {
			k.log.Debug("push channel not reached", "app", app, "error", err)
		}
		if wait.Wait(ctx) != nil {
			break
		}
	}
	if k.ctx.Err() != nil {
		return push.ErrClosed
	}
	return ctx.Err()
}

// enter counts a subscription as running, and reports false if k is closed.
func (k *Keeper) enter() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.Closed() {
		return false
	}
	k.running.Add(1)
	return true
}

// Closed reports whether Close was called.
func (k *Keeper) Closed() bool { return k.ctx.Err() != nil }

// Close ends all subscriptions and waits for them. It can be called again.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.cancel()
	k.mu.Unlock()
	k.running.Wait()
}

// Stats returns what k has done so far.
func (k *Keeper) Stats() push.Stats {
	return push.Stats{Losses: k.losses.Load(), Malformed: k.malformed.Load()}
}

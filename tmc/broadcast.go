package tmc

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/backoff"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

const (
	// maxPending is the number of bytes of keys that wait to be sent. When
	// there would be more, they become an invalidation of everything.
	maxPending = 1 << 20

	// sendTimeout is how long an attempt to send may take.
	sendTimeout = 5 * time.Second

	// closeTimeout is how long Close may take to send what is left.
	closeTimeout = 2 * time.Second
)

// broadcaster tells the other nodes of writes. A write hands over its keys and
// goes on; what has come while a message was on its way is the next message.
// None is lost: a message is sent again until the channel has taken it.
type broadcaster struct {
	channel wire.Channel
	app     string
	node    string
	log     *slog.Logger
	wake    chan struct{}

	sent     atomic.Uint64 // messages
	failures atomic.Uint64 // attempts
	overflow atomic.Uint64

	mu      sync.Mutex
	pending map[string]struct{}
	bytes   int
	every   bool      // all keys
	since   time.Time // when the oldest of what is not sent yet came; zero: all is sent
	seq     uint64
}

func newBroadcaster(channel wire.Channel, app, node string, log *slog.Logger) *broadcaster {
	return &broadcaster{channel: channel, app: app, node: node, log: log, wake: make(chan struct{}, 1)}
}

// add hands over a key that was written.
func (b *broadcaster) add(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.pending[key]; ok || b.every {
		return // the message that will say so is not made yet
	}
	if b.bytes += len(key) + 16; b.bytes > maxPending {
		b.overflow.Add(1)
		b.setEvery()
		return
	}
	if b.pending == nil {
		b.pending = make(map[string]struct{})
	}
	b.pending[strings.Clone(key)] = struct{}{}
	b.awake()
}

// all hands over that any key may have been written.
func (b *broadcaster) all() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setEvery()
}

// setEvery makes the next message one of everything. b.mu must be held.
func (b *broadcaster) setEvery() {
	b.every, b.pending, b.bytes = true, nil, 0
	b.awake()
}

// awake has run look. b.mu must be held.
func (b *broadcaster) awake() {
	if b.since.IsZero() {
		b.since = time.Now()
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take returns the next message.
func (b *broadcaster) take() (inv wire.Invalidation, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending) == 0 && !b.every {
		b.since = time.Time{}
		return inv, false
	}
	b.seq++
	inv = wire.Invalidation{App: b.app, Node: b.node, Seq: b.seq, All: b.every}
	for key := range b.pending {
		inv.Keys = append(inv.Keys, key)
	}
	clear(b.pending)
	b.bytes, b.every = 0, false
	b.since = time.Now()
	return inv, true
}

// waiting returns how many keys wait to be sent, and for how long the channel
// has not taken the message before them.
func (b *broadcaster) waiting() (keys int, age time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.since.IsZero() {
		age = time.Since(b.since)
	}
	return len(b.pending), age
}

// run sends until ctx ends, and then what is left.
func (b *broadcaster) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-b.wake:
			b.drain(ctx)
		}
	}
	last, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	b.drain(last)
}

// drain sends until there is nothing left or ctx ends.
func (b *broadcaster) drain(ctx context.Context) {
	for ctx.Err() == nil {
		inv, ok := b.take()
		if !ok {
			return
		}
		b.send(ctx, inv)
	}
}

// send sends one message, and again until it succeeds or ctx ends. One that may
// have arrived is sent with the same number, so that it is not missed by those
// whom it has not reached, nor taken for a gap.
func (b *broadcaster) send(ctx context.Context, inv wire.Invalidation) {
	wait := backoff.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	for {
		attempt, cancel := context.WithTimeout(ctx, sendTimeout)
		err := b.channel.Invalidate(attempt, inv)
		cancel()
		if err == nil {
			b.sent.Add(1)
			return
		}
		if b.failures.Add(1); wait.Wait(ctx) != nil {
			b.putBack(inv)
			return
		}
		b.log.Debug("tmc: invalidation not sent", "app", b.app, "keys", len(inv.Keys), "error", err)
	}
}

// putBack takes back a message that could not be sent before ctx ended, so that
// the last attempt of run has it.
func (b *broadcaster) putBack(inv wire.Invalidation) {
	if inv.All {
		b.all()
	}
	for _, key := range inv.Keys {
		b.add(key)
	}
}

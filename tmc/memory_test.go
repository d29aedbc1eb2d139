package tmc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// memory is a channel in this process, whose nodes can be cut off from it. Each
// node has a memoryChannel. Messages arrive after a delay that is drawn for
// each, in order.
type memory struct {
	delay func() time.Duration

	mu    sync.Mutex
	nodes []*memoryChannel
}

type memoryChannel struct {
	hub   *memory
	bound time.Duration // 0: none is told

	mu   sync.Mutex
	cut  bool
	h    *wire.Handler
	up   bool
	in   chan func()
	sent int
}

var errCut = errors.New("cut off")

// join returns the channel of a new node.
func (m *memory) join(bound time.Duration) *memoryChannel {
	c := &memoryChannel{hub: m, bound: bound, in: make(chan func(), 1<<16)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes = append(m.nodes, c)
	return c
}

func (c *memoryChannel) Bound() time.Duration { return c.bound }
func (c *memoryChannel) Close() error         { return nil }

func (c *memoryChannel) PushHot(_ context.Context, s wire.HotSet) error {
	return c.hub.send(c, func(h *wire.Handler) {
		if h.Hot != nil {
			h.Hot(s)
		}
	})
}

func (c *memoryChannel) Invalidate(_ context.Context, inv wire.Invalidation) error {
	return c.hub.send(c, func(h *wire.Handler) { h.Invalidate(inv) })
}

// send has all nodes that are not cut off called with f.
func (m *memory) send(from *memoryChannel, f func(*wire.Handler)) error {
	from.mu.Lock()
	cut := from.cut
	from.sent++
	from.mu.Unlock()
	if cut {
		return errCut
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, node := range m.nodes {
		node.deliver(f)
	}
	return nil
}

func (c *memoryChannel) deliver(f func(*wire.Handler)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return // lost
	}
	due := time.Now()
	if c.hub.delay != nil {
		due = due.Add(c.hub.delay())
	}
	c.in <- func() {
		time.Sleep(time.Until(due))
		c.call(f)
	}
}

// call calls the handler unless the node is cut off.
func (c *memoryChannel) call(f func(*wire.Handler)) {
	c.mu.Lock()
	h, lost := c.h, c.cut || !c.up
	c.mu.Unlock()
	if h != nil && !lost {
		f(h)
	}
}

// setCut cuts the node off, or connects it again. What is on its way is lost.
// The node is told only by tellUp.
func (c *memoryChannel) setCut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	for len(c.in) > 0 {
		<-c.in
	}
}

// tellUp tells the node that its channel is up, or down.
func (c *memoryChannel) tellUp(up bool) {
	c.mu.Lock()
	h := c.h
	c.up = up
	c.mu.Unlock()
	if h != nil {
		h.Up(up)
	}
}

// tellFresh tells the node that all has been delivered until now, if it has.
func (c *memoryChannel) tellFresh() {
	at := time.Now()
	c.deliver(func(h *wire.Handler) {
		if h.Fresh != nil {
			h.Fresh(at)
		}
	})
}

func (c *memoryChannel) Subscribe(ctx context.Context, _ string, h wire.Handler) error {
	c.mu.Lock()
	c.h = &h
	cut := c.cut
	c.mu.Unlock()
	if !cut {
		c.tellUp(true)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case f := <-c.in:
			f()
		}
	}
}

package tmc

import (
	"context"
	"sync"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// state is what is known of the channel.
type state struct {
	mu     sync.Mutex
	up     bool
	losses uint64
}

// update makes local serve, or not, as all that is known says. What was read
// before is forgotten.
func (c *Cache) update() {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	c.updateLocked()
}

func (c *Cache) updateLocked() {
	c.local.setServe(c.settings.Load().enabled && !c.moved.Load() && !c.closed.Load() &&
		(c.channel == nil || c.state.up || c.options.ServeWhenDown))
}

// subscribe follows the channel until ctx ends.
func (c *Cache) subscribe(ctx context.Context) {
	h := wire.Handler{Invalidate: c.invalidated, Up: c.setUp, Hot: c.detector.setHot}
	if c.bound > 0 && !c.options.ServeWhenDown {
		h.Fresh = c.setFresh
	}
	if err := c.channel.Subscribe(ctx, c.options.App, h); ctx.Err() == nil {
		c.log.Error("tmc: serving nothing from now on: the subscription has ended", "app", c.options.App, "error", err)
		c.setUp(false)
	}
}

// setUp hears whether the channel is up. Writes by others may have been missed
// until now if it is, and will be if it is not.
func (c *Cache) setUp(up bool) {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	if c.state.up && !up {
		c.state.losses++
	}
	c.state.up = up
	if !up && c.options.ServeWhenDown {
		return
	}
	c.counts.flushes.add(1)
	c.peers.reset()
	if up {
		// All that comes after now will be delivered, or be missed for no longer
		// than the bound.
		c.setFresh(time.Now())
	}
	c.updateLocked()
}

// setFresh hears that all that was sent before t has been delivered. A copy may
// be served until the bound of the channel has passed since then: a process
// that was stopped in between learns from its clock that it cannot know.
func (c *Cache) setFresh(t time.Time) {
	if c.bound > 0 && !c.options.ServeWhenDown {
		c.local.freshUntil.Store(int64(t.Sub(c.local.start) + c.bound))
	}
}

// invalidated hears of writes by a node.
func (c *Cache) invalidated(inv wire.Invalidation) {
	if inv.Node == c.options.life {
		return // was done here when it was written
	}
	c.counts.heard.add(uint64(len(inv.Keys)))
	if inv.All || !c.peers.next(inv.Node, inv.Seq) {
		c.Flush()
		return
	}
	for _, key := range inv.Keys {
		c.local.invalidate(key)
	}
}

// maxPeers is the number of other nodes that are remembered.
const maxPeers = 1 << 14

// peers knows the number of the last message of each other node. A channel may
// lose messages only when it says that it is down; this finds out if one does
// not keep its word, or if a node could not send.
type peers struct {
	mu   sync.Mutex
	last map[string]uint64
}

// next reports whether message seq of node is one that can follow those that
// have come. Messages without a number can.
func (p *peers) next(node string, seq uint64) bool {
	if seq == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.last[node]
	if !known && len(p.last) >= maxPeers {
		p.last = nil
	}
	if p.last == nil {
		p.last = make(map[string]uint64)
	}
	p.last[node] = max(last, seq)
	return !known || seq <= last+1
}

// reset forgets what has come.
func (p *peers) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = nil
}

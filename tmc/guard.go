package tmc

import (
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// guard tells copies that may be served from those that may not, and is all
// that consistency rests on.
//
// A key has one of a fixed number of slots. A slot counts the invalidations of
// its keys, and in its low bits the writes of its keys that this node has under
// way. A read takes a lease before it asks Redis, which holds what the slot
// was then, and the copy made of its reply keeps the lease. A copy is served
// only while its slot is what the lease says. So one that was read before an
// invalidation is not served after it, whenever it came to be stored, and while
// a write is under way its keys are served from Redis alone.
//
// Keys that share a slot share invalidations. That costs a read of Redis and
// harms nothing.
type guard struct {
	slots [1 << slotBits]atomic.Uint64
}

const (
	slotBits = 15

	// invalidated is added to a slot by an invalidation, and underWay by a
	// write while it lasts. Were more than 2^16 - 1 writes of a slot under way
	// at once, they would be taken for one invalidation more, and none.
	underWay    = 1
	invalidated = 1 << 16
)

func (g *guard) slot(key string) *atomic.Uint64 {
	return &g.slots[xxhash.Sum64String(key)>>(64-slotBits)]
}

// invalidate ends all leases of key.
func (g *guard) invalidate(key string) { g.slot(key).Add(invalidated) }

// begin ends all leases of key, and lets no new one be valid until end.
func (g *guard) begin(key string) { g.slot(key).Add(invalidated + underWay) }

// end ends all leases of key, and the effect of one call of begin.
func (g *guard) end(key string) { g.slot(key).Add(invalidated - underWay) }

// now returns what the slot of key is, and whether no write is under way.
func (g *guard) now(key string) (slot uint64, idle bool) {
	slot = g.slot(key).Load()
	return slot, slot%invalidated == 0
}

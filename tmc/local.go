package tmc

import (
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// kind is what part of a Redis key a copy is of.
type kind uint8

const (
	whole  kind = iota // a string
	fields             // a hash
	field              // a field of a hash
)

// place is where a copy is kept: under the key and, for one of a field, that.
type place struct {
	key, field string
	kind       kind
}

// copied is a copy of what Redis has under a key. It does not change.
type copied struct {
	lease   lease
	expires time.Duration // on the clock of local
	absent  bool          // there was nothing
	text    string
	fields  map[string]string
}

// lease is the right to keep the reply to a read that began after it was taken.
// The zero lease is none.
type lease struct {
	slot  uint64        // of guard
	epoch uint64        // of local
	at    time.Duration // when it was taken
}

func (l lease) valid() bool { return l.epoch != 0 }

// overhead is what a copy takes beside its texts, near enough: the struct, the
// entry of otter, and its place in the hash table and the lists of the policy.
// TestLocalMemory measures it.
const overhead = 320

// local is the local cache. A copy in it is served only under three conditions:
// guard says so, its epoch is the present one, and its time has not passed. An
// epoch ends when all that is held becomes doubtful; there is none, 0, while
// nothing may be served.
type local struct {
	guard guard
	cache *otter.Cache[place, *copied]
	start time.Time

	epoch      atomic.Uint64
	flushing   atomic.Int64 // flushes by this node that are under way
	freshUntil atomic.Int64 // time on the clock from which nothing may be served, for lack of news
	maxValue   atomic.Int64 // bytes
	latest     atomic.Int64 // time on the clock that was read last, or nearly

	mu    sync.Mutex
	last  uint64 // latest epoch that was not 0
	serve bool
}

func newLocal(bytes, maxValue int64) (*local, error) {
	l := &local{start: time.Now()}
	cache, err := otter.New(&otter.Options[place, *copied]{
		MaximumWeight: uint64(bytes),
		Weigher:       func(p place, c *copied) uint32 { return uint32(min(c.size(p), 1<<31)) },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[place, *copied]) time.Duration {
			return max(e.Value.expires-l.now(), 1)
		}),
		// Deletions call nobody, so what otter would start a goroutine for is short.
		Executor: func(f func()) { f() },
		Clock:    (*coarse)(l),
	})
	if err != nil {
		return nil, err
	}
	l.cache = cache
	l.maxValue.Store(maxValue)
	l.freshUntil.Store(int64(forever))
	return l, nil
}

// forever is later than any time on the clock.
const forever = time.Duration(1<<63 - 1)

// now returns the time on the clock of l.
func (l *local) now() time.Duration {
	now := time.Since(l.start)
	if now-time.Duration(l.latest.Load()) > time.Millisecond {
		l.latest.Store(int64(now))
	}
	return now
}

// coarse is the clock that otter sees. Reading the time is a good part of what a
// local read costs, and otter needs it only to free what has expired, so it
// gets the time that l has read last, less a millisecond at most.
type coarse local

// NowNano returns the time on the clock of l.
func (c *coarse) NowNano() int64 { return c.latest.Load() }

// Tick returns the channel of a ticker.
func (c *coarse) Tick(d time.Duration) <-chan time.Time { return time.NewTicker(d).C }

func (c *copied) size(p place) int64 {
	n := overhead + len(p.key) + len(p.field) + len(c.text)
	if c.fields != nil {
		n += mapSize(len(c.fields))
	}
	for name, value := range c.fields {
		n += len(name) + len(value) + 12 // what allocating two strings wastes
	}
	return int64(n)
}

// mapSize returns the bytes that a map of n pairs of strings takes beside what
// the strings refer to. Go's maps have a power of two of slots, at least 8, of
// which at most 7/8 are used once there are more.
func mapSize(n int) int {
	slots := 8
	if n > slots {
		slots = 1 << bits.Len(uint((8*n+6)/7-1))
	}
	return 48 + slots*(2*16+1)
}

// lease takes a lease for a read of key that begins now. It is not valid while
// nothing may be served, or a write of key is under way here.
func (l *local) lease(key string) lease {
	// The epoch first: one that begins after it has been read counts as later.
	epoch := l.epoch.Load()
	slot, idle := l.guard.now(key)
	if epoch == 0 || !idle || l.flushing.Load() != 0 {
		return lease{}
	}
	return lease{slot: slot, epoch: epoch, at: l.now()}
}

// get returns the copy at p, if it may be served. The caller must not change
// it.
func (l *local) get(p place) (c *copied, ok bool) {
	c, ok = l.cache.GetIfPresent(p)
	if !ok {
		return nil, false
	}
	now := l.now()
	// These loads come after the copy has been found: what invalidates it later
	// is no earlier than this read.
	slot, _ := l.guard.now(p.key)
	ok = c.lease.slot == slot && c.lease.epoch == l.epoch.Load() && l.flushing.Load() == 0 &&
		now < c.expires && now < time.Duration(l.freshUntil.Load())
	return c, ok
}

// put keeps a copy of c, which was read under a lease, for ttl from the lease on,
// and no longer than until. It is dropped if it is too large.
func (l *local) put(p place, c copied, from lease, ttl, until time.Duration) bool {
	if !from.valid() || c.size(p) > l.maxValue.Load() {
		return false
	}
	c.lease = from
	c.expires = min(from.at+ttl, until)
	if slot, _ := l.guard.now(p.key); slot != from.slot || l.epoch.Load() != from.epoch || c.expires <= l.now() {
		return false // would never be served
	}
	p.key, p.field = strings.Clone(p.key), strings.Clone(p.field)
	c.text = strings.Clone(c.text)
	if c.fields != nil {
		c.fields = cloneFields(c.fields)
	}
	l.cache.Set(p, &c)
	return true
}

// invalidate makes sure that no copy of key which was read before is served.
func (l *local) invalidate(key string) {
	l.guard.invalidate(key)
	l.drop(key)
}

// drop frees what is held of key. It is not what consistency rests on; copies
// of single fields stay until their time is over.
func (l *local) drop(key string) {
	for _, k := range [...]kind{whole, fields} {
		p := place{key: key, kind: k}
		// Most keys that are written have no copy, and a look takes no lock.
		if _, ok := l.cache.GetEntryQuietly(p); ok {
			l.cache.Invalidate(p)
		}
	}
}

// flush makes sure that no copy which was read before is served.
func (l *local) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renew()
}

// renew begins a new epoch, or none. l.mu must be held.
func (l *local) renew() {
	if l.serve {
		l.last++
		l.epoch.Store(l.last)
	} else {
		l.epoch.Store(0)
	}
	l.cache.InvalidateAll()
}

// setServe says whether anything may be served from now on. What was read
// before is not.
func (l *local) setServe(serve bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serve = serve
	l.renew()
}

// serves reports whether copies may be served.
func (l *local) serves() bool {
	return l.epoch.Load() != 0 && l.now() < time.Duration(l.freshUntil.Load())
}

func (l *local) close() {
	l.setServe(false)
	l.cache.StopAllGoroutines()
}

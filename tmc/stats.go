package tmc

import "time"

// counts are the counters of a Cache.
type counts struct {
	cold, hits, misses      tally // of reads: of keys that are not hot, and of those that are
	kept, unkept            tally
	written, heard, flushes tally
}

// Stats tells what a Cache has done since it was attached, and how it is.
type Stats struct {
	// Reads is the number of keys that were read by GET, MGET, HGET and
	// HGETALL, Hot of those that were hot then. Hits of the hot were served
	// from local memory, which saved as many reads of Redis; Misses were not.
	Reads, Hot, Hits, Misses uint64

	// Kept is the number of copies made, Unkept of those that could not be:
	// because of a write meanwhile, or of their size, or because PTTL failed.
	Kept, Unkept uint64

	// Written is the number of keys that commands of this node wrote, Heard
	// of those that other nodes said they did. Flushes counts how often all
	// copies were given up.
	Written, Heard, Flushes uint64

	// Copies and Bytes are the size of the local cache.
	Copies int
	Bytes  uint64

	// HotKeys is the number of keys that are hot.
	HotKeys int

	// Serving tells whether copies are served: not while switched off, while
	// the channel is down, and after a connection of the pool was changed.
	Serving bool

	// Up tells whether the channel is up. Losses counts how often it went
	// down.
	Up     bool
	Losses uint64

	// Bound is the longest that a write by another node can go unnoticed, if
	// that node reaches the channel: TTL, or the bound of the channel if that
	// is less. A rule with a longer TTL makes it longer for its keys.
	Bound time.Duration

	// Sent is the number of invalidations sent, each of one or more keys, and
	// SendFailures of failed attempts. Unsent is the number of keys that wait
	// to be sent and Unacknowledged how long the oldest has. Overflows counts
	// how often there were too many.
	Sent, SendFailures, Overflows uint64
	Unsent                        int
	Unacknowledged                time.Duration

	// Reports is the number of reports sent, ReportFailures of those that
	// could not be. Queue is the number that wait, and Dropped the number of
	// reads that no server will hear of. For cluster mode.
	Reports, ReportFailures, Dropped uint64
	Queue                            int
}

// HitRate returns the share of all reads that were served locally, 0 to 1.
func (s Stats) HitRate() float64 {
	if s.Reads == 0 {
		return 0
	}
	return float64(s.Hits) / float64(s.Reads)
}

// Stats returns what c has done so far.
func (c *Cache) Stats() Stats {
	n := &c.counts
	s := Stats{
		Hits: n.hits.load(), Misses: n.misses.load(), Kept: n.kept.load(), Unkept: n.unkept.load(),
		Written: n.written.load(), Heard: n.heard.load(), Flushes: n.flushes.load(),
		Copies: c.local.cache.EstimatedSize(), Bytes: c.local.cache.WeightedSize(),
		HotKeys: c.detector.len(), Serving: c.local.serves(), Bound: c.staleness(),
	}
	s.Hot = s.Hits + s.Misses
	s.Reads = s.Hot + n.cold.load()
	c.state.mu.Lock()
	s.Up, s.Losses = c.state.up, c.state.losses
	c.state.mu.Unlock()
	if b := c.broadcaster; b != nil {
		s.Sent, s.SendFailures, s.Overflows = b.sent.Load(), b.failures.Load(), b.overflow.Load()
		s.Unsent, s.Unacknowledged = b.waiting()
	}
	if r, ok := c.detector.(*reporter); ok {
		s.Reports, s.ReportFailures = r.reports.Load(), r.failures.Load()
		s.Dropped, s.Queue = r.dropped.Load(), len(r.queue)
	}
	return s
}

// staleness returns the longest that a write by another node can go unnoticed
// here, if that node can reach the channel.
func (c *Cache) staleness() time.Duration {
	ttl := c.settings.Load().ttl
	if c.bound > 0 && !c.options.ServeWhenDown {
		ttl = min(ttl, c.bound)
	}
	return ttl
}

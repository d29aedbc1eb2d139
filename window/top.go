package window

import (
	"iter"
	"slices"
	"time"

	"github.com/heavykeeper-go/heavykeeper"
)

// Top returns the n most frequent keys of the window now. It is shorthand for
// TopAt(time.Now(), n).
func (h *HeavyKeeper[K]) Top(n int) []heavykeeper.Item[K] { return h.TopAt(h.now(), n) }

// TopAt returns the n most frequent keys of the window at time t, K of them if
// n <= 0 or n > K, by descending count and then ascending key. Keys whose
// count is 0 are left out: a key that has fallen silent goes without another
// update.
//
// Ranked are the candidates of all stripes, each with its whole count: a key
// need not be among the first of any slot or stripe. Where stripes have other
// candidates, on flat streams, 2 x Candidates are looked up in all stripes:
// those that have counted most so far. O(Stripes x Candidates x (Slots + Rows)),
// and O(S log S) for sorting the S candidates, at most Stripes x Candidates;
// memory for S of them meanwhile. No stripe is locked for longer than adding up
// its counts takes, or looking up 64 keys.
func (h *HeavyKeeper[K]) TopAt(t time.Time, n int) []heavykeeper.Item[K] {
	return h.AppendTopAt(nil, t, n)
}

// AppendTop appends what Top returns to dst. It is shorthand for
// AppendTopAt(dst, time.Now(), n).
func (h *HeavyKeeper[K]) AppendTop(dst []heavykeeper.Item[K], n int) []heavykeeper.Item[K] {
	return h.AppendTopAt(dst, h.now(), n)
}

// All iterates over what Top returns, as it was when the iteration began.
func (h *HeavyKeeper[K]) All() iter.Seq[heavykeeper.Item[K]] {
	return func(yield func(heavykeeper.Item[K]) bool) {
		for _, item := range h.Top(0) {
			if !yield(item) {
				return
			}
		}
	}
}

// AppendTopAt appends what TopAt returns to dst.
func (h *HeavyKeeper[K]) AppendTopAt(dst []heavykeeper.Item[K], t time.Time, n int) []heavykeeper.Item[K] {
	if n <= 0 || n > h.config.K {
		n = h.config.K
	}
	number, _ := h.present(t)
	start := len(dst)
	dst = h.appendCandidates(dst, number)
	items := slices.DeleteFunc(dst[start:], func(item heavykeeper.Item[K]) bool { return item.Count == 0 })
	return dst[:start+len(h.keys.Rank(items, n))]
}

// appendCandidates appends the candidates of all stripes to dst, with what all
// stripes know of them in the window that ends with slot number.
func (h *HeavyKeeper[K]) appendCandidates(dst []heavykeeper.Item[K], number int64) []heavykeeper.Item[K] {
	start, stripes := len(dst), h.stripes.Len()
	if stripes == 1 {
		h.stripes.With(0, func(c *counter[K]) bool {
			dst = c.appendTracked(dst, number)
			return true
		})
		return dst
	}
	var tracked []heavykeeper.Item[K]
	var asked []bool // by candidate and stripe
	index := make(map[K]int)
	for i := range stripes {
		h.stripes.With(i, func(c *counter[K]) bool {
			tracked = c.appendTracked(tracked[:0], number)
			return true
		})
		for _, item := range tracked {
			at, found := index[item.Key]
			if !found {
				at = len(index)
				index[item.Key] = at
				dst = append(dst, heavykeeper.Item[K]{Key: item.Key})
				asked = append(asked, make([]bool, stripes)...)
			}
			total := &dst[start+at].Estimate
			*total = plus(*total, item.Estimate)
			asked[at*stripes+i] = true
		}
	}
	kept := h.limit(dst[start:], asked)
	clear(dst[start+kept:])
	h.complete(dst[start:start+kept], asked, number)
	return dst[:start+kept]
}

// limit moves the candidates that have counted most so far to the front, at
// most twice as many as a stripe has, and returns how many those are. Only
// where streams are flat do stripes have others, which chance has brought a
// little more often there.
func (h *HeavyKeeper[K]) limit(items []heavykeeper.Item[K], asked []bool) (kept int) {
	n, stripes := 2*h.config.Candidates, h.stripes.Len()
	if len(items) <= n {
		return len(items)
	}
	counts := make([]uint64, len(items))
	for at := range items {
		counts[at] = items[at].Count
	}
	slices.Sort(counts)
	enough, ties := counts[len(counts)-n], n
	for _, count := range counts[len(counts)-n:] {
		if count > enough {
			ties--
		}
	}
	for at := range items {
		if items[at].Count < enough {
			continue
		}
		if items[at].Count == enough {
			if ties == 0 {
				continue
			}
			ties--
		}
		items[kept] = items[at]
		copy(asked[kept*stripes:], asked[at*stripes:][:stripes])
		kept++
	}
	return kept
}

// complete adds what the stripes know that do not track a candidate.
func (h *HeavyKeeper[K]) complete(items []heavykeeper.Item[K], asked []bool, number int64) {
	hashes := make([]uint64, len(items))
	for at := range items {
		hashes[at] = h.keys.Hash(items[at].Key)
	}
	// One stripe after the other, whose cells then stay in the cache, but
	// never with its lock held for long.
	stripes := h.stripes.Len()
	for i := range stripes {
		for start := 0; start < len(items); start += batchSize {
			h.stripes.With(i, func(c *counter[K]) bool {
				v := c.view(number)
				for at := start; at < min(start+batchSize, len(items)); at++ {
					if !asked[at*stripes+i] {
						e := &items[at].Estimate
						*e = plus(*e, c.estimate(items[at].Key, hashes[at], v))
					}
				}
				return true
			})
		}
	}
}

// appendTracked appends the keys that the sketch tracks to dst, with what c
// knows of them in the window that ends with slot number.
func (c *counter[K]) appendTracked(dst []heavykeeper.Item[K], number int64) []heavykeeper.Item[K] {
	v := c.view(number)
	for slot := range c.stride {
		key, ok := c.sketch.Key(slot)
		if !ok {
			break
		}
		dst = append(dst, heavykeeper.Item[K]{Key: key, Estimate: c.tracked(slot, v)})
	}
	return dst
}

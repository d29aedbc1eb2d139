package heavykeeper

import (
	"cmp"
	"slices"
)

// Estimate is what is known of a key's weight. The weight itself is at least
// Lower and at most Upper; [math.MaxUint64] there means that nothing is known
// from above. Lower <= Count <= Upper.
type Estimate struct {
	Count uint64 `json:"count"` // the estimate to rank by
	Lower uint64 `json:"lower"`
	Upper uint64 `json:"upper"`
}

// Item is a key and what is known of its weight. Its JSON is flat:
// {"key": ..., "count": ..., "lower": ..., "upper": ...}. Package encoding/json
// replaces what is not UTF-8 in a string key.
type Item[K comparable] struct {
	Key K `json:"key"`
	Estimate
}

// Stats describes the state of a sketch. Weights are in occurrences. In JSON,
// names are in snake case.
type Stats struct {
	// Total is the weight of all updates since the start or the last Reset.
	// Weight is what fading has left of it: the measure of all counts.
	Total  uint64 `json:"total"`
	Weight uint64 `json:"weight"`

	// Tracked is the number of keys that are counted exactly and
	// TrackedWeight the sum of their counts. TrackedWeight / Weight is the
	// share of traffic that they account for, at least.
	Tracked       int    `json:"tracked"`
	TrackedWeight uint64 `json:"tracked_weight"`

	// Admissions and Evictions count how often a key entered and left the
	// tracked set.
	Admissions uint64 `json:"admissions"`
	Evictions  uint64 `json:"evictions"`

	// Ignored is the number of updates of keys that do not equal themselves.
	Ignored uint64 `json:"ignored"`

	// Saturated tells that some cell has reached the end of its counters and
	// gives no upper bound any more.
	Saturated bool `json:"saturated"`

	// Exact tells that every answer is exact: no stripe has seen more than K
	// distinct keys, and no fraction was lost to fading.
	Exact bool `json:"exact"`

	// Bytes is the memory in use: cells, index, heap, entries with their
	// strings, and the object itself.
	Bytes int `json:"bytes"`
}

// rank sorts items[start:] by descending count and ascending key and keeps the
// first n of them, K if n <= 0 or n > K.
func (c *Config[K]) rank(keys *keys[K], items []Item[K], start, n int) []Item[K] {
	ranked := items[start:]
	slices.SortFunc(ranked, func(a, b Item[K]) int {
		if c := cmp.Compare(b.Count, a.Count); c != 0 {
			return c
		}
		return keys.compare(a.Key, b.Key)
	})
	if n <= 0 || n > c.K {
		n = c.K
	}
	if n < len(ranked) {
		clear(ranked[n:])
		items = items[:start+n]
	}
	return items
}

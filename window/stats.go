package window

import (
	"fmt"
	"unsafe"

	"github.com/heavykeeper-go/heavykeeper/internal/stripe"
)

// Stats describes the state of a HeavyKeeper. Weights are in occurrences. In
// JSON, names are in snake case.
type Stats struct {
	// Total is the weight of all updates since the start or the last Reset
	// that were counted: all but TooLate. Weight is what of it the window
	// holds, the measure of all counts.
	Total  uint64 `json:"total"`
	Weight uint64 `json:"weight"`

	// Late is the weight of updates in slots before the current one. TooLate
	// is that of updates in slots that had left the window: they are in none
	// of the other totals. Each stripe judges by the latest slot that it has
	// seen itself.
	Late    uint64 `json:"late"`
	TooLate uint64 `json:"too_late"`

	// Turns is how often a stripe moved on to a later slot; however many
	// slots it passed over, it turned once.
	Turns uint64 `json:"turns"`

	// Slot is the current slot: it covers [Slot, Slot+1) x Config.Slot since
	// 1970. It is 0 before the first update.
	Slot int64 `json:"slot"`

	// Tracked is the number of keys whose slots are counted.
	Tracked int `json:"tracked"`

	// Admissions and Evictions count how often a key entered and left the
	// tracked set of a stripe.
	Admissions uint64 `json:"admissions"`
	Evictions  uint64 `json:"evictions"`

	// Ignored is the number of updates of keys that do not equal themselves.
	Ignored uint64 `json:"ignored"`

	// Saturated tells that some cell of a sketch has reached the end of its
	// counters and gives no upper bound any more.
	Saturated bool `json:"saturated"`

	// Bytes is the memory in use: sketches with their keys, slot counts, and
	// the object itself.
	Bytes int `json:"bytes"`
}

// Stats returns the totals of all stripes, as of the latest update: time that
// has passed since is not considered. Totals stop at 2^64-1. No stripe is locked
// for longer than copying its keys takes. O(Stripes x Candidates).
func (h *HeavyKeeper[K]) Stats() Stats {
	sum := Stats{Bytes: int(unsafe.Sizeof(*h)) + h.keys.Stats().Bytes}
	if latest := h.latest.Load(); latest != none {
		sum.Slot = latest
	}
	distinct := make(map[K]struct{})
	var keys []K
	for i := range h.stripes.Len() {
		h.stripes.With(i, func(c *counter[K]) bool {
			c.addStats(&sum, h.latest.Load())
			keys = c.appendKeys(keys[:0])
			return true
		})
		// A map takes longer than a stripe should be locked.
		for _, key := range keys {
			distinct[key] = struct{}{}
		}
	}
	sum.Tracked = len(distinct)
	return sum
}

// String returns the size of h: not its keys, which Top and All return, nor its
// Seed, which may be secret.
func (h *HeavyKeeper[K]) String() string {
	return fmt.Sprintf("window.HeavyKeeper(K = %d, Slots = %d x %v, Stripes = %d)",
		h.config.K, h.config.Slots, h.config.Slot, h.config.Stripes)
}

// appendKeys appends the keys that the sketch tracks to dst.
func (c *counter[K]) appendKeys(dst []K) []K {
	for slot := range c.stride {
		key, ok := c.sketch.Key(slot)
		if !ok {
			break
		}
		dst = append(dst, key)
	}
	return dst
}

// addStats adds those of c to sum, all but Slot and Tracked.
func (c *counter[K]) addStats(sum *Stats, number int64) {
	s := c.stats()
	sum.Total = addSaturated(sum.Total, s.Total)
	for age := range c.view(number).left {
		sum.Weight = addSaturated(sum.Weight, c.totals[c.wheel.position(age)])
	}
	sum.Late = addSaturated(sum.Late, c.late)
	sum.TooLate = addSaturated(sum.TooLate, c.tooLate)
	sum.Turns = addSaturated(sum.Turns, c.turns)
	sum.Admissions = addSaturated(sum.Admissions, s.Admissions)
	sum.Evictions = addSaturated(sum.Evictions, s.Evictions)
	sum.Ignored = addSaturated(sum.Ignored, s.Ignored)
	sum.Saturated = sum.Saturated || s.Saturated
	sum.Bytes += c.bytes() + s.Bytes
}

// bytes returns the memory of c without its sketch.
func (c *counter[K]) bytes() int {
	return int(unsafe.Sizeof(stripe.Part[counter[K]]{})) + cap(c.counts)*4 + cap(c.totals)*8 +
		cap(c.weights)*8 + cap(c.before)*int(unsafe.Sizeof(carried{}))
}

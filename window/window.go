package window

import (
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/heavykeeper-go/heavykeeper"
	"github.com/heavykeeper-go/heavykeeper/internal/stripe"
)

var (
	_ heavykeeper.Counter[string]   = (*HeavyKeeper[string])(nil)
	_ heavykeeper.Estimator[string] = (*HeavyKeeper[string])(nil)
	_ heavykeeper.Ranker[string]    = (*HeavyKeeper[string])(nil)
)

// HeavyKeeper finds the K most frequent keys of the last Slots x Slot.
//
// Time is divided into slots on a fixed grid, and the window is the slot of
// the present with the Slots - 1 before it. A sketch whose weights fade with
// each slot nominates candidates; their events are counted slot by slot. What
// is reported of a key that was a candidate all through the window is exact.
// For every key, Lower is at most and Upper at least its number of events in
// the window, unless keys that share a cell of the sketch share 32 bits of
// fingerprint too.
//
// Time is a parameter. Methods that end in At take it, and the others are
// shorthand for time.Now(). The present is the latest time that any update has
// had, or a read's own time if that is later. So reads need no updates to see
// keys leave, and change nothing; the window stands still, rather than go
// back, if the clock does.
//
// An update at an earlier time than the present counts in the slot that it
// belongs to, if the window still has that, and is dropped if not; see
// [Stats]. An update at a later time is taken at its word, however much later:
// all that leaves the window by it is gone, and only [HeavyKeeper.Reset] sets
// the present back. Do not pass on times from sources that you do not trust.
//
// Times with a monotonic reading, as time.Now has, are placed by that, as so
// much after New, so that setting the clock of the machine does not matter. So
// slots begin at multiples of Slot since 1970 by the wall clock that New saw:
// they are off by what the clock has been set since, and by the time that the
// machine was suspended where the monotonic clock stands still meanwhile, as on
// Linux. Where slots must follow the wall clock, give every update and every
// read a time without the reading, time.Now().Round(0). Do not mix the two.
//
// There are no goroutines and no timers, and nothing to close. The zero value
// is not usable; see [New]. All methods are safe for concurrent use, as those
// of [heavykeeper.HeavyKeeper] are: updates go to the stripe of the processor
// they run on, each of which turns its own wheel. A read visits the stripes
// one after another, and what is in the window may move on meanwhile: bounds
// hold for the updates that were complete when it began and still in the
// window when it ended, at least, and for those that had begun when it ended
// and were in the window when it began, at most.
type HeavyKeeper[K comparable] struct {
	config  Config[K] // resolved
	grid    grid
	keys    *heavykeeper.Sketch[K] // counts nothing: hashes and ranks keys
	stripes *stripe.Set[counter[K]]
	latest  atomic.Int64 // slot that any stripe has turned to, or none
}

// none stands for a slot before all others.
const none = math.MinInt64

// batchSize is the number of keys that are counted under one lock.
const batchSize = 64

// New returns an empty HeavyKeeper. It fails if a parameter is out of range.
func New[K comparable](config Config[K]) (*HeavyKeeper[K], error) {
	config, err := config.resolve()
	if err != nil {
		return nil, err
	}
	keys, err := config.newKeys()
	if err != nil {
		return nil, err
	}
	h := &HeavyKeeper[K]{config: config, grid: newGrid(time.Now(), config.Slot), keys: keys}
	number := uint64(0)
	h.stripes = stripe.New(config.Stripes, func(c *counter[K]) {
		var sketch *heavykeeper.Sketch[K]
		if sketch, err = config.newSketch(); err == nil {
			sketch.Stream(number)
			sketch.Reset()
			c.init(sketch, config.Slots, config.alpha())
		}
		number++
	})
	if err != nil {
		return nil, err
	}
	h.latest.Store(none)
	return h, nil
}

// Add counts one occurrence of key now. It is shorthand for
// AddAt(time.Now(), key, 1).
//
// Looking at the clock is about half of its cost: a caller that has the time
// already is better served by AddAt, and one that has several keys by AddBatch.
func (h *HeavyKeeper[K]) Add(key K) { h.AddN(key, 1) }

// AddN counts n occurrences of key now. It is shorthand for
// AddAt(time.Now(), key, n).
func (h *HeavyKeeper[K]) AddN(key K, n uint32) {
	// Only a time far from now needs more than since.
	h.update(time.Time{}, time.Since(h.grid.start), key, h.keys.Hash(key), n)
}

// now is time.Now() without a look at the wall clock.
func (h *HeavyKeeper[K]) now() time.Time { return h.grid.start.Add(time.Since(h.grid.start)) }

// AddAt counts n occurrences of key, or one of weight n, at time t: in
// O(log n) steps, not n, beside those of a turn of the wheel if t is the first
// time in its slot. Nothing happens if n is 0. A key that does not equal
// itself is ignored and counted in [Stats].
//
// It allocates nothing but the copy of a string key that becomes a candidate.
// The counts of a slot stop at 2^32-1 for each key; Upper is then unbounded,
// [math.MaxUint64], until the slot has left the window.
func (h *HeavyKeeper[K]) AddAt(t time.Time, key K, n uint32) {
	h.update(t, h.grid.since(t), key, h.keys.Hash(key), n)
}

// AddBytes counts n occurrences, now, of the string that key holds, without
// converting it: key is copied only if that makes it a candidate. The caller
// may change it as soon as AddBytes returns; a Config.Hash must not retain it.
func AddBytes(h *HeavyKeeper[string], key []byte, n uint32) {
	h.AddN(unsafe.String(unsafe.SliceData(key), len(key)), n)
}

// AddBytesAt does what AddBytes does at time t.
func AddBytesAt(h *HeavyKeeper[string], t time.Time, key []byte, n uint32) {
	h.AddAt(t, unsafe.String(unsafe.SliceData(key), len(key)), n)
}

func (h *HeavyKeeper[K]) update(t time.Time, since time.Duration, key K, hash uint64, n uint32) {
	if n == 0 {
		return
	}
	p := h.stripes.Lock()
	defer h.stripes.Unlock(p)
	h.count(&p.Value, t, since, key, hash, n)
}

// count counts n occurrences of key at time t in stripe c, which must be
// locked.
func (h *HeavyKeeper[K]) count(c *counter[K], t time.Time, since time.Duration, key K, hash uint64, n uint32) {
	if since >= c.from && since < c.to {
		c.add(c.wheel.at, key, hash, n)
		return
	}
	// A key that is ignored moves no time.
	at, ok := 0, !c.sketch.Valid(key)
	if !ok {
		at, ok = h.enter(c, t, since, n)
	}
	if ok {
		c.add(at, key, hash, n)
	}
}

// AddBatch counts one occurrence of each key now. It is shorthand for
// AddBatchAt(time.Now(), batch).
func (h *HeavyKeeper[K]) AddBatch(batch []K) { h.AddBatchAt(h.now(), batch) }

// AddBatchAt counts one occurrence of each key at time t. It takes a lock once
// for every 64 keys, which is most of what AddAt costs. It does not retain the
// slice.
func (h *HeavyKeeper[K]) AddBatchAt(t time.Time, batch []K) {
	var hashes [batchSize]uint64
	since := h.grid.since(t)
	for len(batch) > 0 {
		chunk := batch[:min(len(batch), batchSize)]
		for i, key := range chunk {
			hashes[i] = h.keys.Hash(key)
		}
		h.addChunk(t, since, chunk, hashes[:len(chunk)])
		batch = batch[len(chunk):]
	}
}

func (h *HeavyKeeper[K]) addChunk(t time.Time, since time.Duration, chunk []K, hashes []uint64) {
	p := h.stripes.Lock()
	defer h.stripes.Unlock(p)
	c := &p.Value
	at, ok := c.wheel.at, since >= c.from && since < c.to
	if !ok {
		valid := uint32(0)
		for _, key := range chunk {
			if c.sketch.Valid(key) {
				valid++
			}
		}
		if valid > 0 {
			at, ok = h.enter(c, t, since, valid)
		}
	}
	for i, key := range chunk {
		if ok || !c.sketch.Valid(key) {
			c.add(at, key, hashes[i], 1)
		}
	}
}

// enter does what counter.enter does and keeps latest up to date. c must be
// locked.
func (h *HeavyKeeper[K]) enter(c *counter[K], t time.Time, since time.Duration, n uint32) (at int, ok bool) {
	at, ok = c.enter(&h.grid, t, since, n)
	h.raise(c.wheel.number)
	return at, ok
}

// raise makes latest at least number.
func (h *HeavyKeeper[K]) raise(number int64) {
	for latest := h.latest.Load(); latest < number; latest = h.latest.Load() {
		if h.latest.CompareAndSwap(latest, number) {
			return
		}
	}
}

// Reset forgets every key, and what the present is, one stripe after another.
// An update that runs meanwhile is either forgotten or counted in full.
func (h *HeavyKeeper[K]) Reset() {
	for _, c := range h.stripes.Locked() {
		c.reset()
	}
	h.restart()
}

// restart sets latest after stripes have been set back. Only when all have,
// does none stand where it was, to raise latest again.
func (h *HeavyKeeper[K]) restart() {
	h.latest.Store(none)
	for _, c := range h.stripes.Locked() {
		if c.started {
			h.raise(c.wheel.number)
		}
	}
}

// present returns the last slot of the window at time t, and the time from its
// beginning to t, 0 if t is before that.
func (h *HeavyKeeper[K]) present(t time.Time) (number int64, offset time.Duration) {
	number, offset = h.grid.locate(t, h.grid.since(t))
	if latest := h.latest.Load(); latest > number {
		return latest, 0
	}
	return number, offset
}

// Estimate returns what is known of the number of events of key in the window
// now. It is shorthand for EstimateAt(time.Now(), key).
func (h *HeavyKeeper[K]) Estimate(key K) heavykeeper.Estimate { return h.EstimateAt(h.now(), key) }

// EstimateAt returns what is known of the number of events of key in the
// window at time t: bounds, and as Count what Top ranks by. For a key that was
// a candidate all through the window all three are the same. Count may be 0
// for a key that was seen. O(Stripes x (Rows + Slots)).
func (h *HeavyKeeper[K]) EstimateAt(t time.Time, key K) heavykeeper.Estimate {
	var sum heavykeeper.Estimate
	hash := h.keys.Hash(key)
	number, _ := h.present(t)
	for _, c := range h.stripes.Locked() {
		sum = plus(sum, c.estimate(key, hash, c.view(number)))
	}
	return sum
}

// Series returns the number of events of key in each slot of the window now.
// It is shorthand for SeriesAt(time.Now(), key).
func (h *HeavyKeeper[K]) Series(key K) []uint64 { return h.SeriesAt(h.now(), key) }

// SeriesAt returns the number of events of key in each slot of the window at
// time t, oldest first: Slots of them, as they were counted while key was a
// candidate. The sum is Lower of EstimateAt, or less where that knows of
// events before. O(Stripes x Slots).
func (h *HeavyKeeper[K]) SeriesAt(t time.Time, key K) []uint64 {
	series := make([]uint64, h.config.Slots)
	hash := h.keys.Hash(key)
	number, _ := h.present(t)
	for _, c := range h.stripes.Locked() {
		if slot := c.sketch.Slot(key, hash); slot >= 0 {
			left := c.view(number).left
			for age := range left {
				series[left-1-age] += c.count(age, slot)
			}
		}
	}
	return series
}

// Span returns how much time the window covers now. It is shorthand for
// SpanAt(time.Now()).
func (h *HeavyKeeper[K]) Span() time.Duration { return h.SpanAt(h.now()) }

// SpanAt returns how much time the window covers at time t: from the beginning
// of its oldest slot, or from the first event if that came later, to t. It
// grows from 0 at the first event to more than Slots - 1 slots and never more
// than Slots. O(Stripes).
func (h *HeavyKeeper[K]) SpanAt(t time.Time) time.Duration {
	number, offset := h.present(t)
	span := time.Duration(0)
	for _, c := range h.stripes.Locked() {
		if c.started {
			span = max(span, h.since(c.first, number, offset, h.config.Slots))
		}
	}
	return span
}

// TotalAt returns the number of events of all keys in the latest slots of the
// window at time t, in all of it if slots <= 0 or slots >= Slots, and how much
// time these cover, as SpanAt has it. The present slot is the latest of them,
// and has only begun. O(Stripes x Slots).
func (h *HeavyKeeper[K]) TotalAt(t time.Time, slots int) (events uint64, span time.Duration) {
	if slots <= 0 || slots > h.config.Slots {
		slots = h.config.Slots
	}
	number, offset := h.present(t)
	for _, c := range h.stripes.Locked() {
		if !c.started {
			continue
		}
		span = max(span, h.since(c.first, number, offset, slots))
		left := c.view(number).left
		for age := range left - (h.config.Slots - slots) {
			events = addSaturated(events, c.totals[c.wheel.position(age)])
		}
	}
	return events, span
}

// since returns the time from first to an offset in slot number, as far as a
// window's latest slots cover it; not positive if that is before first.
func (h *HeavyKeeper[K]) since(first time.Time, number int64, offset time.Duration, latest int) time.Duration {
	from, skip := h.grid.locate(first, h.grid.since(first))
	if from > number {
		return 0
	}
	if slots := uint64(number - from); slots < uint64(latest) {
		return time.Duration(slots)*h.config.Slot + offset - skip
	}
	return time.Duration(latest-1)*h.config.Slot + offset
}

// Rate returns count events in a span as events per second, 0 if span is not
// positive. With the Count of an Estimate and the Span of its window it is the
// rate that was measured, from the first second on.
func Rate(count uint64, span time.Duration) float64 {
	if span <= 0 {
		return 0
	}
	return float64(count) / span.Seconds()
}

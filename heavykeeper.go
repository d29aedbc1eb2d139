package heavykeeper

import (
	"fmt"
	"iter"
	"slices"
	"unsafe"

	"github.com/heavykeeper-go/heavykeeper/internal/stripe"
)

// Counter counts occurrences of keys.
type Counter[K comparable] interface {
	Add(key K)
	AddN(key K, n uint32)
}

// Estimator tells what is known of a key's weight.
type Estimator[K comparable] interface {
	Estimate(key K) Estimate
}

// Ranker lists the n heaviest keys, by descending count, as many as it keeps if
// n <= 0.
type Ranker[K comparable] interface {
	Top(n int) []Item[K]
}

// Fader lets all weights fade by one step.
type Fader interface {
	Fade()
}

// HeavyKeeper finds the K heaviest keys of a stream that many goroutines count.
//
// An update goes to one of several stripes, each a whole [Sketch] with a lock,
// chosen by the processor it runs on and not by the key, so that even a stream
// of a single key scales with the number of processors. A read adds up all
// stripes, locking one at a time: it sees each stripe at a slightly different
// moment, and an update that is under way in none or one of them. The bounds of
// the sum hold for the updates that were complete when the read began, at
// least, and that had begun when it ended, at most.
//
// The zero value is of no use but to UnmarshalBinary; see [New]. All methods are safe for concurrent
// use.
type HeavyKeeper[K comparable] struct {
	keys    keys[K]
	config  Config[K] // resolved
	stripes *stripe.Set[Sketch[K]]
}

// New returns an empty HeavyKeeper. It fails if a parameter is out of range.
func New[K comparable](config Config[K]) (*HeavyKeeper[K], error) {
	config, err := config.resolve()
	if err != nil {
		return nil, err
	}
	h := &HeavyKeeper[K]{keys: newKeys(config), config: config}
	decay, seed := newDecay(config.Base), config.Seed
	h.stripes = stripe.New(config.Stripes, func(s *Sketch[K]) {
		// Stripes share row positions but not the course of their decay.
		s.init(config, h.keys, decay, newGenerator(seed))
		seed++
	})
	return h, nil
}

// Add counts one occurrence of key. It is shorthand for AddN(key, 1).
func (h *HeavyKeeper[K]) Add(key K) { h.update(key, h.keys.hash(key), 1) }

// AddN counts n occurrences of key, or one of weight n: in O(log n) steps, not
// n. Nothing happens if n is 0. A key that does not equal itself is ignored and
// counted in [Stats]. See [Sketch.AddN] for the limits of weights.
func (h *HeavyKeeper[K]) AddN(key K, n uint32) { h.update(key, h.keys.hash(key), n) }

// AddBytes counts n occurrences of the string that key holds, as AddN does,
// without converting it: key is copied only if that makes it tracked. The
// caller may change it as soon as AddBytes returns; a Config.Hash must not
// retain it.
func AddBytes(h *HeavyKeeper[string], key []byte, n uint32) {
	s := unsafe.String(unsafe.SliceData(key), len(key))
	h.update(s, h.keys.hash(s), n)
}

func (h *HeavyKeeper[K]) update(key K, hash uint64, n uint32) {
	p := h.stripes.Lock()
	defer h.stripes.Unlock(p)
	p.Value.update(key, hash, n)
}

// AddBatch counts one occurrence of each key. It takes a lock once for every 64
// keys, which is most of what Add costs. It does not retain the slice.
func (h *HeavyKeeper[K]) AddBatch(batch []K) {
	var hashes [batchSize]uint64
	for len(batch) > 0 {
		chunk := batch[:min(len(batch), batchSize)]
		h.keys.hashAll(hashes[:], chunk)
		h.addChunk(chunk, hashes[:len(chunk)])
		batch = batch[len(chunk):]
	}
}

func (h *HeavyKeeper[K]) addChunk(chunk []K, hashes []uint64) {
	p := h.stripes.Lock()
	defer h.stripes.Unlock(p)
	p.Value.addChunk(chunk, hashes)
}

// Fade multiplies every weight by 1 - Alpha; see [Sketch.Fade]. Stripes fade one
// after another: an update that runs meanwhile is counted once, and fades with
// the stripe it goes to or does not.
func (h *HeavyKeeper[K]) Fade() {
	for _, s := range h.stripes.Locked() {
		s.Fade()
	}
}

// FadeFactor returns by what the next call of Fade multiplies every weight of
// the first stripe; see [Sketch.FadeFactor]. That of others may differ in
// rounding, once heavy weights or Merge have set their units back.
func (h *HeavyKeeper[K]) FadeFactor() float64 {
	factor := 1.0
	h.stripes.With(0, func(s *Sketch[K]) bool {
		factor = s.FadeFactor()
		return true
	})
	return factor
}

// Reset forgets every key, one stripe after another. Each stripe forgets
// exactly what it had counted when its turn came, so that an update that runs
// meanwhile is either forgotten or counted in full.
func (h *HeavyKeeper[K]) Reset() {
	for _, s := range h.stripes.Locked() {
		s.Reset()
	}
}

// Estimate returns what is known of the weight of key: the sums of what each
// stripe knows. O(Stripes x Rows).
func (h *HeavyKeeper[K]) Estimate(key K) Estimate {
	var sum interval
	hash := h.keys.hash(key)
	for _, s := range h.stripes.Locked() {
		sum = sum.plus(s.interval(key, hash))
	}
	return sum.estimate(h.config.Alpha)
}

// Contains reports whether key is tracked by a stripe. O(Stripes).
func (h *HeavyKeeper[K]) Contains(key K) bool {
	hash := h.keys.hash(key)
	for _, s := range h.stripes.Locked() {
		if s.tracked.find(key, hash) >= 0 {
			return true
		}
	}
	return false
}

// Top returns the n heaviest keys, K of them if n <= 0 or n > K, by descending
// count and then ascending key; keys that are neither numbers nor strings come
// in an order of the process. Keys that have faded to a count of 0 are left
// out.
//
// The candidates are the keys that any stripe tracks. Where stripes track
// different keys, on flat streams, 4K of them are looked up in all stripes:
// those that have counted most where they are tracked. O(S log S) for sorting
// the S candidates, at most Stripes x Slots, and O(Stripes x K x Rows) for
// looking them up; memory for S of them meanwhile. No stripe is locked for
// longer than copying its tracked keys takes, or looking up 64.
func (h *HeavyKeeper[K]) Top(n int) []Item[K] { return h.AppendTop(nil, n) }

// AppendTop appends what Top returns to dst.
func (h *HeavyKeeper[K]) AppendTop(dst []Item[K], n int) []Item[K] {
	start := len(dst)
	candidates := h.candidates(n)
	dst = slices.Grow(dst, len(candidates))
	for i := range candidates {
		item := Item[K]{candidates[i].key, candidates[i].sum.estimate(h.config.Alpha)}
		if item.Count > 0 {
			dst = append(dst, item)
		}
	}
	return h.config.rank(&h.keys, dst, start, n)
}

// All iterates over what Top returns, as it was when the iteration began.
func (h *HeavyKeeper[K]) All() iter.Seq[Item[K]] {
	return func(yield func(Item[K]) bool) {
		for _, item := range h.Top(0) {
			if !yield(item) {
				return
			}
		}
	}
}

// Stats returns the totals of all stripes. Tracked is the number of distinct
// keys. No stripe is locked for longer than copying its keys takes.
// O(Stripes x K).
func (h *HeavyKeeper[K]) Stats() Stats {
	sum := census{Stats: Stats{Exact: true, Bytes: h.overhead()}}
	distinct := make(map[K]struct{})
	var keys []K
	for i := range h.stripes.Len() {
		h.stripes.With(i, func(s *Sketch[K]) bool {
			sum = sum.plus(s.census())
			keys = s.appendKeys(keys[:0])
			return true
		})
		// A map takes longer than a stripe should be locked.
		for _, key := range keys {
			distinct[key] = struct{}{}
		}
	}
	sum.Tracked = len(distinct)
	return sum.stats(h.config.Alpha)
}

// String returns the size of h: not its keys, which Top and All return, nor its
// Seed, which may be secret.
func (h *HeavyKeeper[K]) String() string {
	return fmt.Sprintf("heavykeeper.HeavyKeeper(K = %d, Stripes = %d)", h.config.K, h.config.Stripes)
}

// overhead returns the bytes that are not in the sum of the stripes' own.
func (h *HeavyKeeper[K]) overhead() int {
	part := int(unsafe.Sizeof(stripe.Part[Sketch[K]]{}) - unsafe.Sizeof(Sketch[K]{}))
	n := int(unsafe.Sizeof(*h)) + h.stripes.Len()*part
	if h.config.Base != defaultBase {
		n -= (h.stripes.Len() - 1) * int(unsafe.Sizeof(decayTable{})) // they share one
	}
	return n
}

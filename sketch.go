package heavykeeper

import (
	"iter"
	"math"
	"unsafe"
)

// Sketch finds the K heaviest keys of a stream. It is one stripe of a
// [HeavyKeeper]: m rows of cells in which untracked keys compete, and a
// tracked set of K keys that are counted exactly.
//
// For every key, tracked or not, Estimate's Lower is at most and its Upper at
// least the key's true weight, unless keys that share a cell share 32 bits of
// fingerprint too. An update takes O(Rows) steps, O(log K) if it admits the
// key, and allocates nothing but the copy of an admitted string.
//
// The zero value is not usable; see [NewSketch]. Most programs want a
// HeavyKeeper. A Sketch is not safe for concurrent use, except for methods
// that only read.
type Sketch[K comparable] struct {
	tracked tracked[K]
	keys    keys[K]
	fading  fading
	since   uint64 // weight seen since the last fade or shift, unscaled
	rows    rows
	random  generator
	decay   decay

	total      uint64 // weight seen before since, unscaled
	faded      uint64 // the same in units
	admissions uint64
	evictions  uint64
	ignored    uint64
	inexact    bool   // rows are in use, or an entry lost a fraction
	fraction   uint64 // 1 once a shift has cost an entry a fraction

	config Config[K] // resolved
}

// NewSketch returns an empty Sketch. It fails if a parameter is out of range.
func NewSketch[K comparable](config Config[K]) (*Sketch[K], error) {
	config.Stripes = max(config.Stripes, 1)
	config, err := config.resolve()
	if err != nil {
		return nil, err
	}
	return newSketch(config, newKeys(config), newDecay(config.Base)), nil
}

func newSketch[K comparable](config Config[K], keys keys[K], decay decay) *Sketch[K] {
	s := &Sketch[K]{
		tracked: newTracked[K](config.K),
		keys:    keys,
		rows:    newRows(config.Rows, config.Width, config.Seed),
		decay:   decay,
		config:  config,
	}
	s.Reset()
	return s
}

// Add counts one occurrence of key. It is shorthand for AddN(key, 1).
func (s *Sketch[K]) Add(key K) { s.update(key, s.keys.hash(key), 1) }

// AddN counts n occurrences of key, or one of weight n: in O(log n) steps, not
// n. Nothing happens if n is 0. A key that does not equal itself is ignored and
// counted in [Stats].
//
// Totals and tracked counts stop at 2^64-1. The cells of untracked keys stop at
// 2^32-1: if weights are so large that even the K-th key is far beyond that
// (bytes of traffic over months, say), newcomers enter only by single weights
// of that size, so give larger units or let the counts fade.
func (s *Sketch[K]) AddN(key K, n uint32) { s.update(key, s.keys.hash(key), n) }

// Update does what AddN does and returns the slot of key, which is constant
// while the key is tracked and less than K, or -1 if key is not tracked
// afterwards. admitted tells whether this update made it so; the key that had
// the slot before is not tracked any more. Packages that keep more about a
// tracked key than its count keep it by slot.
func (s *Sketch[K]) Update(key K, n uint32) (slot int, admitted bool) {
	return s.update(key, s.keys.hash(key), n)
}

func (s *Sketch[K]) update(key K, h uint64, n uint32) (slot int, admitted bool) {
	t := &s.tracked
	mask := uint32(len(t.index) - 1)
	for i := uint32(h>>32) >> (t.homeBits & 31); ; i++ {
		word := t.index[i&mask]
		if word == 0 {
			return s.miss(key, h, n)
		}
		if (word^uint32(h))&^t.slotMask != 0 {
			continue
		}
		slot := int(word&t.slotMask) - 1
		if e := &t.entries[slot]; e.key == key {
			s.since += uint64(n)
			w := uint64(n) * s.fading.unit
			if e.count += w; e.count < w {
				e.count = math.MaxUint64
			}
			return slot, false
		}
	}
}

// miss counts n occurrences of a key that is not tracked.
func (s *Sketch[K]) miss(key K, h uint64, n uint32) (slot int, admitted bool) {
	if n == 0 {
		return -1, false
	}
	if !s.keys.valid(key) {
		s.ignored++
		return -1, false
	}
	s.since += uint64(n)
	w := uint64(n) * s.fading.unit
	// The paper admits a key by its cell alone. A weight that would do by
	// itself need not first win a cell, which a large count denies for ever.
	if !s.tracked.full() || w > s.tracked.floor() && s.outweighs(w) {
		return s.admit(key, h, w), true
	}
	s.inexact = true
	v := s.rows.add(h, w)
	if v.over >= 1<<31 {
		s.rows.add(h, -w)
		return s.missHeavy(key, h, n)
	}
	credit := v.lower
	switch {
	case v.owned:
	case w == 1:
		credit = s.challenge(v.weakest, h)
	default:
		credit = uint64(s.contest(v.weakest, n)) * s.fading.unit
		if credit > 0 {
			s.rows.take(v.weakest, h, credit)
		}
	}
	if credit > s.tracked.floor() && s.outweighs(credit) {
		return s.admit(key, h, 0), true
	}
	return -1, false
}

// outweighs reports whether a count is larger than the smallest tracked one.
func (s *Sketch[K]) outweighs(count uint64) bool {
	return count > s.tracked.entries[s.tracked.least()].count
}

// challenge is contest and take for the weight that is by far the most common,
// 1, which the rows have already, in counters far from their ends. Whether an
// occurrence removes one from a small count is as good as random, so this has
// no branch for it: BenchmarkMiss guards it.
func (s *Sketch[K]) challenge(c *cell, h uint64) (credit uint64) {
	count, last := c.count, uint32(len(s.decay.table)-1)
	r := s.random.next()
	hit := uint32(0)
	if r < s.decay.table[min(count, last)] {
		hit = 1
	}
	if count > last && hit == 1 && !s.decay.hit(uint64(count), r) {
		hit = 0
	}
	if count == 0 {
		hit = 0
	}
	count -= hit
	won := uint32((uint64(count) - 1) >> 63) // 1 where count is 0
	fingerprint := uint32(h) & s.rows.mask
	c.fingerprint ^= (c.fingerprint ^ fingerprint) & -won
	c.count = count + won
	c.err += hit - won
	return uint64(won)
}

// contest lets n occurrences of a key wear down the count of c and returns how
// many remain once that is 0.
func (s *Sketch[K]) contest(c *cell, n uint32) (remain uint32) {
	before := s.fading.occurrences(c.count)
	after, remain := s.decay.contest(before, n, &s.random)
	if after < before {
		removed := min((before-after)*s.fading.unit, uint64(c.count))
		s.rows.setCount(c, c.count-uint32(removed))
	}
	return remain
}

// missHeavy is miss, with a full tracked set, for a weight that brings a
// counter near its end. If it is enough to have the key tracked it need not
// pass through the rows; else the rows make room, if they fade, or saturate.
func (s *Sketch[K]) missHeavy(key K, h uint64, n uint32) (slot int, admitted bool) {
	w := uint64(n) * s.fading.unit
	v := s.rows.look(h, w)
	gain := w // what is credited to the key; the rest is error
	if !v.owned {
		gain = uint64(s.contest(v.weakest, n)) * s.fading.unit
	}
	admitted = s.outweighs(v.lower + gain)
	direct := uint64(0) // what does not pass through the rows
	if admitted {
		direct, w = gain, w-gain
	}
	if bits := s.makeRoom(h, w); bits > 0 {
		all := shiftUp(w+direct, bits)
		w, gain, direct = w>>bits, gain>>bits, direct>>bits
		s.rows.addErrors(h, all-w-direct)
		v = s.rows.look(h, w)
	}
	s.rows.addSlowly(h, w)
	if admitted {
		return s.admit(key, h, direct), true
	}
	if !v.owned && gain > 0 {
		s.rows.take(v.weakest, h, gain)
	}
	return -1, false
}

// admit makes key tracked with its count in the rows, and extra beyond that,
// which the rows do not have.
func (s *Sketch[K]) admit(key K, h, extra uint64) (slot int) {
	lower, upper := s.rows.bounds(h)
	s.rows.lift(h, lower)
	e := entry[K]{
		key:   s.keys.clone(key),
		count: lower + extra,
		slack: uint32(min(upper-lower, saturated)),
	}
	s.admissions++
	if !s.tracked.full() {
		slot = s.tracked.push(e, h)
	} else {
		s.inexact = true
		slot = s.tracked.least()
		evicted := s.tracked.entries[slot]
		s.tracked.replace(e, h)
		s.evictions++
		s.writeBack(evicted.key, evicted.count)
		if s.config.OnEvict != nil {
			s.config.OnEvict(evicted.key)
		}
	}
	if s.config.OnAdmit != nil {
		s.config.OnAdmit(e.key)
	}
	return slot
}

// writeBack returns the count of a key that has left the tracked set to the
// rows.
func (s *Sketch[K]) writeBack(key K, count uint64) {
	h := s.keys.hash(key)
	if bits := s.makeRoom(h, addSaturated(count, s.fraction)); bits > 0 {
		count >>= bits
		s.fraction = 1
	}
	s.rows.settle(h, count, s.fraction)
}

// makeRoom shifts all stored weights down until w more fits into the cells of
// the key with hash h, if they fade, and returns by how many bits: almost
// always 0. The caller's own weights, w among them, are to follow.
func (s *Sketch[K]) makeRoom(h, w uint64) (bits uint) {
	for s.rows.look(h, shiftUp(w, bits)).over >= saturated {
		s.fold()
		if !s.fading.shrink() {
			break
		}
		s.shift(1)
		bits++
	}
	return bits
}

// shift divides all stored weights by 2^bits.
func (s *Sketch[K]) shift(bits uint) {
	s.rows.shift(bits)
	if s.tracked.shift(bits) {
		s.fraction = 1
		s.inexact = true
	}
	s.faded >>= bits
}

// fold adds the weight seen since the last call to the totals. It must be
// called before the unit changes.
func (s *Sketch[K]) fold() {
	s.total = addSaturated(s.total, s.since)
	s.faded = addSaturated(s.faded, mulSaturated(s.since, s.fading.unit))
	s.since = 0
}

// AddBatch counts one occurrence of each key, in less time than as many calls
// of Add: within each run of 64 keys those that are tracked come first, so that
// no work on the rows waits for a look into the index. It does not retain the
// slice.
func (s *Sketch[K]) AddBatch(batch []K) {
	var hashes [batchSize]uint64
	for len(batch) > 0 {
		chunk := batch[:min(len(batch), batchSize)]
		s.keys.hashAll(hashes[:], chunk)
		s.addChunk(chunk, hashes[:len(chunk)])
		batch = batch[len(chunk):]
	}
}

// batchSize is the number of keys that are looked up in one go.
const batchSize = 64

// addChunk counts one occurrence of each of at most batchSize keys.
func (s *Sketch[K]) addChunk(chunk []K, hashes []uint64) {
	t := &s.tracked
	if len(t.entries) == 0 {
		for i, h := range hashes {
			s.update(chunk[i], h, 1)
		}
		return
	}
	// Only the first word of a probe is looked at, without a branch on the
	// outcome, which is as good as random.
	var missed [batchSize]uint8
	misses := 0
	mask := uint32(len(t.index) - 1)
	for i, h := range hashes {
		word := t.index[uint32(h>>32)>>(t.homeBits&31)&mask]
		e := &t.entries[max(word&t.slotMask, 1)-1]
		hit := uint64(0)
		if e.key == chunk[i] {
			hit = 1
		}
		if word == 0 {
			hit = 0
		}
		e.count = addSaturated(e.count, hit*s.fading.unit)
		missed[misses%batchSize] = uint8(i)
		misses += int(1 - hit)
	}
	s.since += uint64(len(chunk) - misses)
	for _, i := range missed[:misses] {
		s.update(chunk[i], hashes[i], 1)
	}
}

// Fade multiplies every weight by 1 - Alpha, for bounds as for counts. After t
// fades an occurrence counts (1-Alpha)^t, to within one part in 512. Callers
// fade on a clock. Nothing happens where Alpha is 0. O(1), but for O(Rows x
// Width + K) once in about 5.5 / Alpha fades.
func (s *Sketch[K]) Fade() {
	if s.fading.alpha == 0 {
		return
	}
	s.fold()
	if bits := s.fading.fade(); bits > 0 {
		s.shift(bits)
	}
}

// Reset forgets every key. The Sketch is then as NewSketch returned it.
func (s *Sketch[K]) Reset() {
	s.tracked.reset()
	s.rows.reset()
	s.fading = newFading(s.config.Alpha)
	s.random = newGenerator(s.config.Seed)
	s.since, s.total, s.faded = 0, 0, 0
	s.admissions, s.evictions, s.ignored = 0, 0, 0
	s.inexact, s.fraction = false, 0
}

// Estimate returns what is known of the weight of key: its bounds, and as its
// count the lower of them, HeavyKeeper's own estimate, which may be 0 for a key
// that was seen. O(Rows).
func (s *Sketch[K]) Estimate(key K) Estimate {
	h := s.keys.hash(key)
	if slot := s.tracked.find(key, h); slot >= 0 {
		return s.at(slot)
	}
	if !s.keys.valid(key) {
		return Estimate{}
	}
	return s.fading.estimate(s.rows.bounds(h))
}

// at returns the estimate of the tracked key in slot.
func (s *Sketch[K]) at(slot int) Estimate {
	e := &s.tracked.entries[slot]
	return s.fading.estimate(e.count, e.upper())
}

// Contains reports whether key is tracked.
func (s *Sketch[K]) Contains(key K) bool {
	return s.tracked.find(key, s.keys.hash(key)) >= 0
}

// Top returns the n heaviest tracked keys, all of them if n <= 0, by
// descending count and then ascending key. Keys that have faded to a count of
// 0 are left out. O(K log K).
func (s *Sketch[K]) Top(n int) []Item[K] {
	return s.AppendTop(make([]Item[K], 0, len(s.tracked.entries)), n)
}

// AppendTop appends what Top returns to dst. It does not allocate if dst has
// room for all tracked keys.
func (s *Sketch[K]) AppendTop(dst []Item[K], n int) []Item[K] {
	start := len(dst)
	for slot := range s.tracked.entries {
		if e := s.at(slot); e.Count > 0 {
			dst = append(dst, Item[K]{s.tracked.entries[slot].key, e})
		}
	}
	return s.keys.rank(dst, start, n)
}

// All iterates over what Top returns, as it was when the iteration began.
func (s *Sketch[K]) All() iter.Seq[Item[K]] {
	return func(yield func(Item[K]) bool) {
		for _, item := range s.Top(0) {
			if !yield(item) {
				return
			}
		}
	}
}

// Stats returns the totals. O(K).
func (s *Sketch[K]) Stats() Stats {
	unfaded := s.since
	stats := Stats{
		Total:      addSaturated(s.total, unfaded),
		Tracked:    len(s.tracked.entries),
		Admissions: s.admissions,
		Evictions:  s.evictions,
		Ignored:    s.ignored,
		Saturated:  s.rows.saturated,
		Exact:      !s.inexact,
		Bytes:      s.bytes(),
	}
	weight := addSaturated(s.faded, mulSaturated(unfaded, s.fading.unit))
	stats.Weight = s.fading.estimate(weight, weight).Count
	trackedWeight := uint64(0)
	for i := range s.tracked.entries {
		trackedWeight = addSaturated(trackedWeight, s.tracked.entries[i].count)
	}
	stats.TrackedWeight = s.fading.estimate(trackedWeight, trackedWeight).Count
	return stats
}

func (s *Sketch[K]) bytes() int {
	n := int(unsafe.Sizeof(*s)) + s.rows.bytes() + s.tracked.bytes() + cap(s.keys.strings)*8
	if s.config.Base != defaultBase {
		n += int(unsafe.Sizeof(*s.decay.table))
	}
	for i := range s.tracked.entries {
		n += s.keys.stringBytes(s.tracked.entries[i].key)
	}
	return n
}

package heavykeeper

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"unsafe"
)

// Sketch finds the K heaviest keys of a stream. It is one stripe of a
// [HeavyKeeper]: m rows of cells in which untracked keys compete, and a
// tracked set of K keys that are counted exactly.
//
// For every key, tracked or not, Estimate's Lower is at most and its Upper at
// least the key's true weight, unless keys that share a cell share 32 bits of
// fingerprint too. An update takes O(Rows) steps, O(log K) if it admits the
// key. It allocates nothing, once the tracked set has grown to its size, but the
// copy of an admitted string; keys that hold interfaces take more.
//
// The zero value is of no use but to UnmarshalBinary; see [NewSketch]. Most programs want a
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

	quantum uint64 // 1 + excess/misses when last a weight above 1 missed
	misses  uint64 // updates that reached the rows
	excess  uint64 // their weight beyond 1 each

	total      uint64 // weight seen before since, unscaled
	faded      uint64 // the same in units
	admissions uint64
	evictions  uint64
	ignored    uint64
	inexact    bool   // rows are in use, or an entry lost a fraction
	merged     bool   // since the last Reset
	fraction   uint64 // at most what scaling has cost an entry

	start  generator // what random is after a Reset
	config Config[K] // resolved
}

// NewSketch returns an empty Sketch. It fails if a parameter is out of range.
func NewSketch[K comparable](config Config[K]) (*Sketch[K], error) {
	if config.Stripes >= 0 && config.Stripes <= maxStripes {
		config.Stripes = 1
	}
	config, err := config.resolve()
	if err != nil {
		return nil, err
	}
	return newSketch(config, newKeys(config), newDecay(config.Base)), nil
}

func newSketch[K comparable](config Config[K], keys keys[K], decay decay) *Sketch[K] {
	s := new(Sketch[K])
	s.init(config, keys, decay, newGenerator(config.Seed))
	return s
}

// init makes a new sketch of s.
func (s *Sketch[K]) init(config Config[K], keys keys[K], decay decay, start generator) {
	*s = Sketch[K]{
		tracked: newTracked[K](slots(config.K), firstRoom, ample(config.Rows*config.Width)),
		keys:    keys,
		rows:    newRows(config.Rows, config.Width, config.Seed),
		decay:   decay,
		start:   start,
		config:  config,
	}
	s.Reset()
}

// slots returns the number of tracked keys of which k are reported. A quarter
// more than that makes sure that a key just below the k heaviest of each of
// several sketches, or stripes, is known by name when they add up.
func slots(k int) int { return k + k/4 + 1 }

// ample returns how many words of the index take a 32nd of the memory of so many
// cells.
func ample(cells int) int { return cells * int(unsafe.Sizeof(cell{})) / 32 / 4 }

// Slots returns the number of slots: how many keys can be tracked. It is
// K + K/4 + 1.
func (s *Sketch[K]) Slots() int { return s.tracked.limit }

// Add counts one occurrence of key. It is shorthand for AddN(key, 1).
func (s *Sketch[K]) Add(key K) {
	// This is update, with nothing that could wait on the way to an entry, nor a
	// call where keys have 64 bits. Whether the key has an entry a processor
	// cannot guess, and all that it does before it knows is lost when it guesses
	// wrong: BenchmarkAdd.
	var h, early uint64
	if s.keys.kind == kind64 {
		early = s.keys.mix64(key)
		h = mixEnd(early)
	} else {
		h = s.keys.hashOther(key)
		early = h
	}
	t := &s.tracked
	word := t.index[t.position(early)]
	if slot := word&t.slotMask - 1; (word^uint32(h))&t.tagMask == 0 && uint(slot) < uint(len(t.entries)) {
		if e := &t.entries[slot]; e.key == key {
			s.since++
			unit := s.fading.unit
			if e.count += unit; e.count < unit {
				e.count = math.MaxUint64
			}
			return
		}
	}
	if word < further {
		s.missOne(key, h)
	} else {
		s.update(key, h, 1)
	}
}

// AddN counts n occurrences of key, or one of weight n: in O(log n) steps, not
// n. Nothing happens if n is 0. A key that does not equal itself is ignored and
// counted in [Stats].
//
// Totals and tracked counts stop at 2^64-1, at 2^48 where weights fade. The
// cells of untracked keys stop at 2^32-1: if weights are so large that even the
// K-th key is far beyond that (bytes of traffic over months, say), newcomers
// enter only by single weights of that size, so give larger units or let the
// counts fade.
func (s *Sketch[K]) AddN(key K, n uint32) { s.update(key, s.keys.hash(key), n) }

func (s *Sketch[K]) update(key K, h uint64, n uint32) (slot int, admitted bool) {
	t := &s.tracked
	word := t.index[t.position(h)]
	slot = int(word&t.slotMask) - 1
	if (word^uint32(h))&t.tagMask != 0 || uint(slot) >= uint(len(t.entries)) || t.entries[slot].key != key {
		slot = -1
		if word >= further {
			slot = t.find(key, h)
		}
		switch {
		case slot >= 0:
		case n == 1:
			return s.missOne(key, h)
		default:
			return s.miss(key, h, n)
		}
	}
	s.see(n)
	w := uint64(n) * s.fading.unit
	e := &t.entries[slot]
	if e.count += w; e.count < w {
		e.count = math.MaxUint64
	}
	return slot, false
}

// missOne is miss for one occurrence, by far the most common weight.
//
// This is most of the cost of a miss, and BenchmarkMiss guards it. It has one
// branch that depends on data, whether the key owns any of its cells: which of
// them is as good as random, and a branch for that would cost more than the
// rest.
func (s *Sketch[K]) missOne(key K, h uint64) (slot int, admitted bool) {
	r, unit := &s.rows, s.fading.unit
	if r.count != defaultRows || s.quantum != 1 || s.keys.strict || key != key ||
		!s.tracked.full() || unit > s.tracked.floor() {
		return s.miss(key, h, 1)
	}
	a, b := r.pair(h, 0)
	c, d := r.pair(h, 1)
	fingerprint := uint32(h) & r.mask
	otherA, otherB, otherC, otherD := a.other(fingerprint), b.other(fingerprint), c.other(fingerprint), d.other(fingerprint)
	sumA, sumB, sumC, sumD := a.give(unit, otherA), b.give(unit, otherB), c.give(unit, otherC), d.give(unit, otherD)
	if sumA|sumB|sumC|sumD >= nearEnd {
		r.add(h, -unit)
		return s.miss(key, h, 1)
	}
	s.since++
	s.misses++
	s.inexact = true
	var credit uint64
	if otherA&otherB&otherC&otherD == 0 {
		credit = max(sumA&(otherA-1), sumB&(otherB-1), sumC&(otherC-1), sumD&(otherD-1))
	} else {
		weakest, least := a, a.count
		if b.count < least {
			weakest, least = b, b.count
		}
		if c.count < least {
			weakest, least = c, c.count
		}
		if d.count < least {
			weakest = d
		}
		credit = s.challenge(weakest, h, uint32(unit))
	}
	if credit > s.tracked.floor() && s.outweighs(credit) {
		return s.admit(key, h, 0), true
	}
	return -1, false
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
	s.see(n)
	w := uint64(n) * s.fading.unit
	// The paper admits a key by its cell alone. A weight that would do by
	// itself need not first win a cell, which a large count denies for ever.
	if !s.tracked.full() || w > s.tracked.floor() && s.outweighs(w) {
		return s.admit(key, h, w), true
	}
	s.inexact = true
	if n == 1 {
		s.misses++
	} else {
		s.weigh(n)
	}
	v := s.rows.add(h, w)
	if v.most >= nearEnd {
		s.rows.add(h, -w)
		return s.missHeavy(key, h, n)
	}
	credit := v.lower
	switch {
	case v.owned:
	case n == 1 && s.quantum == 1:
		credit = s.challenge(v.weakest, h, uint32(w))
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
// one occurrence, which the rows have already as w, in counters far from their
// ends. Whether an occurrence removes one from a small count is as good as
// random, so this has no branch for it: BenchmarkMiss guards it.
func (s *Sketch[K]) challenge(c *cell, h uint64, w uint32) (credit uint64) {
	count, steps := c.count, c.count
	if w != 1 {
		steps = uint32((uint64(count) + uint64(w) - 1) / uint64(w))
	}
	last := uint32(len(s.decay.table) - 1)
	r := s.random.next()
	hit := uint32(0)
	if r < s.decay.table[min(steps, last)] {
		hit = 1
	}
	if steps > last && hit == 1 && !s.decay.hit(uint64(steps), r) {
		hit = 0
	}
	removed := min(w, count) & -hit
	count -= removed
	won := uint32((uint64(count) - 1) >> 63) // 1 where count is 0
	fingerprint := uint32(h) & s.rows.mask
	c.fingerprint ^= (c.fingerprint ^ fingerprint) & -won
	c.count = count + w&-won
	c.err += removed - w&-won
	return uint64(w & -won)
}

// contest lets n occurrences of a key wear down the count of c and returns how
// many remain once that is 0.
//
// The paper's c counts packets. Where weights are bytes or microseconds even a
// mouse has a count of thousands, which Base^-c would protect for ever, so that
// a new elephant would never get in (TestWeightsOfAnySize). Counts are
// therefore measured in quanta, the mean weight of an update: 1 where updates
// are occurrences.
func (s *Sketch[K]) contest(c *cell, n uint32) (remain uint32) {
	if c.count == 0 {
		return n
	}
	steps := uint64(n) / s.quantum
	if rest := uint64(n) % s.quantum; rest > 0 && s.random.uniform()*float64(s.quantum) < float64(rest) {
		steps++
	}
	if steps == 0 {
		return 0
	}
	step := s.quantum * s.fading.unit
	before := (uint64(c.count) + step - 1) / step
	after, left := s.decay.contest(before, uint32(steps), &s.random)
	if after < before {
		removed := min((before-after)*step, uint64(c.count))
		s.rows.setCount(c, c.count-uint32(removed))
	}
	return uint32(min(uint64(n), uint64(left)*s.quantum))
}

// weigh notes the weight of an update that missed, for the mean of later ones.
func (s *Sketch[K]) weigh(n uint32) {
	// No mean weight is larger than a weight can be.
	s.quantum = 1 + min(s.excess/max(s.misses, 1), math.MaxUint32)
	s.misses++
	s.excess = addSaturated(s.excess, uint64(n)-1)
}

// missHeavy is miss, with a full tracked set, for a weight that brings a
// counter near its end. If it is enough to have the key tracked it need not
// pass through the rows; else the rows make room, if they fade, or saturate.
func (s *Sketch[K]) missHeavy(key K, h uint64, n uint32) (slot int, admitted bool) {
	v := s.rows.look(h, 0)
	credit := n // of n, what counts for the key; the rest is error
	if !v.owned {
		credit = s.contest(v.weakest, n)
	}
	direct := uint32(0) // of credit, what does not pass through the rows
	if s.outweighs(v.lower + uint64(credit)*s.fading.unit) {
		direct = credit
	}
	through := uint64(n - direct)
	for s.rows.look(h, through*s.fading.unit).most >= saturated && s.shrink() {
	}
	s.rows.addSlowly(h, through*s.fading.unit)
	if direct > 0 {
		return s.admit(key, h, uint64(direct)*s.fading.unit), true
	}
	if !v.owned && credit > 0 {
		s.rows.take(s.rows.look(h, 0).weakest, h, uint64(credit)*s.fading.unit)
	}
	return -1, false
}

// admit makes key tracked with its count in the rows, and extra beyond that,
// which the rows do not have.
func (s *Sketch[K]) admit(key K, h, extra uint64) (slot int) {
	evictedHash := uint64(0)
	if s.tracked.full() {
		// Before anything changes: a Config.Hash may panic.
		evictedHash = s.keys.hash(s.tracked.entries[s.tracked.least()].key)
	}
	e := entry[K]{key: s.keys.clone(key)}.plus(s.rows.liftOut(h)).plus(extra, extra)
	s.admissions++
	if !s.tracked.full() {
		slot = s.tracked.push(e, h)
		s.inexact = s.inexact || slot >= s.config.K
	} else {
		s.inexact = true
		slot = s.tracked.least()
		evicted := s.tracked.entries[slot]
		s.tracked.replace(e, h)
		s.evictions++
		s.writeBack(evictedHash, evicted.count)
		if s.config.OnEvict != nil {
			s.config.OnEvict(evicted.key)
		}
	}
	if s.config.OnAdmit != nil {
		s.config.OnAdmit(e.key)
	}
	return slot
}

// writeBack returns the count of a key that has left the tracked set, and has
// hash h, to the rows.
func (s *Sketch[K]) writeBack(h, count uint64) {
	w, unit := count, s.fading.unit
	for s.rows.look(h, addSaturated(w, s.fraction)).most >= saturated && s.shrink() {
		w = ratio{s.fading.unit, unit}.down(count)
	}
	s.rows.settle(h, w, s.fraction)
}

// shrink halves the unit, so that rows that fade have room for larger weights,
// and reports whether it could. What the caller holds in units is not scaled.
func (s *Sketch[K]) shrink() bool {
	if s.fading.unit < 2 {
		return false
	}
	s.setBack(1)
	return true
}

// setBack divides the unit, and all stored weights, by about 2^bits.
func (s *Sketch[K]) setBack(bits int) {
	s.fold()
	s.scale(s.fading.setBack(bits))
}

// scale multiplies all stored weights by r.
func (s *Sketch[K]) scale(r ratio) {
	// An entry lost less than one unit more, beyond r of what it had lost, and
	// so did the sum of all weights.
	s.fraction = r.up(s.fraction) + 1
	if s.faded != math.MaxUint64 {
		s.faded = r.down(s.faded)
	}
	s.rows.scale(r, addSaturated(s.faded, s.fraction))
	if s.tracked.scale(r) {
		s.inexact = true
	}
}

// totals returns the weight of all updates, unfaded, and faded in units.
func (s *Sketch[K]) totals() (total, faded uint64) {
	return addSaturated(s.total, s.since), addSaturated(s.faded, mulSaturated(s.since, s.fading.unit))
}

// see adds to the weight seen.
func (s *Sketch[K]) see(n uint32) {
	if s.since += uint64(n); s.since >= 1<<63 {
		s.fold()
	}
}

// fold adds the weight seen since the last call to the totals. It must be
// called before the unit changes.
func (s *Sketch[K]) fold() {
	s.total, s.faded = s.totals()
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

// addChunk counts one occurrence of each of at most batchSize keys. It sorts
// them into likely hits and misses by the first word of their probe alone and
// without a branch: which it will be is as good as random, and a wrong guess of
// the processor costs more than the look-up.
func (s *Sketch[K]) addChunk(chunk []K, hashes []uint64) {
	var words [batchSize]uint32
	var likely, missed [batchSize]uint8
	hits, misses := 0, 0
	t := &s.tracked
	for i, h := range hashes {
		word := t.index[t.position(h)]
		words[i%batchSize] = word
		likely[hits%batchSize], missed[misses%batchSize] = uint8(i), uint8(i)
		match := int((uint64((word^uint32(h))&t.tagMask) - 1) >> 63)
		hits += match
		misses += 1 - match
	}
	for _, i := range likely[:hits] {
		slot := int(words[i]&t.slotMask) - 1
		if slot < 0 || t.entries[slot].key != chunk[i] {
			missed[misses] = i
			misses++
			continue
		}
		e := &t.entries[slot]
		e.count = addSaturated(e.count, s.fading.unit)
	}
	s.since += uint64(len(hashes) - misses)
	admitted := false
	for _, i := range missed[:misses] {
		if words[i] < further && !admitted {
			_, admitted = s.missOne(chunk[i], hashes[i])
		} else {
			_, now := s.update(chunk[i], hashes[i], 1)
			admitted = admitted || now
		}
	}
}

// Fade multiplies every weight by 1 - Alpha, for bounds as for counts. After t
// fades an occurrence counts (1-Alpha)^t, to within one part in 200 or so; less
// exactly for a while where weights near 2^32 make cells take a coarser unit.
// Bounds are of weights as they have faded. Callers fade on a clock. Nothing
// happens where Alpha is 0. O(1), but for O(Rows x Width + K) once in about
// 5.5 / Alpha fades.
func (s *Sketch[K]) Fade() {
	if s.fading.alpha == 0 {
		return
	}
	s.fold()
	s.fading.fade()
	if unit := bits.Len64(s.fading.unit); s.fading.unit >= limitUnit {
		s.setBack(unit - bits.Len64(firstUnit))
	}
}

// Reset forgets every key. The Sketch is then as NewSketch returned it.
func (s *Sketch[K]) Reset() {
	s.tracked.reset()
	s.rows.reset()
	s.fading = newFading(s.config.Alpha)
	s.random = s.start
	s.since, s.total, s.faded = 0, 0, 0
	s.admissions, s.evictions, s.ignored = 0, 0, 0
	s.quantum, s.misses, s.excess = 1, 0, 0
	s.inexact, s.merged, s.fraction = false, false, 0
}

// Estimate returns what is known of the weight of key: its bounds, and as its
// count the lower of them, HeavyKeeper's own estimate, which may be 0 for a key
// that was seen. O(Rows).
func (s *Sketch[K]) Estimate(key K) Estimate {
	return s.interval(key, s.keys.hash(key)).estimate(s.config.Alpha)
}

func (s *Sketch[K]) interval(key K, h uint64) interval {
	if slot := s.tracked.find(key, h); slot >= 0 {
		e := &s.tracked.entries[slot]
		return s.fading.interval(e.count, e.upper())
	}
	if !s.keys.valid(key) {
		return interval{}
	}
	return s.fading.interval(s.rows.bounds(h))
}

// Contains reports whether key is tracked.
func (s *Sketch[K]) Contains(key K) bool {
	return s.tracked.find(key, s.keys.hash(key)) >= 0
}

// Top returns the n heaviest keys, K of them if n <= 0 or n > K, by descending
// count and then ascending key; keys that are neither numbers nor strings come
// in an order of the process. Keys that have faded to a count of 0 are left
// out. O(K log K).
func (s *Sketch[K]) Top(n int) []Item[K] {
	return s.AppendTop(make([]Item[K], 0, len(s.tracked.entries)), n)
}

// AppendTop appends what Top returns to dst. It does not allocate if dst has
// room for Slots items.
func (s *Sketch[K]) AppendTop(dst []Item[K], n int) []Item[K] {
	start := len(dst)
	for i := range s.tracked.entries {
		e := &s.tracked.entries[i]
		item := Item[K]{e.key, s.fading.interval(e.count, e.upper()).estimate(s.config.Alpha)}
		if item.Count > 0 {
			dst = append(dst, item)
		}
	}
	return s.config.rank(&s.keys, dst, start, n)
}

// ceiling returns the largest lower bound, as that of an interval, that a key
// that is not tracked can have: a larger one would have had it admitted. But
// where cells of another sketch were merged in, it may await its next
// occurrence.
func (s *Sketch[K]) ceiling() uint64 {
	if s.merged {
		return math.MaxUint64
	}
	if !s.tracked.full() {
		return 0 // the rows are not in use
	}
	least := uint64(math.MaxUint64)
	for i := range s.tracked.entries {
		least = min(least, s.tracked.entries[i].count)
	}
	return s.fading.interval(least, least).lower
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
	c := s.census()
	c.Tracked = len(s.tracked.entries)
	return c.stats(s.config.Alpha)
}

// census is the Stats of one sketch, without Tracked, with its weights in a
// form that adds.
type census struct {
	Stats
	weight, trackedWeight interval
}

func (s *Sketch[K]) census() census {
	total, weight := s.totals()
	c := census{Stats: Stats{
		Total:      total,
		Admissions: s.admissions,
		Evictions:  s.evictions,
		Ignored:    s.ignored,
		Saturated:  s.rows.saturated,
		Exact:      !s.inexact,
		Bytes:      s.bytes(),
	}}
	c.weight = s.fading.interval(weight, weight)
	tracked := uint64(0)
	for i := range s.tracked.entries {
		tracked = addSaturated(tracked, s.tracked.entries[i].count)
	}
	c.trackedWeight = s.fading.interval(tracked, tracked)
	return c
}

// plus adds the census of another stripe.
func (c census) plus(d census) census {
	c.Total = addSaturated(c.Total, d.Total)
	c.weight = c.weight.plus(d.weight)
	c.trackedWeight = c.trackedWeight.plus(d.trackedWeight)
	c.Admissions += d.Admissions
	c.Evictions += d.Evictions
	c.Ignored += d.Ignored
	c.Saturated = c.Saturated || d.Saturated
	c.Exact = c.Exact && d.Exact
	c.Bytes += d.Bytes
	return c
}

func (c census) stats(alpha float64) Stats {
	c.Weight = c.weight.estimate(alpha).Count
	c.TrackedWeight = c.trackedWeight.estimate(alpha).Count
	return c.Stats
}

// appendKeys appends the tracked keys to dst.
func (s *Sketch[K]) appendKeys(dst []K) []K {
	for i := range s.tracked.entries {
		dst = append(dst, s.tracked.entries[i].key)
	}
	return dst
}

// String returns the size of s: not its keys, which Top and All return, nor its
// Seed, which may be secret.
func (s *Sketch[K]) String() string {
	return fmt.Sprintf("heavykeeper.Sketch(K = %d, Rows = %d, Width = %d)", s.config.K, s.config.Rows, s.config.Width)
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

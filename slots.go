package heavykeeper

import "math"

// The methods of this file are for packages that keep more about a tracked key
// than its count, by slot, as package window does.

// Hash returns the hash that Update and the like take. It is the same for
// all sketches of equal Seed and Hash, and does not change: unlike the other
// methods it may be called at any time by many goroutines.
func (s *Sketch[K]) Hash(key K) uint64 { return s.keys.hash(key) }

// Valid reports whether key can be counted: whether it equals itself. Like
// Hash, it is safe for concurrent use.
func (s *Sketch[K]) Valid(key K) bool { return s.keys.valid(key) }

// Update does what AddN does, given the key's Hash, which a caller can compute
// before it takes a lock. It returns the slot of key, which is constant while
// the key is tracked and less than Slots, or -1 if key is not tracked
// afterwards. admitted tells whether this update made it so; the key that had
// the slot before is not tracked any more.
func (s *Sketch[K]) Update(key K, hash uint64, n uint32) (slot int, admitted bool) {
	return s.update(key, hash, n)
}

// Slot returns the slot of key, given its Hash, or -1 if key is not tracked.
func (s *Sketch[K]) Slot(key K, hash uint64) int { return s.tracked.find(key, hash) }

// Key returns the key in a slot. Slots fill from 0 upwards; ok is false for
// those that have no key yet.
func (s *Sketch[K]) Key(slot int) (key K, ok bool) {
	if slot < 0 || slot >= len(s.tracked.entries) {
		return key, false
	}
	return s.tracked.entries[slot].key, true
}

// Bounds returns what Estimate does, given the key's Hash, with the fractions
// of faded weights: a lower bound and an upper one of the weight of key, +Inf
// if there is none. O(Rows).
func (s *Sketch[K]) Bounds(key K, hash uint64) (lower, upper float64) {
	i := s.interval(key, hash)
	lower, upper = float64(i.lower), float64(i.upper)
	if i.lower >= 1<<53 {
		lower = math.Nextafter(lower, 0)
	}
	switch {
	case i.upper == math.MaxUint64:
		return s.whole(lower), math.Inf(1)
	case i.upper >= 1<<53:
		upper = math.Nextafter(upper, math.Inf(1))
	}
	return s.whole(lower), s.whole(upper)
}

// whole returns a bound of an interval in occurrences.
func (s *Sketch[K]) whole(x float64) float64 {
	if s.fading.alpha == 0 {
		return x
	}
	return math.Ldexp(x, -fractionBits)
}

// FadeFactor returns by what the next call of Fade multiplies every weight,
// unless it comes after more updates: 1 - Alpha, but for the rounding of
// units. The product of these factors is what fading has left of an
// occurrence, exactly.
func (s *Sketch[K]) FadeFactor() float64 {
	if s.fading.alpha == 0 {
		return 1
	}
	next := s.fading
	next.fade()
	return float64(s.fading.unit) / float64(next.unit)
}

// Rank sorts items in the order of Top, by descending count and then ascending
// key, and returns the first n of them, all if n <= 0. Like Hash, it is safe for
// concurrent use.
func (s *Sketch[K]) Rank(items []Item[K], n int) []Item[K] {
	c := Config[K]{K: len(items)}
	return c.rank(&s.keys, items, 0, n)
}

// Stream chooses, by number, which of the random courses of its Seed the decay
// of s takes from the next Reset on; NewSketch gives number 0. Sketches that
// count parts of one stream should each take another.
func (s *Sketch[K]) Stream(number uint64) { s.start = newGenerator(s.config.Seed + number) }

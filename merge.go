package heavykeeper

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrMerge is what Merge's errors wrap: the operands do not fit together.
var ErrMerge = errors.New("heavykeeper: cannot merge")

// parameter is a field of a Config with its value.
type parameter struct {
	field string
	value any
}

// meaning returns the parameters that give cells their meaning: with others,
// they cannot be added.
func (c *Config[K]) meaning() []parameter {
	return []parameter{
		{"Rows", c.Rows}, {"Width", c.Width}, {"Base", c.Base}, {"Alpha", c.Alpha}, {"Seed", c.Seed},
	}
}

// shape returns all parameters of a stripe but Hash and the hooks.
func (c *Config[K]) shape() []parameter { return append(c.meaning(), parameter{"K", c.K}) }

// requireEqual returns an error that wraps kind and names the first of a
// receiver's parameters that another object has otherwise.
func requireEqual(kind error, others, receivers []parameter) error {
	for i, own := range receivers {
		if other := others[i]; other != own {
			return fmt.Errorf("%w: %s = %v, the receiver's is %v", kind, own.field, other.value, own.value)
		}
	}
	return nil
}

// sameHash reports whether tracked keys hash for theirs as they do for own, and
// so does the zero key, which serves where there are none.
func sameHash[K comparable](tracked []K, theirs, own *keys[K]) error {
	var zero K
	if theirs.hash(zero) != own.hash(zero) {
		return fmt.Errorf("%w: Hash differs on the zero key", ErrMerge)
	}
	for _, key := range tracked {
		if theirs.hash(key) != own.hash(key) {
			return fmt.Errorf("%w: Hash differs on key %s", ErrMerge, quoted(key))
		}
	}
	return nil
}

// Merge adds what other has counted to s, as if s had seen both streams: the
// bounds hold for the two together, and each stream fades as it would have by
// itself. other stays as it is.
//
// Rows, Width, Base, Alpha, Seed and the keys' hashes must be equal; the error
// tells which is not, and s is unchanged then. K may differ: s keeps its own.
// So may the number of fades: each occurrence counts what it counts in its own
// sketch. A sketch cannot be merged with itself.
//
// a.Merge(b) and b.Merge(a) give the same answers, if K is the same, but the
// random course of later updates is that of the receiver. Slots are assigned
// anew. O(Rows x Width + K log K); it allocates about as much memory as other
// takes.
func (s *Sketch[K]) Merge(other *Sketch[K]) error {
	switch {
	case other == nil || other.config.K == 0 || s.config.K == 0:
		return fmt.Errorf("%w: NewSketch did not make both sketches", ErrMerge)
	case s == other:
		return fmt.Errorf("%w: a sketch with itself", ErrMerge)
	}
	if err := requireEqual(ErrMerge, other.config.meaning(), s.config.meaning()); err != nil {
		return err
	}
	if err := sameHash(other.appendKeys(nil), &other.keys, &s.keys); err != nil {
		return err
	}
	s.merge(other.clone())
	return nil
}

// Merge adds what other has counted to h, as if h had seen both streams; see
// [Sketch.Merge]. The number of stripes may differ as well. Stripes merge one
// by one, so that no two locks are held at once: updates of either that run
// meanwhile are not lost, and those of other may or may not be in the result.
func (h *HeavyKeeper[K]) Merge(other *HeavyKeeper[K]) error {
	switch {
	case other == nil || other.stripes == nil || h.stripes == nil:
		return fmt.Errorf("%w: New did not make both HeavyKeepers", ErrMerge)
	case h == other:
		return fmt.Errorf("%w: a HeavyKeeper with itself", ErrMerge)
	}
	if err := requireEqual(ErrMerge, other.config.meaning(), h.config.meaning()); err != nil {
		return err
	}
	for i := range other.stripes.Len() {
		var tracked []K
		other.stripes.With(i, func(s *Sketch[K]) bool {
			tracked = s.appendKeys(nil)
			return true
		})
		if err := sameHash(tracked, &other.keys, &h.keys); err != nil {
			return err
		}
	}
	for i := range other.stripes.Len() {
		var part *Sketch[K]
		other.stripes.With(i, func(s *Sketch[K]) bool {
			part = s.clone()
			return true
		})
		h.stripes.With(i%h.stripes.Len(), func(s *Sketch[K]) bool {
			s.merge(part)
			return true
		})
	}
	return nil
}

// clone returns a copy of s that shares nothing with it that changes.
func (s *Sketch[K]) clone() *Sketch[K] {
	c := *s
	c.rows.cells = slices.Clone(s.rows.cells)
	c.tracked = s.tracked.clone()
	return &c
}

// merge adds other to s and leaves other unusable.
func (s *Sketch[K]) merge(other *Sketch[K]) {
	s.alignUnits(other)
	before := slices.Clone(s.tracked.entries)
	entries := s.union(other)
	s.rows.merge(&other.rows)

	s.total = addSaturated(s.total, other.total)
	s.faded = addSaturated(s.faded, other.faded)
	s.admissions += other.admissions
	s.evictions += other.evictions
	s.ignored += other.ignored
	s.misses = addSaturated(s.misses, other.misses)
	s.excess = addSaturated(s.excess, other.excess)
	s.inexact = s.inexact || other.inexact || len(entries) > s.config.K
	s.fraction = addSaturated(s.fraction, other.fraction) // a key may have lost both
	s.merged = true
	s.retrack(entries)
	s.notify(before)
}

// alignUnits scales one of two sketches down to the unit of the other, and
// both until their cells can be added, if they fade.
func (s *Sketch[K]) alignUnits(other *Sketch[K]) {
	s.fold()
	other.fold()
	if a, b := s.fading, other.fading; a.exact > b.exact {
		s.scale(ratio{b.unit, a.unit})
		s.fading = b
	} else if a.exact < b.exact {
		other.scale(ratio{a.unit, b.unit})
		other.fading = a
	}
	if s.config.Alpha == 0 {
		return
	}
	for s.rows.peak()+other.rows.peak() >= saturated && s.shrink() {
		other.scale(other.fading.setBack(1))
	}
}

// union returns the entries of both sketches, a key that only one of them
// tracks with what the other's rows hold of it, and lifts it out of those.
func (s *Sketch[K]) union(other *Sketch[K]) []entry[K] {
	entries := make([]entry[K], 0, len(s.tracked.entries)+len(other.tracked.entries))
	for _, e := range s.tracked.entries {
		h := s.keys.hash(e.key)
		if slot := other.tracked.find(e.key, h); slot >= 0 {
			o := &other.tracked.entries[slot]
			entries = append(entries, e.plus(o.count, o.upper()))
		} else {
			entries = append(entries, e.plus(other.rows.liftOut(h)))
		}
	}
	for _, e := range other.tracked.entries {
		h := s.keys.hash(e.key)
		if s.tracked.find(e.key, h) < 0 {
			entries = append(entries, e.plus(s.rows.liftOut(h)))
		}
	}
	return entries
}

// retrack makes the heaviest of entries the tracked set and writes the others
// back to the rows.
func (s *Sketch[K]) retrack(entries []entry[K]) {
	slices.SortFunc(entries, func(a, b entry[K]) int {
		if c := cmp.Compare(b.count, a.count); c != 0 {
			return c
		}
		return s.keys.compare(a.key, b.key)
	})
	kept := min(len(entries), s.Slots())
	s.tracked.reset()
	for _, e := range entries[:kept] {
		s.tracked.push(e, s.keys.hash(e.key))
	}
	unit := s.fading.unit
	for _, e := range entries[kept:] {
		s.writeBack(s.keys.hash(e.key), ratio{s.fading.unit, unit}.down(e.count))
		s.evictions++
	}
}

// notify tells the hooks how the tracked keys differ from those before.
func (s *Sketch[K]) notify(before []entry[K]) {
	if s.config.OnEvict == nil && s.config.OnAdmit == nil {
		return
	}
	was := make(map[K]bool, len(before))
	for _, e := range before {
		was[e.key] = true
		if s.config.OnEvict != nil && !s.Contains(e.key) {
			s.config.OnEvict(e.key)
		}
	}
	for _, e := range s.tracked.entries {
		if s.config.OnAdmit != nil && !was[e.key] {
			s.config.OnAdmit(e.key)
		}
	}
}

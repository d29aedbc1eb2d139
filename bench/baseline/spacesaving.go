package baseline

import "github.com/heavykeeper-go/heavykeeper/bench/measure"

// SpaceSaving counts as many keys as it has counters for; any other key takes
// over the smallest counter, count and all, which is then its largest possible
// error. It never underestimates, and overestimates by at most the stream's
// weight divided by the number of counters.
//
// Source: A. Metwally, D. Agrawal and A. El Abbadi, "Efficient Computation of
// Frequent and Top-k Elements in Data Streams", ICDT 2005, with its stream
// summary: counters of equal count share a group, groups form a list by count,
// and a unit increment moves a counter to the next group in O(1). A weight
// walks past the groups in between.
type SpaceSaving[K comparable] struct {
	index    index[K]
	counters []counter // by slot
	groups   []group   // groups[0] is the ends of the list; its count is 0
	free     uint32    // first unused group, linked by more
	size     int       // counters in use
}

// A counter is linked in a ring with the others of its group.
type counter struct{ group, next, prev, err uint32 }

type group struct {
	count      uint32
	first      uint32 // a slot
	less, more uint32 // neighbouring groups
}

// NewSpaceSaving returns an empty SpaceSaving.
func NewSpaceSaving[K comparable](c Config[K]) (*SpaceSaving[K], error) {
	n := (c.Bytes - 2*sizeOf[group]()) / (indexBytes[K]() + sizeOf[counter]() + sizeOf[group]())
	if n < 1 {
		return nil, errTooSmall("Space-Saving", c)
	}
	s := &SpaceSaving[K]{
		index:    newIndex(n, c.Hash),
		counters: make([]counter, n),
		// One for the ends, and one while a counter is between two others.
		groups: make([]group, n+2),
		free:   1,
	}
	for i := 1; i+1 < len(s.groups); i++ {
		s.groups[i].more = uint32(i + 1)
	}
	return s, nil
}

// Add counts one occurrence of key. O(1).
func (s *SpaceSaving[K]) Add(key K) { s.AddN(key, 1) }

// AddN counts n occurrences of key.
func (s *SpaceSaving[K]) AddN(key K, n uint32) {
	h := s.index.hash(key)
	slot := s.index.find(key, h)
	switch {
	case slot >= 0:
	case s.size < len(s.counters):
		slot = s.size
		s.size++
		s.index.put(slot, key, h)
		s.join(slot, 0, n)
		return
	default:
		least := s.groups[0].more
		slot = int(s.groups[least].first)
		s.index.drop(slot)
		s.index.put(slot, key, h)
		s.counters[slot].err = s.groups[least].count
	}
	old := s.counters[slot].group
	count := add(s.groups[old].count, n)
	s.join(s.leave(slot), old, count)
	if s.groups[old].first == none {
		s.remove(old)
	}
}

// none marks a group without counters, during an update.
const none = ^uint32(0)

// leave takes a counter out of its group, which may be left empty.
func (s *SpaceSaving[K]) leave(slot int) int {
	c := &s.counters[slot]
	g := &s.groups[c.group]
	if c.next == uint32(slot) {
		g.first = none
		return slot
	}
	s.counters[c.next].prev = c.prev
	s.counters[c.prev].next = c.next
	if g.first == uint32(slot) {
		g.first = c.next
	}
	return slot
}

// join puts a counter into the group of a count, which is made if need be. It
// is not below group from.
func (s *SpaceSaving[K]) join(slot int, from, count uint32) {
	for more := s.groups[from].more; more != 0 && s.groups[more].count <= count; more = s.groups[from].more {
		from = more
	}
	c := &s.counters[slot]
	if from == 0 || s.groups[from].count != count {
		from = s.insert(from, count)
		s.groups[from].first = uint32(slot)
		c.next, c.prev = uint32(slot), uint32(slot)
	} else {
		// A saturated counter may come back to the group it has just left.
		if s.groups[from].first == none {
			s.groups[from].first = uint32(slot)
			c.next, c.prev = uint32(slot), uint32(slot)
		}
		first := s.groups[from].first
		c.next, c.prev = first, s.counters[first].prev
		s.counters[c.prev].next = uint32(slot)
		s.counters[first].prev = uint32(slot)
	}
	c.group = from
}

// insert makes a group after less.
func (s *SpaceSaving[K]) insert(less, count uint32) uint32 {
	g := s.free
	s.free = s.groups[g].more
	more := s.groups[less].more
	s.groups[g] = group{count: count, first: none, less: less, more: more}
	s.groups[less].more = g
	s.groups[more].less = g
	return g
}

// remove takes an empty group out of the list.
func (s *SpaceSaving[K]) remove(g uint32) {
	less, more := s.groups[g].less, s.groups[g].more
	s.groups[less].more = more
	s.groups[more].less = less
	s.groups[g].more = s.free
	s.free = g
}

// bounds returns the least and the largest weight a key can have.
func (s *SpaceSaving[K]) bounds(key K) (lower, upper uint64) {
	if slot := s.index.find(key, s.index.hash(key)); slot >= 0 {
		c := s.counters[slot]
		upper = uint64(s.groups[c.group].count)
		return upper - uint64(c.err), upper
	}
	if s.size < len(s.counters) {
		return 0, 0
	}
	return 0, uint64(s.groups[s.groups[0].more].count)
}

// Top implements [Counter].
func (s *SpaceSaving[K]) Top(n int) []measure.Item[K] {
	items := make([]measure.Item[K], 0, s.size)
	for slot, c := range s.counters[:s.size] {
		items = append(items, measure.Item[K]{Key: s.index.keys[slot], Count: uint64(s.groups[c.group].count)})
	}
	return largest(items, n)
}

// Bytes implements [Counter].
func (s *SpaceSaving[K]) Bytes() int {
	return len(s.counters)*(indexBytes[K]()+sizeOf[counter]()) + len(s.groups)*sizeOf[group]()
}

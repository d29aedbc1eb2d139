package heavykeeper

import (
	"math"
	"math/bits"
	"unsafe"
)

// entry is a tracked key. Its weight is at least count and at most
// count + slack: what the rows knew of it when it was admitted, and everything
// since exactly.
type entry[K comparable] struct {
	key   K
	count uint64
	slack uint32 // saturated: unbounded
	home  uint32 // upper half of the key's hash, for the index
}

// upper returns the largest weight the key can have.
func (e *entry[K]) upper() uint64 {
	if e.slack == saturated {
		return math.MaxUint64
	}
	return addSaturated(e.count, uint64(e.slack))
}

// setUpper sets the largest weight the key can have, at least count.
func (e *entry[K]) setUpper(upper uint64) {
	e.slack = uint32(min(upper-e.count, saturated))
}

// plus returns e with the weight that another sketch has of its key added.
func (e entry[K]) plus(lower, upper uint64) entry[K] {
	upper = addSaturated(e.upper(), upper)
	e.count = addSaturated(e.count, lower)
	e.setUpper(upper)
	return e
}

// tracked is the set of the heaviest keys: entries in slots that never move,
// found through an open-addressing index, and a min-heap of slots.
//
// The heap is lazy. An update grows the count of an entry and leaves the heap
// alone; seen is the count that an entry's node was last sifted with, and the
// heap orders by that. Since counts only grow, seen is a lower bound, and the
// root is the true minimum as soon as its own seen is up to date, which is
// looked after only when a newcomer knocks.
//
// Invariants: len(heap) == len(seen) == len(entries), heap holds each slot
// once; seen[i] <= entries[heap[i]].count; seen is heap-ordered; the index
// holds each slot once, reachable from its entry's home without an empty word
// between; further is set in the words at the homes of those that are not there
// themselves, and in no other.
type tracked[K comparable] struct {
	limit   int // of entries
	room    int // for entries
	ample   int // words that an index may be doubled to: little beside the rows
	entries []entry[K]
	seen    []uint64 // by heap position
	heap    []uint32 // slots, by heap position

	// index has a power-of-two number of words, at least three for each entry
	// there is room for, or six if ample allows. A word is 0 or the number of
	// a slot plus one, with bits of the key's hash above that, and further above
	// those. Probing is linear, but for nearly all keys, tracked or not, the
	// first word tells.
	index    []uint32
	slotMask uint32 // the slot's bits in a word
	tagMask  uint32 // the hash's
	shift    uint8  // what turns a hash into a position in the index
}

// further marks words of the index at which some probe does not end. No slot's
// number needs that bit.
const further = 1 << 31

// firstRoom is the number of entries that a tracked set has room for at first.
// It grows with them up to its limit: a large K costs nothing by itself.
const firstRoom = 256

func newTracked[K comparable](limit, room, ample int) tracked[K] {
	t := tracked[K]{limit: limit, ample: ample, slotMask: 1<<bits.Len(uint(limit)) - 1}
	t.tagMask = ^(t.slotMask | further)
	t.resize(min(room, limit))
	return t
}

// resize makes room for a number of entries that is not below that of those
// there are.
func (t *tracked[K]) resize(room int) {
	words := t.index
	t.room = room
	t.entries = append(makeAligned[entry[K]](room)[:0], t.entries...)
	t.seen = append(makeAligned[uint64](room)[:0], t.seen...)
	t.heap = append(makeAligned[uint32](room)[:0], t.heap...)
	size := bits.Len(uint(3*room - 1))
	if 2<<size <= t.ample {
		size++
	}
	t.index = makeAligned[uint32](1 << size)
	t.shift = uint8(64 - size)
	for _, word := range words {
		if word != 0 {
			t.linkWord(word &^ further)
		}
	}
}

// clone returns a copy that shares nothing with t.
func (t tracked[K]) clone() tracked[K] {
	t.resize(t.room)
	return t
}

// makeAligned returns a slice of n zero values that shares no cache line with
// another object: sketches of different processors lie side by side.
func makeAligned[T any](n int) []T {
	const line = 64
	size := int(unsafe.Sizeof(*new(T)))
	bytes := (n*size + line - 1) &^ (line - 1)
	return make([]T, (bytes+size-1)/max(size, 1))[:n:n]
}

func (t *tracked[K]) bytes() int {
	return cap(t.entries)*int(unsafe.Sizeof(entry[K]{})) + cap(t.seen)*8 + cap(t.heap)*4 + len(t.index)*4
}

func (t *tracked[K]) full() bool { return len(t.entries) == t.limit }

func (t *tracked[K]) reset() {
	clear(t.entries)
	clear(t.index)
	t.entries, t.seen, t.heap = t.entries[:0], t.seen[:0], t.heap[:0]
}

// position returns where in the index the probe for hash h begins.
func (t *tracked[K]) position(h uint64) uint64 { return h >> (t.shift & 63) }

// home returns the position of the key that a word of the index stands for.
func (t *tracked[K]) home(word uint32) uint64 {
	return t.position(uint64(t.entries[word&t.slotMask-1].home) << 32)
}

// find returns the slot of key, whose hash is h, or -1.
func (t *tracked[K]) find(key K, h uint64) int {
	mask, home := uint64(len(t.index)-1), t.position(h)
	for i := home; ; i++ {
		word := t.index[i&mask]
		slot := word&t.slotMask - 1 // of an empty word, beyond any
		if (word^uint32(h))&t.tagMask == 0 && uint(slot) < uint(len(t.entries)) && t.entries[slot].key == key {
			return int(slot)
		}
		if word == 0 || word < further && i == home {
			return -1
		}
	}
}

// link enters slot into the index under hash h and returns how far from its
// home.
func (t *tracked[K]) link(slot int, h uint64) (distance int) {
	return t.linkWord(uint32(h)&t.tagMask | uint32(slot+1))
}

// linkWord enters a word of the index at the home of its entry or after.
func (t *tracked[K]) linkWord(word uint32) (distance int) {
	mask, home := uint64(len(t.index)-1), t.home(word)
	i := home
	for t.index[i&mask] != 0 {
		i++
	}
	t.index[i&mask] = word
	if i != home {
		t.index[home] |= further
	}
	return int(i - home)
}

// unlink removes slot from the index and moves later words of its run back
// into the hole, unless that would put them before their home.
func (t *tracked[K]) unlink(slot int) {
	mask := uint64(len(t.index) - 1)
	home := t.home(uint32(slot + 1))
	hole := home
	for t.index[hole&mask]&t.slotMask != uint32(slot+1) {
		hole++
	}
	for i := hole + 1; t.index[i&mask] != 0; i++ {
		if word := t.index[i&mask]; (i-t.home(word))&mask >= (i-hole)&mask {
			t.index[hole&mask] = word
			hole = i
		}
	}
	t.index[hole&mask] = 0
	// Beyond the hole no word has moved or has its home before, so only marks
	// before the hole can change.
	for i := home; i != hole; i++ {
		t.index[i&mask] &^= further
	}
	for i := home; i != hole; i++ {
		if word := t.index[i&mask]; t.home(word) != i&mask {
			t.index[t.home(word)] |= further
		}
	}
}

// push adds an entry for a key that is not tracked. The set must not be full.
func (t *tracked[K]) push(e entry[K], h uint64) (slot int) {
	slot = len(t.entries)
	if slot == t.room {
		t.resize(min(2*t.room, t.limit))
	}
	e.home = uint32(h >> 32)
	t.entries = append(t.entries, e)
	t.seen = append(t.seen, e.count)
	t.heap = append(t.heap, uint32(slot))
	t.link(slot, h)
	t.up(slot)
	return slot
}

// floor returns a lower bound of the smallest tracked count, cheaply. The set
// must not be empty.
func (t *tracked[K]) floor() uint64 { return t.seen[0] }

// least returns the slot of the entry with the smallest count. The set must
// not be empty. O(log K), amortised over the updates since the last call.
func (t *tracked[K]) least() (slot int) {
	for {
		slot = int(t.heap[0])
		if c := t.entries[slot].count; c != t.seen[0] {
			t.seen[0] = c
			t.down(0)
			continue
		}
		return slot
	}
}

// replace puts e, whose key is not tracked, in place of the entry that least
// has just returned, in the same slot.
func (t *tracked[K]) replace(e entry[K], h uint64) {
	slot := int(t.heap[0])
	t.unlink(slot)
	e.home = uint32(h >> 32)
	t.entries[slot] = e
	t.link(slot, h)
	t.seen[0] = e.count
	t.down(0)
}

func (t *tracked[K]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if t.seen[parent] <= t.seen[i] {
			return
		}
		t.swap(i, parent)
		i = parent
	}
}

func (t *tracked[K]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(t.seen) {
			return
		}
		if right := child + 1; right < len(t.seen) && t.seen[right] < t.seen[child] {
			child = right
		}
		if t.seen[i] <= t.seen[child] {
			return
		}
		t.swap(i, child)
		i = child
	}
}

func (t *tracked[K]) swap(i, j int) {
	t.seen[i], t.seen[j] = t.seen[j], t.seen[i]
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
}

// scale multiplies every count by r, rounded down, and every upper bound,
// rounded up. It reports whether any count lost a fraction. Order is kept:
// rounding down is monotonic.
func (t *tracked[K]) scale(r ratio) (lossy bool) {
	for i := range t.entries {
		e := &t.entries[i]
		count, upper := r.down(e.count), e.upper()
		lossy = lossy || count != r.up(e.count)
		if upper != math.MaxUint64 {
			upper = r.up(upper)
		}
		e.count = count
		e.setUpper(upper)
	}
	for i := range t.seen {
		t.seen[i] = r.down(t.seen[i])
	}
	return lossy
}

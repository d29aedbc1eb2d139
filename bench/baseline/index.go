package baseline

// index finds the slots of keys: open addressing with linear probing over slot
// numbers, at most half full, so that a key costs its own size and 8 bytes.
//
// Invariant: keys[s] is in the index from put(s) to drop(s), and no empty word
// lies between its home and its word.
type index[K comparable] struct {
	words []uint32 // slot + 1, or 0
	keys  []K      // by slot
	hash  func(K) uint64
}

// newIndex returns an index for slots 0 to n-1.
func newIndex[K comparable](n int, hash func(K) uint64) index[K] {
	return index[K]{make([]uint32, 2*n), make([]K, n), hash}
}

// indexBytes is the cost of a slot.
func indexBytes[K comparable]() int { return sizeOf[K]() + 8 }

func (x *index[K]) home(h uint64) int {
	return int(h >> 32 * uint64(len(x.words)) >> 32)
}

func (x *index[K]) next(i int) int {
	if i++; i < len(x.words) {
		return i
	}
	return 0
}

// find returns the slot of key, whose hash is h, or -1.
func (x *index[K]) find(key K, h uint64) int {
	for i := x.home(h); x.words[i] != 0; i = x.next(i) {
		if slot := int(x.words[i] - 1); x.keys[slot] == key {
			return slot
		}
	}
	return -1
}

// put enters a key that is not in the index, under a free slot.
func (x *index[K]) put(slot int, key K, h uint64) {
	i := x.home(h)
	for x.words[i] != 0 {
		i = x.next(i)
	}
	x.words[i] = uint32(slot + 1)
	x.keys[slot] = key
}

// drop removes the key of a slot and closes the gap: words behind it move up
// unless that would put them before their home.
func (x *index[K]) drop(slot int) {
	gap := x.home(x.hash(x.keys[slot]))
	for x.words[gap] != uint32(slot+1) {
		gap = x.next(gap)
	}
	for i := x.next(gap); x.words[i] != 0; i = x.next(i) {
		home := x.home(x.hash(x.keys[x.words[i]-1]))
		if x.distance(home, i) >= x.distance(gap, i) {
			x.words[gap] = x.words[i]
			gap = i
		}
	}
	x.words[gap] = 0
}

// distance returns the steps from one word to another.
func (x *index[K]) distance(from, to int) int {
	if to >= from {
		return to - from
	}
	return to + len(x.words) - from
}

package heavykeeper

import (
	"math"
	"math/bits"
	"unsafe"
)

// A cell is shared by the keys whose hash leads to it. One of them, the owner,
// is credited with count; err is the weight that everything else brought.
//
// Their sum, main, is a Count-Min counter: at least the weight of all
// untracked keys of the cell. count is HeavyKeeper's counter: at most the
// weight of the owner. Storing count rather than main makes an update one
// write. A cell whose count is 0 is free for any key, and for the key of its
// fingerprint to grow, so that every fingerprint is a valid one.
//
// A saturated err stays saturated, and the cell bounds nothing from above,
// until all weights have faded far enough.
type cell struct {
	fingerprint uint32
	count       uint32
	err         uint32
}

const saturated = math.MaxUint32

// rows are the m hash rows of cells. A key is represented by its hash: the
// lower half is its fingerprint, and its cell in each row comes from products
// of the whole hash.
//
// Invariant: let w be the weight that keys have in the rows. In each cell, err
// is at least the sum of w over all keys but the owner, count + err at least
// the sum over all, and count at most the owner's w. It breaks where keys that
// share a cell share a fingerprint: 1 in 2^32.
type rows struct {
	cells       []cell // row by row
	multipliers [maxRows / 2]uint64
	count       int
	width       uint64
	mask        uint32 // of fingerprints: all ones but in tests
	saturated   bool   // some cell's err is
}

func newRows(count, width int, seed uint64) rows {
	r := rows{
		cells: makeAligned[cell](count * width),
		count: count,
		width: uint64(width),
		mask:  math.MaxUint32,
	}
	for i := range r.multipliers {
		// The golden-ratio sequence of splitmix64, made odd.
		r.multipliers[i] = mix(seed+uint64(i+1)*0x9e3779b97f4a7c15) | 1
	}
	return r
}

func (r *rows) bytes() int {
	return len(r.cells) * int(unsafe.Sizeof(cell{}))
}

func (r *rows) reset() {
	clear(r.cells)
	r.saturated = false
}

// owns reports whether the key with hash h owns c.
func (r *rows) owns(h uint64, c *cell) bool {
	return c.fingerprint == uint32(h)&r.mask
}

// at returns the cell in row i of the key with hash h. Each multiplier serves
// two rows: the halves of a product folded onto itself, each scaled to the
// width.
func (r *rows) at(h uint64, i int) *cell {
	x := fold(h, r.multipliers[i/2]) >> (i % 2 * 32)
	return &r.cells[uint64(i)*r.width+uint64(uint32(x))*r.width>>32]
}

// next is at for a walk of all rows: it has half the multiplications, as it
// returns what it needs the next time.
func (r *rows) next(h uint64, i int, place uint64) (*cell, uint64) {
	if place >>= 32; i%2 == 0 {
		place = fold(h, r.multipliers[i/2])
	}
	return &r.cells[uint64(i)*r.width+uint64(uint32(place))*r.width>>32], place
}

func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}

// view is what add and look find in a key's cells.
type view struct {
	owned   bool   // the key owns a cell
	lower   uint64 // the largest count it owns
	weakest *cell  // if it owns none, the one of the smallest count
	most    uint64 // of a counter; add gives a power of two too much or less
}

// add gives weight w to the key with hash h and returns what its cells are
// like then. Counters wrap: if view.most says that one may have, the caller
// takes w back by adding -w, which is exact, and goes the long way round.
func (r *rows) add(h, w uint64) view {
	var v view
	least, other := uint64(math.MaxUint64), uint64(1)
	fingerprint := uint32(h) & r.mask
	var c *cell
	var place uint64
	for i := range r.count {
		c, place = r.next(h, i, place)
		o := c.other(fingerprint)
		sum := c.give(w, o)
		v.lower = max(v.lower, sum&(o-1))
		v.most |= sum
		other &= o
		if uint64(c.count) < least {
			v.weakest, least = c, uint64(c.count)
		}
	}
	v.owned = other == 0
	return v
}

// other returns 0 if the key with that fingerprint owns c, else 1. The compiler
// makes no branch of it.
func (c *cell) other(fingerprint uint32) (other uint64) {
	if c.fingerprint != fingerprint {
		other = 1
	}
	return other
}

// give adds w to c.count where other is 0, to c.err where it is 1, and returns
// the sum. Counters wrap; the sum does not, unless w takes another back. It
// relies on err to follow count in a cell.
func (c *cell) give(w, other uint64) (sum uint64) {
	counter := &(*[2]uint32)(unsafe.Pointer(&c.count))[other&1]
	sum = uint64(*counter) + w
	*counter = uint32(sum)
	return sum
}

// pair returns the cells of the key with hash h in rows 2i and 2i+1.
func (r *rows) pair(h uint64, i uint) (a, b *cell) {
	x := fold(h, r.multipliers[i])
	row := 2 * uint64(i) * r.width
	return &r.cells[row+uint64(uint32(x))*r.width>>32], &r.cells[row+r.width+x>>32*r.width>>32]
}

// nearEnd is where a counter is near its end. It is a power of two, so that the
// bits of several sums, put together, tell whether one of them is beyond it.
const nearEnd = 1 << 31

// look returns what add would, but changes nothing: only most counts w in.
func (r *rows) look(h, w uint64) view {
	v := view{weakest: r.at(h, 0)}
	w = min(w, saturated)
	for i := range r.count {
		c := r.at(h, i)
		if r.owns(h, c) {
			v.owned = true
			v.lower = max(v.lower, uint64(c.count))
			v.most = max(v.most, uint64(c.count)+w)
			continue
		}
		if c.err != saturated { // which it stays
			v.most = max(v.most, uint64(c.err)+w)
		}
		if r.owns(h, v.weakest) || c.count < v.weakest.count {
			v.weakest = c
		}
	}
	return v
}

// bounds returns the interval that holds the weight in the rows of the key
// with hash h. Where every cell is saturated upper is [math.MaxUint64]. It has
// no branch for whether the key owns a cell: BenchmarkTop is made of this.
func (r *rows) bounds(h uint64) (lower, upper uint64) {
	upper = math.MaxUint64
	fingerprint := uint32(h) & r.mask
	var c *cell
	var place uint64
	for i := range r.count {
		c, place = r.next(h, i, place)
		count := uint64(c.count) & (c.other(fingerprint) - 1)
		lower = max(lower, count)
		if c.err != saturated {
			upper = min(upper, count+uint64(c.err))
		}
	}
	return lower, max(lower, upper)
}

// addSlowly gives weight w to the key with hash h. Counters saturate.
func (r *rows) addSlowly(h, w uint64) {
	w = min(w, saturated+1) // more than any counter holds is still more
	for i := range r.count {
		c := r.at(h, i)
		if r.owns(h, c) {
			r.addCount(c, w)
		} else {
			r.addError(c, w)
		}
	}
}

// addCount adds w to c.count.
func (r *rows) addCount(c *cell, w uint64) {
	if sum := uint64(c.count) + w; sum <= saturated {
		c.count = uint32(sum)
		return
	}
	// What the owner has beyond count is in no counter now.
	c.count = saturated
	r.addError(c, saturated)
}

// addError adds w to c.err.
func (r *rows) addError(c *cell, w uint64) {
	if sum := uint64(c.err) + w; sum < saturated {
		c.err = uint32(sum)
	} else {
		c.err = saturated
		r.saturated = true
	}
}

// subError takes w from c.err.
func (c *cell) subError(w uint64) {
	if c.err != saturated {
		// The invariant keeps w <= err, unless fingerprints collide.
		c.err -= uint32(min(w, uint64(c.err)))
	}
}

// setCount lowers the count of c's owner to count: what it loses is error.
func (r *rows) setCount(c *cell, count uint32) {
	r.addError(c, uint64(c.count-count))
	c.count = count
}

// take makes the key with hash h the owner of c, whose count is 0, and credits
// it with w of the weight that the cell has from it.
func (r *rows) take(c *cell, h, w uint64) {
	c.subError(w)
	c.fingerprint = uint32(h) & r.mask
	c.count = uint32(min(w, saturated))
}

// lift removes weight w of the key with hash h, at least its count in any cell
// it owns, from its cells, and leaves it no count.
func (r *rows) lift(h, w uint64) {
	for i := range r.count {
		c := r.at(h, i)
		if !r.owns(h, c) {
			c.subError(w)
			continue
		}
		// In one step: the sum before w is taken may be more than err holds.
		rest := uint64(c.err) + uint64(c.count)
		rest -= min(w, rest)
		c.count = 0
		if c.err != saturated {
			c.err = 0
			r.addError(c, rest)
		}
	}
}

// settle gives weight w to a key that has no count in its cells, and lets it
// have its cell of smallest count if w is larger. Another extra is error.
func (r *rows) settle(h, w, extra uint64) {
	v := r.look(h, w)
	r.addSlowly(h, w)
	if !v.owned && uint64(v.weakest.count) < w {
		r.setCount(v.weakest, 0)
		r.take(v.weakest, h, w)
	}
	r.addErrors(h, extra)
}

// addErrors adds w to the err of each cell of the key with hash h.
func (r *rows) addErrors(h, w uint64) {
	for i := range r.count {
		r.addError(r.at(h, i), w)
	}
}

// liftOut removes what is certain of the weight of the key with hash h and
// returns the bounds of the whole.
func (r *rows) liftOut(h uint64) (lower, upper uint64) {
	lower, upper = r.bounds(h)
	r.lift(h, lower)
	return lower, upper
}

// scale multiplies every weight by f: err rounded up and count down, so that
// the bounds hold. A saturated err becomes all, if that is less: the weight of
// all keys then.
func (r *rows) scale(f ratio, all uint64) {
	r.saturated = false
	for i := range r.cells {
		c := &r.cells[i]
		count := uint32(f.down(uint64(c.count)))
		if c.err != saturated {
			main := f.up(uint64(c.count) + uint64(c.err))
			c.err = uint32(min(main-uint64(count), saturated-1))
		} else if all < saturated {
			c.err = uint32(all)
		} else {
			r.saturated = true
		}
		c.count = count
	}
}

// peak returns the largest main, saturated cells aside.
func (r *rows) peak() uint64 {
	most := uint64(0)
	for i := range r.cells {
		if c := &r.cells[i]; c.err != saturated {
			most = max(most, uint64(c.count)+uint64(c.err))
		}
	}
	return most
}

// merge adds the cells of other, which has the same shape. Of two owners of a
// cell the one with the larger count stays, of equals that of the smaller
// fingerprint, so that merging commutes.
func (r *rows) merge(other *rows) {
	r.saturated = r.saturated || other.saturated
	for i := range r.cells {
		a, b := r.cells[i], other.cells[i]
		if a.count < b.count || a.count == b.count && a.fingerprint > b.fingerprint {
			a, b = b, a
		}
		r.addError(&a, uint64(b.err))
		if a.fingerprint == b.fingerprint {
			r.addCount(&a, uint64(b.count))
		} else {
			r.addError(&a, uint64(b.count))
		}
		r.cells[i] = a
	}
}

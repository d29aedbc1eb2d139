package heavykeeper

import (
	"math/bits"
	"slices"
)

// candidate is a key that some stripe tracks.
type candidate[K comparable] struct {
	key  K
	hash uint64
	sum  interval // over the stripes that have been asked
	rest uint64   // at most what the lower bounds of the others add
}

// survey is one reading of all stripes.
type survey[K comparable] struct {
	keeper  *HeavyKeeper[K]
	stripes int
	list    []candidate[K]
	asked   []uint64 // a bit for each stripe, words words for each candidate
	words   int

	// index finds candidates by hash, with open addressing: 0 or a position
	// in list plus one. At least half of it is free.
	index []uint32
}

// candidates returns the keys that may be among the n heaviest, with what all
// stripes know of them: first what the stripes that track a key have counted,
// then what the rows of the others hold.
func (h *HeavyKeeper[K]) candidates(n int) []candidate[K] {
	if n <= 0 || n > h.config.K {
		n = h.config.K
	}
	v := newSurvey(h)
	v.collect()
	v.prune(n)
	v.limit(4 * h.config.K)
	// One stripe after the other, whose cells then stay in the cache, but
	// never with its lock held for long.
	for stripe := range v.stripes {
		for start := 0; start < len(v.list); start += batchSize {
			v.complete(stripe, start, min(start+batchSize, len(v.list)))
		}
	}
	for at := range v.list {
		v.list[at].rest = 0
	}
	v.prune(n)
	return v.list
}

func newSurvey[K comparable](h *HeavyKeeper[K]) *survey[K] {
	stripes := h.stripes.Len()
	return &survey[K]{keeper: h, stripes: stripes, words: (stripes + 63) / 64}
}

// collect adds up what stripes have counted of the keys they track.
func (v *survey[K]) collect() {
	var entries []entry[K]
	ceilings := make([]uint64, v.stripes)
	h := v.keeper
	for i := range v.stripes {
		var now fading
		h.stripes.With(i, func(s *Sketch[K]) bool {
			entries = append(entries[:0], s.tracked.entries...)
			now, ceilings[i] = s.fading, s.ceiling()
			return true
		})
		v.reserve(len(entries))
		for j := range entries {
			e := &entries[j]
			at := v.find(e.key, h.keys.hash(e.key))
			c := &v.list[at]
			c.sum = c.sum.plus(now.interval(e.count, e.upper()))
			v.asked[at*v.words+i/64] |= 1 << (i % 64)
		}
	}
	for at := range v.list {
		v.list[at].rest = v.unasked(at, ceilings)
	}
}

// unasked returns the sum of the ceilings of the stripes that have not been
// asked for a candidate.
func (v *survey[K]) unasked(at int, ceilings []uint64) (sum uint64) {
	for i, ceiling := range ceilings {
		if !v.has(at, i) {
			sum = addSaturated(sum, ceiling)
		}
	}
	return sum
}

// has reports whether a stripe has been asked for a candidate.
func (v *survey[K]) has(at, stripe int) bool {
	return v.asked[at*v.words+stripe/64]>>(stripe%64)&1 != 0
}

// reserve makes room in the index for n more candidates.
func (v *survey[K]) reserve(n int) {
	if 2*(len(v.list)+n) <= len(v.index) {
		return
	}
	v.list = slices.Grow(v.list, n)
	v.index = make([]uint32, 1<<bits.Len(uint(4*(len(v.list)+n))))
	for at := range v.list {
		*v.word(v.list[at].key, v.list[at].hash) = uint32(at + 1)
	}
}

// word returns the word of the index that key has or is to have.
func (v *survey[K]) word(key K, hash uint64) *uint32 {
	for i := hash >> 32; ; i++ {
		w := &v.index[i&uint64(len(v.index)-1)]
		if *w == 0 || v.list[*w-1].key == key {
			return w
		}
	}
}

// find returns the position of a key in list, at the end of which it enters it
// if need be.
func (v *survey[K]) find(key K, hash uint64) (at int) {
	w := v.word(key, hash)
	if *w == 0 {
		v.list = append(v.list, candidate[K]{key: key, hash: hash})
		v.asked = append(v.asked, make([]uint64, v.words)...)
		*w = uint32(len(v.list))
	}
	return int(*w - 1)
}

// prune drops the candidates that are too light to be among the n heaviest,
// whatever the stripes that have not been asked for them hold.
func (v *survey[K]) prune(n int) {
	if len(v.list) <= n {
		return
	}
	enough := v.nth(n)
	v.keep(func(c *candidate[K]) bool { return v.count(addSaturated(c.sum.lower, c.rest)) >= enough })
}

// limit keeps the n candidates that have counted most so far. On flat streams
// each stripe tracks other keys, which chance has brought a little more often
// there, and ruling out those that can be ruled out for certain is not enough.
// A key that is among the K heaviest of all stripes is far ahead of those in
// the stripes that track it (TestTopOfFlatStreams).
func (v *survey[K]) limit(n int) {
	if len(v.list) <= n {
		return
	}
	enough, ties := v.nth(n), n
	for i := range v.list {
		if v.count(v.list[i].sum.lower) > enough {
			ties--
		}
	}
	v.keep(func(c *candidate[K]) bool {
		count := v.count(c.sum.lower)
		if count == enough {
			ties--
		}
		return count > enough || count == enough && ties >= 0
	})
}

// count returns a lower bound as the count that is reported and ranked by.
func (v *survey[K]) count(lower uint64) uint64 {
	return interval{lower: lower}.estimate(v.keeper.config.Alpha).Count
}

// nth returns the n-th largest count in list, which is at least as long.
func (v *survey[K]) nth(n int) uint64 {
	sums := make([]uint64, len(v.list))
	for i := range v.list {
		sums[i] = v.count(v.list[i].sum.lower)
	}
	slices.Sort(sums)
	return sums[len(sums)-n]
}

// keep drops the candidates that f does not want. The index is of no use after
// that.
func (v *survey[K]) keep(f func(*candidate[K]) bool) {
	kept := 0
	for at := range v.list {
		if f(&v.list[at]) {
			v.list[kept] = v.list[at]
			copy(v.asked[kept*v.words:], v.asked[at*v.words:][:v.words])
			kept++
		}
	}
	v.list = v.list[:kept]
}

// complete asks a stripe for what its rows hold of the keys in
// list[start:end], at most batchSize, that it does not track. It looks them all
// up in the index before it turns to the rows: the look-ups mislead the
// processor, and the rows are not in its cache.
func (v *survey[K]) complete(stripe, start, end int) {
	v.keeper.stripes.With(stripe, func(s *Sketch[K]) bool {
		var missed [batchSize]*candidate[K]
		misses := 0
		for at := start; at < end; at++ {
			c := &v.list[at]
			if v.has(at, stripe) {
				continue
			}
			if slot := s.tracked.find(c.key, c.hash); slot >= 0 {
				e := &s.tracked.entries[slot]
				c.sum = c.sum.plus(s.fading.interval(e.count, e.upper()))
				continue
			}
			missed[misses] = c
			misses++
		}
		for _, c := range missed[:misses] {
			c.sum = c.sum.plus(s.fading.interval(s.rows.bounds(c.hash)))
		}
		return true
	})
}

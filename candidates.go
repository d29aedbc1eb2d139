package heavykeeper

import "slices"

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
	list    []candidate[K]
	index   map[K]int // positions in list
	asked   []bool    // by position and stripe
	stripes int
}

// candidates returns the keys that may be among the n heaviest, with what all
// stripes know of them: first what the stripes that track a key have counted,
// then what the rows of the others hold.
func (h *HeavyKeeper[K]) candidates(n int) []candidate[K] {
	if n <= 0 || n > h.config.K {
		n = h.config.K
	}
	v := survey[K]{
		keeper:  h,
		index:   make(map[K]int, slots(h.config.K)),
		stripes: h.stripes.Len(),
	}
	v.collect()
	v.prune(n)
	// One stripe after the other, whose cells then stay in the cache, but
	// never with its lock held for long.
	for stripe := range v.stripes {
		for start := 0; start < len(v.list); start += batchSize {
			v.complete(stripe, start, min(start+batchSize, len(v.list)))
		}
	}
	return v.list
}

// collect adds up what stripes have counted of the keys they track.
func (v *survey[K]) collect() {
	var entries []entry[K]
	ceilings := make([]uint64, v.stripes)
	for i := range v.stripes {
		var now fading
		h := v.keeper
		h.stripes.With(i, func(s *Sketch[K]) bool {
			entries = append(entries[:0], s.tracked.entries...)
			now, ceilings[i] = s.fading, s.ceiling()
			return true
		})
		for j := range entries {
			e := &entries[j]
			at, found := v.index[e.key]
			if !found {
				at = len(v.list)
				v.index[e.key] = at
				v.list = append(v.list, candidate[K]{key: e.key, hash: h.keys.hash(e.key)})
				v.asked = append(v.asked, make([]bool, v.stripes)...)
			}
			c := &v.list[at]
			c.sum = c.sum.plus(now.interval(e.count, e.upper()))
			v.asked[at*v.stripes+i] = true
		}
	}
	for at := range v.list {
		c := &v.list[at]
		for i, asked := range v.asked[at*v.stripes:][:v.stripes] {
			if !asked {
				c.rest = addSaturated(c.rest, ceilings[i])
			}
		}
	}
}

// prune drops the candidates that are too light to be among the n heaviest,
// whatever the stripes that do not track them hold.
func (v *survey[K]) prune(n int) {
	if len(v.list) <= n {
		return
	}
	sums := make([]uint64, len(v.list))
	for i := range v.list {
		sums[i] = v.list[i].sum.lower
	}
	slices.Sort(sums)
	enough := sums[len(sums)-n]
	kept := 0
	for at, c := range v.list {
		if addSaturated(c.sum.lower, c.rest) >= enough {
			v.list[kept] = c
			copy(v.asked[kept*v.stripes:], v.asked[at*v.stripes:][:v.stripes])
			kept++
		}
	}
	v.list = v.list[:kept]
}

// complete asks a stripe for what its rows hold of the keys in
// list[start:end] that it does not track.
func (v *survey[K]) complete(stripe, start, end int) {
	v.keeper.stripes.With(stripe, func(s *Sketch[K]) bool {
		for at := start; at < end; at++ {
			if c := &v.list[at]; !v.asked[at*v.stripes+stripe] {
				c.sum = c.sum.plus(s.interval(c.key, c.hash))
			}
		}
		return true
	})
}

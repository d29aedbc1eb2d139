package hotspot

import (
	"iter"
	"slices"
	"time"
)

// Set is a hot set as it was published. It does not change, so that all methods
// are safe for concurrent use.
type Set[K comparable] struct {
	at    time.Time
	total uint64
	span  time.Duration
	hot   []HotKey[K] // by rank
	index index[K]    // hot, then denied keys
	rules *ruleset[K]
	keys  *keys[K]
}

// newSet returns the set of hot keys, which it retains.
func newSet[K comparable](hot []HotKey[K], rules *ruleset[K], keys *keys[K]) *Set[K] {
	list := make([]K, 0, len(hot)+len(rules.denied))
	for i := range hot {
		list = append(list, hot[i].Key)
	}
	return &Set[K]{
		hot:   hot,
		index: newIndex(append(list, rules.denied...), keys),
		rules: rules,
		keys:  keys,
	}
}

// At returns the time of the scan, zero before the first.
func (s *Set[K]) At() time.Time { return s.at }

// Len returns the number of hot keys, TopN at most.
func (s *Set[K]) Len() int { return len(s.hot) }

// Keys returns the hot keys by rank. The slice is a copy.
func (s *Set[K]) Keys() []HotKey[K] { return slices.Clone(s.hot) }

// All iterates over the hot keys by rank.
func (s *Set[K]) All() iter.Seq[HotKey[K]] { return slices.Values(s.hot) }

// Find returns what is known of a hot key; ok is false if key is not in the
// set.
func (s *Set[K]) Find(key K) (hot HotKey[K], ok bool) {
	if at := s.index.find(key, s.keys.hash(key)); at >= 0 && at < len(s.hot) {
		return s.hot[at], true
	}
	return hot, false
}

// has reports whether key is in the set.
func (s *Set[K]) has(key K) bool {
	at := s.index.find(key, s.keys.hash(key))
	return at >= 0 && at < len(s.hot)
}

// verdict returns what the set and its rules say of a key: allowed if it is
// hot.
func (s *Set[K]) verdict(key K) verdict {
	if len(s.index.keys) == 0 && s.rules.verdicts == nil {
		return cold
	}
	hash := s.keys.hash(key)
	if at := s.index.find(key, hash); at >= 0 {
		if at < len(s.hot) {
			return allowed
		}
		return denied
	}
	if s.rules.verdicts == nil {
		return cold
	}
	return s.rules.verdict(key, hash, s.keys)
}

// index finds the positions of keys in a list, by open addressing. At least
// three of four words are free, so that most keys that are not in the list are
// told so by the first word.
type index[K comparable] struct {
	words []uint64 // low half of the hash above, position + 1 below; 0: none
	shift uint8    // leaves the bits of the hash that are a key's home
	keys  []K
}

// newIndex returns the index of a list of distinct keys, which it retains.
func newIndex[K comparable](list []K, keys *keys[K]) index[K] {
	x := index[K]{shift: 60, keys: list}
	for 1<<(64-x.shift) < 4*len(list) {
		x.shift--
	}
	x.words = make([]uint64, 1<<(64-x.shift))
	for at, key := range list {
		hash := keys.hash(key)
		i := hash >> x.shift
		for x.words[i] != 0 {
			i = (i + 1) & uint64(len(x.words)-1)
		}
		x.words[i] = hash<<32 | uint64(at+1)
	}
	return x
}

// find returns the position of a key, -1 if the list has not got it.
func (x *index[K]) find(key K, hash uint64) int {
	mask := uint64(len(x.words) - 1)
	for i := hash >> (x.shift & 63); ; i++ {
		word := x.words[i&mask]
		if word == 0 {
			return -1
		}
		if word>>32 == hash&(1<<32-1) {
			if at := int(uint32(word)) - 1; x.keys[at] == key {
				return at
			}
		}
	}
}

package hotspot

import (
	"cmp"
	"slices"
	"time"
)

// candidate is a key at a scan, with what the thresholds say of it. Denied keys
// are not candidates.
type candidate[K comparable] struct {
	HotKey[K]      // all but Since
	pinned    bool // in the set whatever its rank: an exact rule allows it
	meets     bool // reaches the thresholds
	stays     bool // reaches Leave of them
	possible  bool // Upper reaches them
}

// tracker is the hysteresis: it knows which keys are hot, since when, and which
// are about to be. It holds TopN keys, and those of the latest candidates that
// reach the thresholds.
type tracker[K comparable] struct {
	topN       int
	leave      float64
	minStay    time.Duration
	enterAfter int

	running bool
	last    time.Time
	members map[K]*member
	waiting map[K]wait
	flaps   uint64
}

// member is a key that is hot.
type member struct {
	since  time.Time
	dipped bool // would have left, were it not for the hysteresis
}

// wait is a key that reaches its thresholds and is not hot yet.
type wait struct {
	scans int  // in a row, at different times
	due   bool // would be hot, were it not for the hysteresis
}

// step decides which of the candidates, which are in the order of rank, are
// hot at t, and returns these with their Since, and those that may be.
//
// A clock that has stepped back is taken not to have moved: what was since an
// hour ago is so afterwards. Another scan at the same time is none in a row.
func (r *tracker[K]) step(t time.Time, list []candidate[K]) (hot, possible []HotKey[K]) {
	moved := !r.running || t.After(r.last)
	if r.running && t.Before(r.last) {
		moved = true
		for _, m := range r.members {
			if !m.since.IsZero() {
				m.since = m.since.Add(t.Sub(r.last))
			}
		}
	}
	r.running, r.last = true, t
	due := r.due(list)
	chosen := r.choose(t, list, moved, due)
	members := make(map[K]*member, len(chosen))
	for i := range list {
		c := &list[i]
		if !chosen[i] {
			if c.possible && len(possible) < r.topN {
				possible = append(possible, c.HotKey)
			}
			continue
		}
		m := r.members[c.Key]
		if m == nil {
			m = &member{since: t}
		}
		if m.dipped && due[i] {
			r.flaps++
		}
		m.dipped = !due[i]
		delete(r.waiting, c.Key)
		members[c.Key] = m
		c.Since = m.since
		hot = append(hot, c.HotKey)
	}
	r.members = members
	return hot, possible
}

// due returns which candidates would be hot without any hysteresis.
func (r *tracker[K]) due(list []candidate[K]) []bool {
	due, left := make([]bool, len(list)), r.topN
	for i := range list {
		if list[i].pinned {
			due[i] = true
			left--
		}
	}
	for i := range list {
		if c := &list[i]; left > 0 && !c.pinned && (c.Allowed || c.meets) {
			due[i] = true
			left--
		}
	}
	return due
}

// place is a candidate that may be hot. Those of the lowest class come first,
// then those of the highest score, then those that are hot.
type place struct {
	at, class int
	score     float64
	newcomer  int // 1 for one that is not hot
}

// choose returns which candidates are hot, TopN at most, and has the others
// that reach their thresholds wait.
func (r *tracker[K]) choose(t time.Time, list []candidate[K], moved bool, due []bool) []bool {
	var places []place
	waiting := make(map[K]wait)
	for i := range list {
		c := &list[i]
		m, isHot := r.members[c.Key]
		ready := isHot && (c.stays || c.Allowed)
		if !isHot && (c.meets || c.Allowed) {
			w, again := r.waiting[c.Key]
			if moved || !again {
				w.scans++
			}
			w.due = w.due || due[i]
			waiting[c.Key] = w
			ready = c.Allowed || w.scans >= r.enterAfter
		}
		p := place{at: i, class: 2, score: float64(c.Count), newcomer: 1}
		if isHot {
			p.score, p.newcomer = p.score/r.leave, 0
		}
		switch {
		case c.pinned:
			p.class = 0
		case isHot && t.Sub(m.since) < r.minStay:
			p.class = 1
		case !ready:
			continue
		}
		places = append(places, p)
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(b.score, a.score), a.newcomer-b.newcomer)
	})
	chosen := make([]bool, len(list))
	for _, p := range places[:min(len(places), r.topN)] {
		chosen[p.at] = true
	}
	// What waited and does no more, would have come and gone.
	for key, w := range r.waiting {
		if _, still := waiting[key]; w.due && !still {
			r.flaps++
		}
	}
	r.waiting = waiting
	return chosen
}

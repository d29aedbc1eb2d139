package redisstream

import (
	"fmt"
	"strconv"
	"strings"
)

// sequences are the numbers of the reports received from the publishers of a
// shard.
type sequences struct {
	most  int                  // publishers that are remembered
	clock uint64               // of uses
	last  map[string]*received // by publisher
	gone  []string             // forgotten, and stored as yet
	fresh map[string]*received // changed since they were stored
}

// received are the numbers of the reports received from a publisher: up to
// number, but those of the last 64 that have no bit. Bit 0 is that of number,
// bit 1 that of the one before. So a report that comes late, because it was
// read by a server that was cut off, is told from one that comes again.
type received struct {
	number, bits uint64
	used         uint64
}

func newSequences(most int) *sequences {
	return &sequences{most: most, last: make(map[string]*received), fresh: make(map[string]*received)}
}

// load adds what was stored. A number that is greater here stays: the store has
// lost what it was told. Fields that are not understood are left out, and so
// are those that there is no place for.
func (s *sequences) load(stored map[string]string) {
	for publisher, text := range stored {
		r, err := parse(text)
		switch here := s.last[publisher]; {
		case err == nil && here != nil:
			if r.number >= here.number {
				here.number, here.bits = r.number, r.bits
			}
		case err == nil && len(s.last) < s.most:
			s.last[publisher] = r
		case here == nil:
			s.gone = append(s.gone, publisher)
		}
	}
}

// String returns the form that is stored.
func (r *received) String() string { return fmt.Sprintf("%d %x", r.number, r.bits) }

func parse(text string) (*received, error) {
	number, mask, _ := strings.Cut(text, " ")
	r := new(received)
	var err error
	if r.number, err = strconv.ParseUint(number, 10, 64); err != nil {
		return nil, err
	}
	r.bits, err = strconv.ParseUint(mask, 16, 64)
	return r, err
}

// repeated reports whether a report has come before, or is so old that it is
// taken for one that has.
func (s *sequences) repeated(publisher string, number uint64) bool {
	r := s.last[publisher]
	if r == nil || number > r.number {
		return false
	}
	age := r.number - number
	return age >= 64 || r.bits>>age&1 == 1
}

// note takes note of a report that is not repeated. It returns how many must
// have been between it and the latest, or whether it was one of those.
func (s *sequences) note(publisher string, number uint64) (lost uint64, late bool) {
	s.clock++
	r := s.last[publisher]
	switch {
	case r == nil:
		if len(s.last) >= s.most {
			s.forget()
		}
		r = &received{number: number, bits: ^uint64(0)}
		s.last[publisher] = r
	case number > r.number:
		ahead := number - r.number
		lost = ahead - 1
		r.number, r.bits = number, r.bits<<min(ahead, 64)|1
	default:
		late = true
		r.bits |= 1 << (r.number - number)
	}
	r.used = s.clock
	s.fresh[publisher] = r
	return lost, late
}

// forget forgets the publisher that was not heard of for longest. O(most).
func (s *sequences) forget() {
	oldest, at := "", uint64(0)
	for publisher, r := range s.last {
		if oldest == "" || r.used < at {
			oldest, at = publisher, r.used
		}
	}
	delete(s.last, oldest)
	delete(s.fresh, oldest)
	s.gone = append(s.gone, oldest)
}

// changes returns what to store and what to remove, since stored was called.
func (s *sequences) changes() (set []any, remove []string) {
	for publisher, r := range s.fresh {
		set = append(set, publisher, r.String())
	}
	for _, publisher := range s.gone {
		if s.last[publisher] == nil { // it may have come back
			remove = append(remove, publisher)
		}
	}
	return set, remove
}

// stored says that the changes have been stored.
func (s *sequences) stored() {
	clear(s.fresh)
	s.gone = s.gone[:0]
}

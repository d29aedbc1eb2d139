package redisstream

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSequences compares with a set of all that came, for reports that are lost,
// come twice and come late, and with numbers stored and loaded in between.
func TestSequences(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		s, stored := newSequences(10), map[string]string{}
		seen := map[uint64]bool{}
		next, lost, late := uint64(random.IntN(5)), uint64(0), uint64(0)
		first, highest := uint64(0), uint64(0)
		for i := range 300 {
			number := next
			switch random.IntN(10) {
			case 0:
				number += uint64(random.IntN(100)) // some are lost
				fallthrough
			default:
				next = number + 1
			case 1:
				number -= min(number, uint64(random.IntN(60)))
			}
			if number > highest {
				highest, next = number, number+1
			}
			if i == 0 {
				first, highest, next = number, number, number+1
			} else if number < first {
				continue // before the first that it knows of
			}
			repeated := s.repeated("p", number)
			if repeated != (seen[number] || i > 0 && number+64 <= highest) {
				t.Fatalf("report %d, with %d the latest: repeated = %v, seen %v", number, highest, repeated, seen[number])
			}
			if repeated {
				continue
			}
			seen[number] = true
			l, isLate := s.note("p", number)
			lost += l
			if isLate {
				late++
			}
			if want := highest - first + 1 - uint64(len(seen)); lost-late != want {
				t.Fatalf("after report %d: %d lost, %d of them late, want %d in all", number, lost, late, want)
			}
			if random.IntN(20) == 0 { // another server takes over
				set, remove := s.changes()
				apply(stored, set, remove)
				s.stored()
				s = newSequences(10)
				s.load(stored)
			}
		}
	}
}

func apply(stored map[string]string, set []any, remove []string) {
	for i := 0; i < len(set); i += 2 {
		stored[set[i].(string)] = set[i+1].(string)
	}
	for _, field := range remove {
		delete(stored, field)
	}
}

func TestSequencesAreBounded(t *testing.T) {
	s, stored := newSequences(3), map[string]string{}
	for i := range 20 {
		s.note("always", uint64(i))
		s.note(fmt.Sprint("p", i), 1)
		set, remove := s.changes()
		apply(stored, set, remove)
		s.stored()
		if len(s.last) > 3 || len(stored) > 3 {
			t.Fatalf("%d publishers are known and %d stored, want at most 3", len(s.last), len(stored))
		}
	}
	if s.last["always"] == nil || !s.repeated("always", 19) {
		t.Error("the one that was heard of all the time is forgotten")
	}
	// A store with too many, and with what is no number.
	stored = map[string]string{"bad": "x", "worse": "1 g", "": ""}
	for i := range 10 {
		stored[fmt.Sprint(i)] = "7 1"
	}
	s = newSequences(3)
	s.load(maps.Clone(stored))
	_, remove := s.changes()
	if len(s.last) != 3 || len(remove) != len(stored)-3 {
		t.Errorf("loaded %d and removed %d of %d, want 3 and the others", len(s.last), len(remove), len(stored))
	}
}

// TestSequencesMerge loads what another server stored, or the store has lost.
func TestSequencesMerge(t *testing.T) {
	s := newSequences(10)
	s.note("a", 100)
	s.note("b", 100)
	s.load(map[string]string{"a": "90 ffff", "b": "110 1"})
	if lost, _ := s.note("a", 102); lost != 1 {
		t.Errorf("a, with 90 stored: got %d lost, want 1 after 100", lost)
	}
	if lost, _ := s.note("b", 112); lost != 1 {
		t.Errorf("b, with 110 stored: got %d lost, want 1 after 110", lost)
	}
	s.note("b", math.MaxUint64)
	if !s.repeated("b", math.MaxUint64) || s.repeated("b", math.MaxUint64-1) {
		t.Error("at the greatest number: told the wrong one repeated")
	}
}

package window

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var soakEvents = flag.Int("soak", 0, "number of events of TestSoak, 1e9 to take it seriously; 0: a short form")

// Keys of a soak: the watched ones have counts that are known exactly.
const (
	soakWatched = 10_000
	soakKeys    = 100_000_000
	soakSlots   = 10
)

// soak feeds a window with events that come in order, late, too late, and
// after jumps of the clock: ahead by more than a window, and back. Weights are
// up to 2^32-1. Now and then the window is saved and restored.
type soak struct {
	t      *testing.T
	r      *rand.Rand
	window *HeavyKeeper[int]
	now    int64                          // in microseconds since 1970
	latest int64                          // slot
	counts [soakSlots][soakWatched]uint64 // by slot modulo soakSlots
	totals [soakSlots]uint64

	total, late, tooLate uint64
	jumps, restores      int
	snapshot             []byte
	heap                 uint64 // in use early on
}

const soakSlot = time.Second

func newSoak(t *testing.T) *soak {
	return &soak{
		t:      t,
		r:      rand.New(rand.NewPCG(1, 2)),
		window: must(t, Config[int]{K: 100, Slots: soakSlots, Slot: soakSlot, Stripes: 1}),
		now:    1e15,
		latest: none,
	}
}

// turn makes a later slot the latest of the model.
func (s *soak) turn(slot int64) {
	for at := max(s.latest+1, slot-soakSlots+1); at <= slot; at++ {
		clear(s.counts[at%soakSlots][:])
		s.totals[at%soakSlots] = 0
	}
	s.latest = slot
}

// step is one event; perSlot is the mean number of them in a slot.
func (s *soak) step(perSlot int) {
	s.now += int64(s.r.IntN(2 * int(soakSlot.Microseconds()) / perSlot))
	at := s.now
	switch x := s.r.IntN(20 * perSlot); {
	case x == 0: // ahead, mostly for good
		s.jumps++
		s.now += s.r.Int64N(40) * soakSlot.Microseconds()
	case x == 1: // back
		s.jumps++
		s.now -= s.r.Int64N(40) * soakSlot.Microseconds()
	case x%100 == 2: // late, or too late
		at -= s.r.Int64N(2*soakSlots) * soakSlot.Microseconds()
	}
	key, n := soakWatched+s.r.IntN(soakKeys-soakWatched), uint32(1)
	if x := s.r.Uint32(); x&1 == 0 {
		key = int(math.Pow(s.r.Float64(), 4) * soakWatched)
	} else if x&31 == 1 {
		n = math.MaxUint32 >> (x >> 5 % 32) // any order of magnitude
		key = int(x>>5) % soakWatched
	}
	s.window.AddAt(time.UnixMicro(at), key, n)
	slot := at / soakSlot.Microseconds()
	if slot > s.latest {
		s.turn(slot)
	}
	switch {
	case slot <= s.latest-soakSlots:
		s.tooLate += uint64(n)
		return
	case slot < s.latest:
		s.late += uint64(n)
	}
	s.total += uint64(n)
	s.totals[slot%soakSlots] += uint64(n)
	if key < soakWatched {
		s.counts[slot%soakSlots][key] += uint64(n)
	}
}

// restore goes on with a window restored from an encoding.
func (s *soak) restore() {
	var err error
	s.snapshot, err = s.window.AppendBinary(s.snapshot[:0])
	require.NoError(s.t, err)
	require.NoError(s.t, s.window.UnmarshalBinary(s.snapshot))
	s.restores++
}

// check requires that bounds hold for all watched keys, now and some slots
// later, that totals are exact and memory has not grown.
func (s *soak) check() {
	for ahead := range int64(soakSlots + 1) {
		at := time.UnixMicro((s.latest + ahead) * soakSlot.Microseconds())
		for key := range soakWatched {
			truth := uint64(0)
			for slot := s.latest + ahead - soakSlots + 1; slot <= s.latest; slot++ {
				truth += s.counts[slot%soakSlots][key]
			}
			if e := s.window.EstimateAt(at, key); e.Lower > truth || e.Upper < truth {
				require.Failf(s.t, "bounds", "key %d has %d events, got %+v", key, truth, e)
			}
		}
	}
	weight := uint64(0)
	for _, n := range s.totals {
		weight += n
	}
	stats := s.window.Stats()
	require.Equal(s.t, []uint64{s.total, weight, s.late, s.tooLate}, []uint64{stats.Total, stats.Weight, stats.Late, stats.TooLate})
	require.Equal(s.t, s.latest, stats.Slot)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if s.heap == 0 {
		s.heap = m.HeapAlloc
	}
	require.Less(s.t, m.HeapAlloc, s.heap+s.heap/4, "memory grows")
}

// TestSoak runs for as long as one likes:
//
//	go test -v -run Soak -timeout 0 ./window -soak 1000000000
func TestSoak(t *testing.T) {
	events, checks := 500_000, 10
	if testing.Short() {
		events, checks = 100_000, 3
	}
	if *soakEvents > 0 {
		events, checks = *soakEvents, 50
	}
	s := newSoak(t)
	perSlot := min(max(events/2000, 10), 20_000)
	begin := time.Now()
	for i := range events {
		s.step(perSlot)
		done := i + 1
		if done%max(events/200, 1) == 0 {
			s.restore()
		}
		if done%(events/checks) == 0 {
			s.check()
			if *soakEvents > 0 {
				fmt.Printf("soak: %4.0f %% of %d events, %.0f ns each, heap %.2f MB, %d turns, %d jumps, %d restores, %.2g of the weight came late\n",
					100*float64(done)/float64(events), events, float64(time.Since(begin).Nanoseconds())/float64(done),
					float64(s.heap)/(1<<20), s.window.Stats().Turns, s.jumps, s.restores, float64(s.late)/float64(s.total))
			}
		}
	}
	require.Positive(t, s.jumps)
	require.Positive(t, s.late)
	require.Positive(t, s.tooLate)
}

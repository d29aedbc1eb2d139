package heavykeeper

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

// Keys of a soak: the watched ones have weights that are known exactly.
const (
	soakWatched = 10_000
	soakKeys    = 100_000_000
)

// soak feeds three objects with one stream: a Sketch whose weights fade, with
// weights up to 2^32-1, that is saved, restored and merged with another now and
// then; a HeavyKeeper of three stripes that does not fade; and a Sketch of
// weights 1, in batches, whose bounds stay narrow.
type soak struct {
	t      *testing.T
	events int
	r      *rand.Rand

	fading, side *subject // side is merged into fading
	keeper       *HeavyKeeper[int]
	plain        *Sketch[int]
	batch        []int
	weight       []uint64 // of watched keys in keeper
	occurrences  []uint64 // and in plain
	total        uint64   // in keeper, but for what saturates

	merges, restores, fades int
	snapshot                []byte
	heap                    uint64 // in use early on
}

func newSoak(t *testing.T, events int) *soak {
	fading := Config[int]{K: 100, Alpha: 0.01, Seed: 1}
	s := &soak{
		t:           t,
		events:      events,
		r:           rand.New(rand.NewPCG(1, 2)),
		fading:      &subject{must(NewSketch(fading)), newModel[int]()},
		side:        &subject{must(NewSketch(fading)), newModel[int]()},
		keeper:      must(New(Config[int]{K: 100, Stripes: 3, Seed: 2})),
		plain:       must(NewSketch(Config[int]{K: 100, Seed: 3})),
		weight:      make([]uint64, soakWatched),
		occurrences: make([]uint64, soakWatched),
	}
	for key := range soakWatched { // all are there before memory is measured
		s.fading.model.weight[key], s.side.model.weight[key] = 0, 0
	}
	return s
}

// key returns a key: one in two is a watched one, skewed, the others are any.
func (s *soak) key() int {
	x := s.r.Uint64()
	if x&1 == 0 {
		return skewed(s.r, soakWatched)
	}
	return soakWatched + int(x>>1%(soakKeys-soakWatched))
}

// step is one event.
func (s *soak) step() {
	key, n := s.key(), uint32(1)
	if x := s.r.Uint32(); x&15 == 0 {
		n = math.MaxUint32 >> (x >> 4 % 32) // any order of magnitude
	}
	s.keeper.AddN(key, n)
	s.total += uint64(n)
	into := s.fading
	if key&7 == 0 {
		into = s.side
	}
	into.sketch.AddN(key, n)
	if key < soakWatched {
		s.weight[key] += uint64(n)
		s.occurrences[key]++
		into.model.weight[key] += float64(n)
	}
	if s.batch = append(s.batch, key); len(s.batch) == 100 {
		s.plain.AddBatch(s.batch)
		s.batch = s.batch[:0]
	}
}

// upkeep fades, merges, saves and restores.
func (s *soak) upkeep() {
	for _, x := range []*subject{s.fading, s.side} {
		x.model.fade(x.sketch)
		x.sketch.Fade()
	}
	s.fades++
	switch s.fades % 10 {
	case 3:
		s.merges++
		s.fading.merge(s.side)
		for key := range s.side.model.weight {
			s.side.model.weight[key] = 0
		}
		s.side.sketch.Reset()
	case 6:
		s.restores++
		var err error
		s.snapshot, err = s.fading.sketch.AppendBinary(s.snapshot[:0])
		require.NoError(s.t, err)
		require.NoError(s.t, s.fading.sketch.UnmarshalBinary(s.snapshot))
		s.snapshot, err = s.keeper.AppendBinary(s.snapshot[:0])
		require.NoError(s.t, err)
		require.NoError(s.t, s.keeper.UnmarshalBinary(s.snapshot))
	}
}

// check requires that bounds hold for all watched keys, that totals are exact
// and memory has not grown.
func (s *soak) check(done int) {
	s.plain.AddBatch(s.batch)
	s.batch = s.batch[:0]
	for _, x := range []*subject{s.fading, s.side} {
		x.model.checkBounds(s.t, x.sketch)
		checkShape(s.t, x.sketch)
	}
	for key := range soakWatched {
		for _, y := range []struct {
			e     Estimate
			truth uint64
		}{{s.keeper.Estimate(key), s.weight[key]}, {s.plain.Estimate(key), s.occurrences[key]}} {
			if y.e.Lower > y.truth || y.e.Upper < y.truth {
				require.Failf(s.t, "bounds", "key %d weighs %d, got %+v", key, y.truth, y.e)
			}
		}
	}
	require.Equal(s.t, s.total, s.keeper.Stats().Total)
	require.Equal(s.t, uint64(done), s.plain.Stats().Total)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if s.heap == 0 {
		s.heap = m.HeapAlloc
	}
	require.Less(s.t, m.HeapAlloc, s.heap+s.heap/4, "memory grows")
}

// progress prints a line that says how far it is.
func (s *soak) progress(done int, begin time.Time) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	top := s.plain.Top(1)[0]
	fmt.Printf("soak: %4.0f %% of %d events, %.0f ns each, heap %.2f MB, %d fades, %d merges, %d restores; first key %d of %d is %+v\n",
		100*float64(done)/float64(s.events), s.events, float64(time.Since(begin).Nanoseconds())/float64(done),
		float64(m.HeapAlloc)/(1<<20), s.fades, s.merges, s.restores, top.Key, s.occurrences[top.Key], top.Estimate)
}

// TestSoak runs for as long as one likes:
//
//	go test -v -run Soak -timeout 0 . -soak 1000000000
func TestSoak(t *testing.T) {
	events, checks := 500_000, 5
	if testing.Short() {
		events, checks = 30_000, 2
	}
	if *soakEvents > 0 {
		events, checks = *soakEvents, 50
	}
	s := newSoak(t, events)
	begin := time.Now()
	for i := range events {
		s.step()
		if i%max(events/2000, 1) == 0 {
			s.upkeep()
		}
		if done := i + 1; done%(events/checks) == 0 {
			s.check(done)
			if *soakEvents > 0 {
				s.progress(done, begin)
			}
		}
	}
	require.Positive(t, s.merges)
	require.Positive(t, s.restores)
}

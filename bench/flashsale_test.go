package bench

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper/bench/stream"
	"github.com/heavykeeper-go/heavykeeper/hotspot"
)

const (
	saleRate  = 200_000 // events a second
	saleKeys  = 100_000
	saleShare = 0.30
	saleSlots = 10
	saleSlot  = 300 * time.Millisecond
	saleRamp  = 20 // slots from nothing to saleShare
	saleLasts = 20 // slots at saleShare
	saleEdge  = 10 // the rank, from 1 on, of the steady key that is right at the threshold
	saleKey   = 0  // no key of stream.Key
)

// sale is a simulated flash sale: Zipf 1.0 traffic for as long as the caller
// likes, in which a key rises to 30 % of traffic, stays there and is gone. The
// threshold is the mean rate of the tenth key, which therefore crosses it all
// the time. An exact count of each slot is the judge.
type sale struct {
	detector *hotspot.Detector[uint64]
	slot     time.Duration
	limit    float64 // occurrences in a full window
	start    time.Time
	random   *rand.Rand
	recent   []map[uint64]uint32 // counts of the latest slots
	passed   int                 // slots
	events   int
	spent    time.Duration // in the detector

	entered map[uint64]int // how often each key did
	changes int
	wrong   []string // what was not as it should be
}

// harmonic returns the sum of 1/i up to n.
func harmonic(n int) float64 {
	sum := 0.0
	for i := range n {
		sum += 1 / float64(i+1)
	}
	return sum
}

func newSale(t testing.TB, slot time.Duration, leave float64) *sale {
	rate := saleRate / saleEdge / harmonic(saleKeys)
	d, err := hotspot.New(hotspot.Config[uint64]{Rate: rate, Leave: leave, Slots: saleSlots, Slot: slot})
	require.NoError(t, err)
	return &sale{
		detector: d,
		slot:     slot,
		limit:    rate * (saleSlots * slot).Seconds(),
		start:    time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC).Truncate(slot),
		random:   rand.New(rand.NewPCG(seed, 2)),
		entered:  make(map[uint64]int),
	}
}

// pass lets a slot pass in which the key on sale has a share of traffic, and
// scans just before its end.
func (s *sale) pass(share float64) hotspot.Change[uint64] {
	n := int(saleRate * s.slot.Seconds())
	keys := stream.Zipf(uint64(s.passed+1), 1, saleKeys, n)
	counts := make(map[uint64]uint32)
	for i := range keys {
		if share > 0 && s.random.Float64() < share {
			keys[i] = saleKey
		}
		counts[keys[i]]++
	}
	if s.recent = append(s.recent, counts); len(s.recent) > saleSlots {
		s.recent = s.recent[1:]
	}
	began := time.Now()
	first := s.start.Add(time.Duration(s.passed) * s.slot)
	for i, key := range keys {
		s.detector.ObserveAt(first.Add(time.Duration(i)*s.slot/time.Duration(n)), key, 1)
	}
	s.spent += time.Since(began)
	s.events += n
	s.passed++
	change := s.detector.ScanAt(first.Add(s.slot - 1))
	s.judge(change)
	return change
}

// truth returns how often a key came in the window.
func (s *sale) truth(key uint64) int {
	sum := 0
	for _, counts := range s.recent {
		sum += int(counts[key])
	}
	return sum
}

// judge notes what is wrong about the outcome of a scan, once a window is full.
func (s *sale) judge(change hotspot.Change[uint64]) {
	if s.passed < saleSlots {
		return
	}
	fault := func(format string, args ...any) {
		s.wrong = append(s.wrong, fmt.Sprintf("scan %d: ", s.passed)+fmt.Sprintf(format, args...))
	}
	s.changes += len(change.Entered) + len(change.Left)
	for _, key := range change.Entered {
		s.entered[key.Key]++
		if n := s.truth(key.Key); float64(n) < s.limit {
			fault("key %x entered with %d occurrences, %.0f is the threshold", key.Key, n, s.limit)
		}
	}
	for _, key := range change.Hot {
		if n := s.truth(key.Key); int(key.Lower) > n || int(key.Upper) < n {
			fault("key %x came %d times, got %+v", key.Key, n, key.Estimate)
		}
	}
	for rank := range 5 * saleEdge {
		key := stream.Key(rank)
		if n := s.truth(key); float64(n) >= s.limit && !s.detector.Hot(key) {
			fault("key %x of rank %d is not hot with %d occurrences, %.0f is the threshold", key, rank+1, n, s.limit)
		}
	}
}

// outcome is when the key on sale crossed the threshold, entered, and left, in
// slots.
type outcome struct{ risen, crossed, entered, ended, left int }

// run has a sale, and returns when the key has left or two windows have passed.
func (s *sale) run() outcome {
	var o outcome
	for i := 1; i <= saleRamp+saleLasts; i++ {
		share := saleShare * float64(min(i, saleRamp)) / saleRamp
		s.pass(share)
		if o.risen == 0 && share*saleRate*(saleSlots*s.slot).Seconds() >= s.limit {
			o.risen = s.passed
		}
		if o.crossed == 0 && float64(s.truth(saleKey)) >= s.limit {
			o.crossed = s.passed
		}
		if o.entered == 0 && s.detector.Hot(saleKey) {
			o.entered = s.passed
		}
	}
	o.ended = s.passed
	for s.detector.Hot(saleKey) && s.passed < o.ended+2*saleSlots {
		s.pass(0)
	}
	o.left = s.passed
	return o
}

// TestFlashSale is the promise of package hotspot: no later than the slot after
// a key has crossed the threshold it is hot, it is not for longer than a window
// after it has gone, and over 1,000 scans of steady traffic no key enters that
// is below the threshold, or enters twice.
func TestFlashSale(t *testing.T) {
	scans := 1000
	if testing.Short() {
		scans = 50
	}
	s := newSale(t, saleSlot, 0.8)
	for range saleSlots + scans {
		s.pass(0)
	}
	require.Empty(t, s.wrong, "steady")
	for key, times := range s.entered {
		require.Equal(t, 1, times, "key %x entered more than once", key)
	}
	t.Logf("%d scans of steady traffic: %d hot keys, %d flaps prevented", scans, s.detector.Set().Len(), s.detector.Stats().FlapsPrevented)
	if !testing.Short() {
		require.Positive(t, s.detector.Stats().FlapsPrevented, "the hysteresis had nothing to do")
	}

	before := s.passed
	o := s.run()
	require.Empty(t, s.wrong, "sale")
	t.Logf("its rate crossed the threshold in slot %d, its window in slot %d, it was hot after slot %d; the sale ended with slot %d, it was not hot after slot %d",
		o.risen-before, o.crossed-before, o.entered-before, o.ended-before, o.left-before)
	require.Positive(t, o.crossed)
	require.Positive(t, o.entered, "never hot")
	require.LessOrEqual(t, o.entered, o.crossed+1, "the slot after it crossed the threshold it is hot")
	require.LessOrEqual(t, o.left, o.ended+saleSlots, "a window after the sale it is not hot")
	for key, times := range s.entered {
		require.Equal(t, 1, times, "key %x entered more than once", key)
	}
}

// BenchmarkFlashSale has a sale and reports how many slots after crossing the
// threshold the key was hot, how many after the sale it was not, and how often
// keys came and went in 50 scans of steady traffic before, with and without
// hysteresis. A longer slot, such as the default of 3 s, takes so much longer
// and gives the same.
func BenchmarkFlashSale(b *testing.B) {
	for _, leave := range []float64{0.8, 1} {
		b.Run(fmt.Sprintf("leave=%v", leave), func(b *testing.B) {
			var s *sale
			var o outcome
			changes := 0
			for b.Loop() {
				s = newSale(b, saleSlot, leave)
				for range saleSlots + 50 {
					s.pass(0)
				}
				changes = s.changes
				o = s.run()
			}
			b.ReportMetric(float64(o.entered-o.crossed), "slots-to-hot")
			b.ReportMetric(float64(o.entered-o.risen), "slots-to-hot-since-its-rate")
			b.ReportMetric(float64(o.left-o.ended), "slots-to-leave")
			b.ReportMetric(float64(changes), "steady-changes")
			b.ReportMetric(float64(len(s.wrong)), "faults")
			b.ReportMetric(float64(s.spent.Nanoseconds())/float64(s.events), "ns/event")
		})
	}
}

package window

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
)

// Accuracy is measured at the end of each slot, after a window of warm-up, at
// K = 100 and 10 slots.
const (
	accuracyK     = 100
	accuracySlots = 10
)

// ranker is what is measured. Its slots are counted by the caller.
type ranker interface {
	addSlot(slot int, keys []uint64)
	top(slot int) []heavykeeper.Item[uint64]
	bytes() int
}

// sliding is a window that takes all its memory from a budget.
type sliding struct{ h *HeavyKeeper[uint64] }

func slotTime(slot int) time.Time { return time.Unix(int64(slot), 0) }

func newSliding(t testing.TB, budget, candidates int) sliding {
	config := Config[uint64]{
		K: accuracyK, Slots: accuracySlots, Slot: time.Second, Candidates: candidates, Width: 1, Stripes: 1, Seed: 5,
	}
	const cell, rows = 12, 4
	full := must(t, config)
	for key := range uint64(candidates + 2) {
		full.AddAt(slotTime(0), key, 1)
	}
	config.Width += (budget - full.Stats().Bytes) / (cell * rows)
	config.Width -= 2 // memory comes in cache lines
	return sliding{must(t, config)}
}

func (s sliding) addSlot(slot int, keys []uint64) {
	at := slotTime(slot)
	for _, key := range keys {
		s.h.AddAt(at, key, 1)
	}
}

func (s sliding) top(slot int) []heavykeeper.Item[uint64] { return s.h.TopAt(slotTime(slot), 0) }
func (s sliding) bytes() int                              { return s.h.Stats().Bytes }

// ring is what one would do without this package: a Sketch for each slot. To
// read, everything that any of them tracks is added up over all, which loses
// less than adding up their lists would. A share of the memory is for keys.
type ring []*heavykeeper.Sketch[uint64]

func newRing(t testing.TB, budget int, share float64) ring {
	budget /= accuracySlots
	config := heavykeeper.Config[uint64]{K: 1, Width: 1, Seed: 5}
	build := func() *heavykeeper.Sketch[uint64] {
		s, err := heavykeeper.NewSketch(config)
		require.NoError(t, err)
		return s
	}
	full := func() int {
		s := build()
		for key := range uint64(s.Slots() + 1) {
			s.Add(key)
		}
		return s.Stats().Bytes
	}
	for empty := full(); float64(full()-empty) < share*float64(budget-empty) && config.K < accuracyK; {
		config.K++
	}
	const cell, rows = 12, 4
	config.Width += (budget - full()) / (cell * rows)
	r := make(ring, accuracySlots)
	for i := range r {
		r[i] = build()
	}
	return r
}

func (r ring) addSlot(slot int, keys []uint64) {
	s := r[slot%len(r)]
	s.Reset()
	for _, key := range keys {
		s.Add(key)
	}
}

func (r ring) top(int) []heavykeeper.Item[uint64] {
	sums := map[uint64]heavykeeper.Estimate{}
	for _, s := range r {
		for slot := range s.Slots() {
			if key, ok := s.Key(slot); ok {
				sums[key] = heavykeeper.Estimate{}
			}
		}
	}
	var items []heavykeeper.Item[uint64]
	for key := range sums {
		sum := heavykeeper.Estimate{}
		for _, s := range r {
			sum = plus(sum, s.Estimate(key))
		}
		items = append(items, heavykeeper.Item[uint64]{Key: key, Estimate: sum})
	}
	return r[0].Rank(items, accuracyK)
}

func (r ring) bytes() int {
	n := 0
	for _, s := range r {
		n += s.Stats().Bytes
	}
	return n
}

// accuracy is what measure finds: means over all slots measured.
type accuracy struct {
	precision float64 // share of the keys listed that belong there; of ties any
	err       float64 // of the counts listed, relative
	ns        float64 // an update
	distinct  float64 // keys in the window, which an exact count would hold
}

func measure(x ranker, keys []uint64, perSlot int) accuracy {
	var a accuracy
	exact := map[uint64]int{}
	slots, took := len(keys)/perSlot, time.Duration(0)
	for slot := range slots {
		now := keys[slot*perSlot:][:perSlot]
		begin := time.Now()
		x.addSlot(slot, now)
		took += time.Since(begin)
		for _, key := range now {
			exact[key]++
		}
		if slot < accuracySlots {
			continue
		}
		for _, key := range keys[(slot-accuracySlots)*perSlot:][:perSlot] {
			if exact[key]--; exact[key] == 0 {
				delete(exact, key)
			}
		}
		a.compare(x.top(slot), exact)
	}
	measured := float64(slots - accuracySlots)
	a.precision, a.err, a.distinct = a.precision/measured, a.err/measured, a.distinct/measured
	a.ns = float64(took.Nanoseconds()) / float64(slots*perSlot)
	return a
}

// compare adds what a list is worth.
func (a *accuracy) compare(top []heavykeeper.Item[uint64], exact map[uint64]int) {
	counts := make([]int, 0, len(exact))
	for _, n := range exact {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	least := counts[len(counts)-min(accuracyK, len(counts))]
	for _, item := range top {
		truth := exact[item.Key]
		if truth >= least {
			a.precision += 1. / accuracyK
		}
		a.err += math.Abs(float64(item.Count)-float64(truth)) / float64(max(truth, 1)) / accuracyK
	}
	a.distinct += float64(len(exact))
}

// trace reads a file of 32-bit keys of the folder that TRACES names.
func trace(t *testing.T, name string) []uint64 {
	dir := os.Getenv("TRACES")
	if dir == "" {
		t.Skip("TRACES is not set: it names a folder of traces, " + name + " among them")
	}
	f, err := os.Open(filepath.Join(dir, name))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	keys := make([]uint64, len(data)/4)
	for i := range keys {
		keys[i] = uint64(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return keys
}

// TestAccuracy prints what it measures with -v. TRACES=folder adds the traces.
func TestAccuracy(t *testing.T) {
	slots, shares := 40, []float64{0.5, 0.7, 0.9} // of the ring's memory for keys
	if os.Getenv("TRACES") == "" {
		slots, shares = 14, shares[1:2]
	}
	for _, test := range []struct {
		name       string
		keys       func(*testing.T) []uint64
		perSlot    int
		budget     int
		candidates int
		precision  float64
		err        float64
	}{
		{"zipf=1.0, 5% renamed a slot", func(*testing.T) []uint64 { return zipf(1, 1e5, slots*50000, 50000, 0.05) }, 50000, 64 << 10, 400, .99, .01},
		{"zipf=1.2, 5% renamed a slot", func(*testing.T) []uint64 { return zipf(1.2, 1e5, slots*20000, 20000, 0.05) }, 20000, 64 << 10, 400, .99, .01},
		{"zipf=0.7", func(*testing.T) []uint64 { return zipf(0.7, 1e5, slots*20000, 20000, 0) }, 20000, 64 << 10, 400, .99, .01},
		{"scarab", func(t *testing.T) []uint64 { return trace(t, "scarab.u32.gz") }, 20000, 64 << 10, 400, .97, .02},
		{"orm-busy", func(t *testing.T) []uint64 { return trace(t, "orm-busy.u32.gz") }, 50000, 64 << 10, 500, .90, .05},
		{"orm-busy", func(t *testing.T) []uint64 { return trace(t, "orm-busy.u32.gz") }, 50000, 128 << 10, 900, .90, .05},
	} {
		t.Run(fmt.Sprintf("%s/bytes=%d/candidates=%d", test.name, test.budget, test.candidates), func(t *testing.T) {
			keys := test.keys(t)
			window := newSliding(t, test.budget, test.candidates)
			got := measure(window, keys, test.perSlot)
			require.LessOrEqual(t, window.bytes(), test.budget)
			require.InEpsilon(t, test.budget, window.bytes(), 0.01)
			t.Logf("%d slots; an exact count would hold %.0f keys", len(keys)/test.perSlot, got.distinct)
			t.Logf("window, 4 x %3d cells:            precision %.4f, relative error %.4f, %3.0f ns",
				window.h.config.Width, got.precision, got.err, got.ns)
			for _, share := range shares {
				sketches := newRing(t, test.budget, share)
				beside := measure(sketches, keys, test.perSlot)
				require.InEpsilon(t, test.budget, sketches.bytes(), 0.03)
				t.Logf("ring of sketches, %3d keys each:  precision %.4f, relative error %.4f, %3.0f ns",
					sketches[0].Slots(), beside.precision, beside.err, beside.ns)
				require.Greater(t, got.precision, beside.precision)
			}
			require.GreaterOrEqual(t, got.precision, test.precision)
			require.LessOrEqual(t, got.err, test.err)
		})
	}
}

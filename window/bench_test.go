package window

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/heavykeeper-go/heavykeeper"
)

// zipf returns events keys of a population in which the i-th most frequent
// comes with probability proportional to i^-skew. At each slot, a share of the
// keys is renamed.
func zipf(skew float64, keys, events, perSlot int, renamed float64) []uint64 {
	r := rand.New(rand.NewPCG(1, 2))
	names, cumulative, total := make([]uint64, keys), make([]float64, keys), 0.0
	for i := range keys {
		total += math.Pow(float64(i+1), -skew)
		names[i], cumulative[i] = uint64(i), total
	}
	fresh := uint64(keys)
	out := make([]uint64, events)
	for i := range out {
		if i%perSlot == 0 && i > 0 && renamed > 0 {
			for rank := range names {
				if r.Float64() < renamed {
					names[rank] = fresh
					fresh++
				}
			}
		}
		rank := sort.SearchFloat64s(cumulative, r.Float64()*total)
		out[i] = names[min(rank, keys-1)] * 0x9e3779b97f4a7c15
	}
	return out
}

// streams are those of the root's benchmarks, a power of two of events each.
func streams() map[string][]uint64 {
	const events = 1 << 20
	return map[string][]uint64{
		"one-key":  make([]uint64, events),
		"zipf=1.2": zipf(1.2, 1e5, events, events, 0),
		"zipf=0.6": zipf(0.6, 1e5, events, events, 0),
		"uniform":  zipf(0, 1e5, events, events, 0),
	}
}

var names = []string{"one-key", "zipf=1.2", "zipf=0.6", "uniform"}

func mustRoot(b *testing.B, stripes int) *heavykeeper.HeavyKeeper[uint64] {
	h, err := heavykeeper.New(heavykeeper.Config[uint64]{K: 100, Stripes: stripes})
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func mustWindow(b *testing.B, stripes int) *HeavyKeeper[uint64] {
	h, err := New(Config[uint64]{K: 100, Stripes: stripes})
	if err != nil {
		b.Fatal(err)
	}
	return h
}

// BenchmarkAgainstRoot compares the window's updates with the root's, in turns
// of a few thousand events so that what else the machine does hits both. A slot
// has 200,000 events. Given times cost what the clock does not.
func BenchmarkAgainstRoot(b *testing.B) {
	const chunk = 1 << 12
	all := streams()
	for _, name := range names {
		keys := all[name]
		b.Run("stream="+name, func(b *testing.B) {
			root, short, timed, batched := mustRoot(b, 1), mustWindow(b, 1), mustWindow(b, 1), mustWindow(b, 1)
			var took [5]time.Duration
			measure := func(i int, f func()) {
				begin := time.Now()
				f()
				took[i] += time.Since(begin)
			}
			at := time.Now()
			events := 0
			for b.Loop() {
				part := keys[events&(len(keys)-1):][:chunk]
				events += chunk
				measure(0, func() {
					for _, key := range part {
						root.Add(key)
					}
				})
				measure(1, func() {
					for _, key := range part {
						short.Add(key)
					}
				})
				at = at.Add(chunk * 15 * time.Microsecond)
				measure(2, func() {
					for _, key := range part {
						timed.AddAt(at, key, 1)
					}
				})
				measure(3, func() { root.AddBatch(part) })
				measure(4, func() { batched.AddBatchAt(at, part) })
			}
			ns := func(i int) float64 { return float64(took[i].Nanoseconds()) / float64(events) }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ns(0), "root-Add-ns")
			b.ReportMetric(ns(1)/ns(0), "Add/root")
			b.ReportMetric(ns(2)/ns(0), "AddAt/root")
			b.ReportMetric(ns(3), "root-AddBatch-ns")
			b.ReportMetric(ns(4)/ns(3), "AddBatch/root")
		})
	}
}

// BenchmarkParallel is to be run with -cpu 1,2 and so on: time an update should
// fall as processors are added, on every stream.
func BenchmarkParallel(b *testing.B) {
	all := streams()
	for _, name := range names {
		keys := all[name]
		b.Run("stream="+name+"/of=root", func(b *testing.B) {
			h := mustRoot(b, 0)
			parallel(b, keys, h.Add)
		})
		b.Run("stream="+name+"/of=window", func(b *testing.B) {
			h := mustWindow(b, 0)
			parallel(b, keys, h.Add)
		})
		b.Run("stream="+name+"/of=window-at", func(b *testing.B) {
			h, at := mustWindow(b, 0), time.Now()
			parallel(b, keys, func(key uint64) { h.AddAt(at, key, 1) })
		})
	}
}

// parallel shares the iterations out among as many goroutines as there are
// processors, from the start: B.RunParallel deals them out of one counter, one
// by one if -benchtime is a number.
func parallel(b *testing.B, keys []uint64, add func(uint64)) {
	var all sync.WaitGroup
	procs := runtime.GOMAXPROCS(0)
	for p := range procs {
		all.Go(func() {
			first := p * 12345 * 64
			for i := range (b.N + p) / procs {
				add(keys[(first+i)&(len(keys)-1)])
			}
		})
	}
	all.Wait()
}

// BenchmarkGap is an update after a gap of some slots: time should grow with
// them up to those of the window, 10, and no further. A turn is one, however
// long.
func BenchmarkGap(b *testing.B) {
	for _, slots := range []int{1, 5, 10, 1000, 1e6, 1e9} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			h := mustWindow(b, 1)
			keys := zipf(1, 1000, 1<<12, 1<<12, 0)
			h.AddBatchAt(time.Unix(0, 0), keys)
			at, gap := time.Unix(0, 0), time.Duration(slots)*h.config.Slot
			turns := uint64(0)
			for b.Loop() {
				if at = at.Add(gap); at.Year() > 1<<20 { // times have an end
					b.StopTimer()
					turns += h.Stats().Turns
					h.Reset()
					at = time.Unix(0, 0)
					h.AddAt(at, keys[0], 1)
					at = at.Add(gap)
					b.StartTimer()
				}
				h.AddAt(at, keys[0], 1)
			}
			turns += h.Stats().Turns
			b.ReportMetric(float64(turns)/float64(b.N), "turns/op")
		})
	}
}

func BenchmarkTop(b *testing.B) {
	keys := zipf(1, 1e5, 1<<20, 1<<20, 0)
	for _, stripes := range []int{1, 8} {
		b.Run(fmt.Sprintf("stripes=%d", stripes), func(b *testing.B) {
			h, at := mustWindow(b, stripes), time.Unix(0, 0)
			for i, key := range keys {
				addTo(h, i%stripes, at.Add(time.Duration(i)*30*time.Microsecond), key, 1)
			}
			at = at.Add(30 * time.Second)
			listed := 0
			for b.Loop() {
				listed = len(h.TopAt(at, 0))
			}
			if listed != 100 {
				b.Fatalf("listed %d keys, want 100", listed)
			}
		})
	}
}

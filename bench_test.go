package heavykeeper

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heavykeeper-go/heavykeeper/bench/stream"
)

const streamMask = 1<<20 - 1

// streams returns the key streams of the benchmarks, 2^20 keys each, by name.
func streams() []struct {
	name string
	keys []uint64
} {
	zipf := func(skew float64) []uint64 { return stream.Zipf(1, skew, 1<<20, streamMask+1) }
	return []struct {
		name string
		keys []uint64
	}{
		{"one", make([]uint64, streamMask+1)},
		{"zipf1.2", zipf(1.2)},
		{"zipf0.6", zipf(0.6)},
		{"uniform", zipf(0)},
	}
}

// byKey is a HeavyKeeper striped the usual way: a key's hash chooses its
// stripe. It is the baseline that BenchmarkParallel is about.
type byKey struct {
	keys    keys[uint64]
	stripes [16]struct {
		mu     sync.Mutex
		sketch *Sketch[uint64]
		_      [128]byte
	}
}

func newByKey(config Config[uint64]) *byKey {
	b := &byKey{keys: newKeys(config)}
	for i := range b.stripes {
		b.stripes[i].sketch = must(NewSketch(config))
	}
	return b
}

func (b *byKey) Add(key uint64) {
	h := b.keys.hash(key)
	// Bits that the sketch makes no use of: those of its index would crowd it.
	p := &b.stripes[h>>32%uint64(len(b.stripes))]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sketch.update(key, h, 1)
}

// BenchmarkParallel compares designs for many processors. Run it with -cpu 1,2
// or more: ns/op is the time per update over all goroutines, so a design scales
// if it falls in proportion.
func BenchmarkParallel(b *testing.B) {
	config := Config[uint64]{K: 100, Stripes: 16}
	single := config
	single.Stripes = 1
	for _, stream := range streams() {
		for _, design := range []struct {
			name string
			add  func(uint64)
		}{
			{"by-processor", must(New(config)).Add},
			{"by-key", newByKey(config).Add},
			{"one-mutex", must(New(single)).Add},
		} {
			b.Run(fmt.Sprintf("stream=%s/stripes=%s", stream.name, design.name), func(b *testing.B) {
				inParallel(b, stream.keys, 1, func(keys []uint64) { design.add(keys[0]) })
			})
		}
		batched := must(New(config))
		b.Run(fmt.Sprintf("stream=%s/stripes=by-processor-batch64", stream.name), func(b *testing.B) {
			inParallel(b, stream.keys, batchSize, batched.AddBatch)
		})
	}
}

// inParallel hands runs of n keys to add, each key one iteration, in as many
// goroutines as there are processors. Each has its share of the iterations from
// the start: B.RunParallel deals them out of one counter, one by one if
// -benchtime is a number, and then measures that counter.
func inParallel(b *testing.B, keys []uint64, n int, add func([]uint64)) {
	b.ReportAllocs()
	var all sync.WaitGroup
	procs := runtime.GOMAXPROCS(0)
	for p := range procs {
		all.Go(func() {
			first := p * 12345 * batchSize
			for i := 0; i < (b.N+p)/procs; i += n {
				add(keys[(first+i)&streamMask:][:n])
			}
		})
	}
	all.Wait()
}

// BenchmarkAdd compares one goroutine's updates with a mutex around a map.
func BenchmarkAdd(b *testing.B) {
	ints := stream.Zipf(1, 1.2, 1<<20, streamMask+1)
	strings := make([]string, len(ints))
	for i, key := range ints {
		strings[i] = fmt.Sprintf("key-%x", key)
	}
	benchmarkAdd(b, "uint64", ints)
	benchmarkAdd(b, "string", strings)
	b.Run("key=bytes/AddBytes", func(b *testing.B) {
		h := must(New(Config[string]{K: 100, Stripes: 16}))
		buffer := make([]byte, 0, 64)
		b.ReportAllocs()
		for i := range b.N {
			buffer = append(buffer[:0], strings[i&streamMask]...)
			AddBytes(h, buffer, 1)
		}
	})
}

func benchmarkAdd[K comparable](b *testing.B, name string, keys []K) {
	config := Config[K]{K: 100, Stripes: 16}
	run := func(what string, add func(i int)) {
		b.Run("key="+name+"/"+what, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				add(i & streamMask)
			}
		})
	}
	h := must(New(config))
	run("HeavyKeeper", func(i int) { h.Add(keys[i]) })
	s := must(NewSketch(config))
	run("Sketch", func(i int) { s.Add(keys[i]) })
	var mu sync.Mutex
	counts := map[K]uint64{}
	run("mutex-map", func(i int) {
		mu.Lock()
		counts[keys[i]]++
		mu.Unlock()
	})
	batched := must(New(config))
	b.Run("key="+name+"/HeavyKeeper-batch64", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; i < b.N; i += batchSize {
			batched.AddBatch(keys[i&streamMask:][:min(batchSize, b.N-i)])
		}
	})
}

// BenchmarkMiss is the cost of an update that finds its key not tracked, which
// missOne and challenge are shaped by.
func BenchmarkMiss(b *testing.B) {
	for _, skew := range []float64{0, 0.6, 1.2} {
		b.Run(fmt.Sprintf("zipf=%v", skew), func(b *testing.B) {
			s := must(NewSketch(Config[uint64]{K: 100, Width: 4096}))
			for i := range s.Slots() {
				s.AddN(^uint64(i), 1<<31) // leaves no room for others
			}
			keys := stream.Zipf(1, skew, 1<<20, streamMask+1)
			b.ResetTimer()
			for i := range b.N {
				s.Add(keys[i&streamMask])
			}
		})
	}
}

// BenchmarkHash shows what a hash through a function value costs beside one
// that the compiler sees.
func BenchmarkHash(b *testing.B) {
	for _, through := range []struct {
		name string
		fn   func(uint64) uint64
	}{{"kind", nil}, {"func", func(k uint64) uint64 { return k }}} {
		b.Run("through="+through.name, func(b *testing.B) {
			k := newKeys(Config[uint64]{Hash: through.fn})
			sum := uint64(0)
			for i := range b.N {
				sum += k.hash(uint64(i))
			}
			sink.Store(sum)
		})
	}
}

var sink atomic.Uint64

// BenchmarkTop reads a HeavyKeeper whose stripes have all seen their share.
func BenchmarkTop(b *testing.B) {
	for _, stream := range streams()[1:] {
		b.Run(fmt.Sprintf("stream=%s/K=1000/stripes=16", stream.name), func(b *testing.B) {
			h := must(New(Config[uint64]{K: 1000, Stripes: 16}))
			for i, key := range stream.keys {
				h.stripes.With(i%16, func(s *Sketch[uint64]) bool {
					s.Add(key)
					return true
				})
			}
			items := 0
			for b.Loop() {
				items += len(h.Top(0))
			}
			b.ReportMetric(float64(items)/float64(b.N), "items")
		})
	}
}

// BenchmarkAddTail reports the tail of single updates while another goroutine
// reads the top 1000 over and over, and without it.
func BenchmarkAddTail(b *testing.B) {
	keys := stream.Zipf(1, 1.2, 1<<20, streamMask+1)
	for _, reading := range []bool{false, true} {
		b.Run(fmt.Sprintf("reading=%v", reading), func(b *testing.B) {
			h := must(New(Config[uint64]{K: 1000, Stripes: 16}))
			for i := range keys {
				h.Add(keys[i])
			}
			stop := make(chan struct{})
			var wg sync.WaitGroup
			reads := 0
			if reading {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							h.Top(0)
							reads++
						}
					}
				})
			}
			took := make([]time.Duration, b.N)
			for i := range took {
				before := time.Now()
				h.Add(keys[i&streamMask])
				took[i] = time.Since(before)
			}
			close(stop)
			wg.Wait()
			slices.Sort(took)
			at := func(share float64) float64 { return float64(took[int(share*float64(len(took)-1))]) }
			b.ReportMetric(at(0.5), "p50-ns")
			b.ReportMetric(at(0.999), "p99.9-ns")
			b.ReportMetric(float64(reads), "reads")
		})
	}
}

// BenchmarkFalseSharing shows what the padding between stripes is for: two
// processors update a part each, of parts with and without it.
func BenchmarkFalseSharing(b *testing.B) {
	type bare struct {
		mu    sync.Mutex
		count uint64
	}
	type padded struct {
		_ [128]byte
		bare
		_ [128]byte
	}
	run := func(name string, part func(i int) *bare) {
		b.Run("parts="+name, func(b *testing.B) {
			var next atomic.Int32
			b.RunParallel(func(pb *testing.PB) {
				p := part(int(next.Add(1)-1) % 16)
				for pb.Next() {
					p.mu.Lock()
					p.count++
					p.mu.Unlock()
				}
			})
		})
	}
	var side [16]bare
	run("side-by-side", func(i int) *bare { return &side[i] })
	var apart [16]padded
	run("padded", func(i int) *bare { return &apart[i].bare })
}

func BenchmarkMerge(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	a, other := must(NewSketch(Config[uint64]{K: 100})), must(NewSketch(Config[uint64]{K: 100}))
	for range 1 << 18 {
		a.Add(uint64(skewed(r, 1<<16)))
		other.Add(uint64(skewed(r, 1<<16)))
	}
	for b.Loop() {
		if err := a.Merge(other); err != nil {
			b.Fatal(err)
		}
	}
}

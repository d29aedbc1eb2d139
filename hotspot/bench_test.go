package hotspot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/heavykeeper-go/heavykeeper/window"
)

const population = 100_000

// ranks returns n ranks, a power of two, from 0 on, of which the i-th most
// frequent comes with probability proportional to 1/(i+1).
func ranks(n int) []int {
	r := rand.New(rand.NewPCG(1, 2))
	cumulative, total := make([]float64, population), 0.0
	for i := range cumulative {
		total += 1 / float64(i+1)
		cumulative[i] = total
	}
	out := make([]int, n)
	for i := range out {
		out[i] = min(sort.SearchFloat64s(cumulative, r.Float64()*total), population-1)
	}
	return out
}

// client is a key of two strings.
type client struct{ address, path string }

func textKey(rank int) string   { return fmt.Sprintf("user:%08d:profile", rank) }
func numberKey(rank int) uint64 { return uint64(rank+1) * 0x9e3779b97f4a7c15 }
func clientKey(rank int) client {
	return client{fmt.Sprintf("10.0.%d.%d", rank>>8, rank&255), "/login"}
}

// keysFrom returns the keys of ranks.
func keysFrom[K comparable](ranks []int, key func(rank int) K) []K {
	all := make([]K, population)
	for i := range all {
		all[i] = key(i)
	}
	keys := make([]K, len(ranks))
	for i, rank := range ranks {
		keys[i] = all[rank]
	}
	return keys
}

// warm returns a detector of the 100 hottest of some keys.
func warm[K comparable](b testing.TB, keys []K, rules ...Rule) *Detector[K] {
	d := must(b, Config[K]{Share: 1e-9, Rules: rules, Slots: 10, Slot: time.Hour})
	for _, key := range keys {
		d.Observe(key)
	}
	if hot := d.Scan().Hot; len(hot) != 100 && len(rules) == 0 {
		b.Fatalf("got %d hot keys, want 100", len(hot))
	}
	return d
}

const events = 1 << 18

// BenchmarkHot looks up keys of which the 100 hottest, 42 % of traffic, are hot.
func BenchmarkHot(b *testing.B) {
	stream := ranks(events)
	b.Run("key=string", func(b *testing.B) { benchmarkHot(b, stream, textKey) })
	b.Run("key=uint64", func(b *testing.B) { benchmarkHot(b, stream, numberKey) })
	b.Run("key=struct", func(b *testing.B) { benchmarkHot(b, stream, clientKey) })
}

func benchmarkHot[K comparable](b *testing.B, stream []int, key func(int) K) {
	keys := keysFrom(stream, key)
	d := warm(b, keys)
	set := make(map[K]bool)
	for hot := range d.Set().All() {
		set[hot.Key] = true
	}
	var hottest, coldest []K
	for _, key := range keys[:1<<10] {
		if set[key] {
			hottest = append(hottest, key)
		} else {
			coldest = append(coldest, key)
		}
	}
	look := func(keys []K, hot func(K) bool) func(*testing.B) {
		return func(b *testing.B) {
			hits, i := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				if hot(keys[i]) {
					hits++
				}
				if i++; i == len(keys) {
					i = 0
				}
			}
			b.ReportMetric(float64(hits)/float64(b.N), "hot")
		}
	}
	b.Run("hot", look(hottest, d.Hot))
	b.Run("cold", look(coldest, d.Hot))
	b.Run("traffic", look(keys, d.Hot))
	b.Run("traffic/map", look(keys, func(key K) bool { return set[key] }))
}

// BenchmarkObserve counts and looks up, beside the window alone.
func BenchmarkObserve(b *testing.B) {
	stream := ranks(events)
	b.Run("key=string", func(b *testing.B) { benchmarkObserve(b, keysFrom(stream, textKey)) })
	b.Run("key=uint64", func(b *testing.B) { benchmarkObserve(b, keysFrom(stream, numberKey)) })
}

func benchmarkObserve[K comparable](b *testing.B, keys []K) {
	one := func(add func(K)) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				add(keys[i&(events-1)])
				i++
			}
		}
	}
	w, err := window.New(window.Config[K]{K: 200, Slot: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	d := warm(b, keys)
	now := time.Now()
	b.Run("add=window", one(w.Add))
	b.Run("add=observe", one(func(key K) { d.Observe(key) }))
	b.Run("add=observeAt", one(func(key K) { d.ObserveAt(now, key, 1) }))
	b.Run("add=observe/parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := rand.IntN(events); pb.Next(); i++ {
				d.Observe(keys[i&(events-1)])
			}
		})
	})
}

// BenchmarkRules has keys that rules by pattern are tried on: none of them is
// denied, and 42 % of traffic is hot.
func BenchmarkRules(b *testing.B) {
	keys := keysFrom(ranks(events), textKey)
	for _, test := range []struct {
		name  string
		rules []Rule
	}{
		{"none", nil},
		{"exact", []Rule{{Action: Deny, Pattern: "robots"}}},
		{"prefix", []Rule{{Action: Deny, Match: Prefix, Pattern: "robot"}}},
		{"glob", []Rule{{Action: Deny, Match: Glob, Pattern: "*:robot*:profile"}}},
		{"regexp", []Rule{{Action: Deny, Match: Regexp, Pattern: "^(robot|crawler)[0-9]+:"}}},
	} {
		d := warm(b, keys, test.rules...)
		b.Run("rule="+test.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				d.Hot(keys[i&(events-1)])
				i++
			}
		})
		// What a key that is seen for the first time takes.
		b.Run("rule="+test.name+"/new", func(b *testing.B) {
			b.ReportAllocs()
			rules := d.Set().rules
			i := 0
			for b.Loop() {
				rules.of(keys[i&(events-1)])
				i++
			}
		})
	}
}

// BenchmarkScan scans windows of a million events; each scan publishes TopN
// keys. It reports the memory of the default Source.
func BenchmarkScan(b *testing.B) {
	stream := ranks(1 << 20)
	for _, topN := range []int{10, 100, 1000} {
		d := must(b, Config[uint64]{TopN: topN, Share: 1e-9})
		for i, rank := range stream {
			at := start.Add(time.Duration(float64(i) / float64(len(stream)) * float64(30*time.Second)))
			d.ObserveAt(at, numberKey(rank), 1)
		}
		b.Run(fmt.Sprintf("TopN=%d", topN), func(b *testing.B) {
			b.ReportAllocs()
			hot := math.MaxInt
			for b.Loop() {
				hot = min(hot, len(d.ScanAt(start.Add(30*time.Second-1)).Hot))
			}
			b.ReportMetric(float64(hot), "hot")
			b.ReportMetric(float64(d.config.Source.(*window.HeavyKeeper[uint64]).Stats().Bytes), "source-bytes")
		})
	}
}

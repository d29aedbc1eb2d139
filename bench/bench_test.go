package bench

import (
	"fmt"
	"os"
	"testing"

	"github.com/heavykeeper-go/heavykeeper/bench/baseline"
	"github.com/heavykeeper-go/heavykeeper/bench/measure"
	"github.com/heavykeeper-go/heavykeeper/bench/stream"
)

// The reference streams.
const (
	seed   = 1
	events = 5_000_000
	keys   = 1_000_000
)

var skews = []float64{0.6, 0.8, 1.0, 1.2, 1.4}

// size is a number of keys to report and the memory to do it in.
type size struct{ k, bytes int }

var sizes = []size{{100, 24 << 10}, {1000, 96 << 10}}

// reference returns the size of the reference streams, less with -short.
func reference() (k, n int) {
	if testing.Short() {
		return keys / 10, events / 10
	}
	return keys, events
}

func BenchmarkZipf(b *testing.B) {
	keys, events := reference()
	for _, skew := range skews {
		b.Run(fmt.Sprintf("skew=%.1f", skew), func(b *testing.B) {
			compare(b, stream.Zipf(seed, skew, keys, events), baseline.HashUint64(seed))
		})
	}
}

// BenchmarkKeys counts the lines of the file that the variable KEYS names, or
// else the words of Newton's "Opticks".
func BenchmarkKeys(b *testing.B) {
	var keys []string
	var err error
	path := os.Getenv("KEYS")
	if path != "" {
		if keys, err = stream.Lines(stream.Find(path, "..")); err != nil {
			b.Fatal(err)
		}
	} else {
		// b.Log would print below the sub-benchmarks, and only with -v.
		fmt.Fprintln(os.Stderr, "KEYS is not set: counting the words of Newton's \"Opticks\". KEYS=file counts the lines of a file.")
		if keys, err = stream.Opticks(); err != nil {
			fmt.Fprintln(os.Stderr, "Going on without the text:", err)
			return
		}
	}
	if len(keys) == 0 {
		b.Fatalf("%s: no keys", path)
	}
	compare(b, keys, baseline.HashString(seed))
}

// compare runs all algorithms on a stream, in each of the sizes.
func compare[K comparable](b *testing.B, keys []K, hash func(K) uint64) {
	truth := measure.Count(keys, nil)
	for _, size := range sizes {
		for _, a := range []baseline.Algorithm[K]{
			{Name: "heavykeeper", New: baseline.Adapt(baseline.NewSketch[K])},
			{Name: "countmin", New: baseline.Adapt(baseline.NewCountMin[K])},
			{Name: "map", New: baseline.Adapt(baseline.NewExact[K])},
		} {
			config := baseline.Config[K]{Bytes: size.bytes, K: size.k, Hash: hash, Seed: seed}
			b.Run(fmt.Sprintf("K=%d/KB=%d/algorithm=%s", size.k, size.bytes>>10, a.Name), func(b *testing.B) {
				run(b, a, config, keys, truth)
			})
		}
	}
}

// run measures accuracy over the whole stream, outside the timer, and then the
// time of one update. Each pass over the stream starts from empty, so that the
// exact map pays for its growth, as it would in use.
func run[K comparable](b *testing.B, a baseline.Algorithm[K], config baseline.Config[K], keys []K, truth *measure.Truth[K]) {
	counter, err := a.New(config)
	if err != nil {
		b.Skip(err)
	}
	for _, key := range keys {
		counter.Add(key)
	}
	accuracy := truth.Of(counter.Top(config.K), config.K)
	size := counter.Bytes()

	counter, _ = a.New(config)
	i := 0
	for b.Loop() {
		if i == len(keys) {
			b.StopTimer()
			counter, _ = a.New(config)
			i = 0
			b.StartTimer()
		}
		counter.Add(keys[i])
		i++
	}
	b.ReportMetric(accuracy.Precision, "precision")
	b.ReportMetric(accuracy.ARE, "are")
	b.ReportMetric(float64(size), "bytes")
}

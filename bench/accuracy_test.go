package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heavykeeper-go/heavykeeper"
	"github.com/heavykeeper-go/heavykeeper/bench/baseline"
	"github.com/heavykeeper-go/heavykeeper/bench/measure"
	"github.com/heavykeeper-go/heavykeeper/bench/stream"
)

// shape is a sketch by the memory of its cells.
type shape struct{ k, cellBytes int }

const (
	rows      = 4
	cellBytes = 12
)

var shapes = []shape{{100, 16 << 10}, {1000, 96 << 10}}

func (s shape) String() string { return fmt.Sprintf("K=%d/cellsKB=%d", s.k, s.cellBytes>>10) }

// result is what a run over one stream gave.
type result struct {
	measure.Accuracy
	keys, violations, bytes int
}

// check counts a stream in a sketch of the given width and compares the
// bounds of every key with its true count. A width of 0 means as many cells as
// make the whole sketch take total bytes.
func check[K comparable](t *testing.T, keys []K, k, width, total int) result {
	t.Helper()
	var s *heavykeeper.Sketch[K]
	var err error
	if width > 0 {
		s, err = heavykeeper.NewSketch(heavykeeper.Config[K]{K: k, Rows: rows, Width: width, Seed: seed})
	} else {
		var whole baseline.Sketch[K]
		whole, err = baseline.NewSketch(baseline.Config[K]{Bytes: total, K: k, Seed: seed})
		s = whole.Sketch
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		s.Add(key)
	}
	truth := measure.Count(keys, nil)
	r := result{
		Accuracy: truth.Of(baseline.Sketch[K]{Sketch: s}.Top(k), k),
		keys:     len(truth.Counts),
		bytes:    s.Stats().Bytes,
	}
	for key, n := range truth.Counts {
		if e := s.Estimate(key); n < e.Lower || n > e.Upper {
			if r.violations++; r.violations <= 3 {
				t.Errorf("key %v: got %+v, want %d within the bounds", key, e, n)
			}
		}
	}
	t.Logf("precision %.3f, ARE %.5f, AAE %.1f; bounds of %d keys, %d violated; %d bytes in all",
		r.Precision, r.ARE, r.AAE, r.keys, r.violations, r.bytes)
	return r
}

// TestAccuracy holds the library to what it promises on skewed streams, and to
// its bounds on flat ones too.
func TestAccuracy(t *testing.T) {
	keys, events := reference()
	for _, skew := range skews {
		t.Run(fmt.Sprintf("skew=%.1f", skew), func(t *testing.T) {
			input := stream.Zipf(seed, skew, keys, events)
			for _, s := range shapes {
				t.Run(s.String(), func(t *testing.T) {
					r := check(t, input, s.k, s.cellBytes/(rows*cellBytes), 0)
					if skew < 0.8 {
						return
					}
					if r.Precision < 0.98 {
						t.Errorf("precision: got %.3f, want at least 0.98", r.Precision)
					}
					if r.ARE >= 0.01 {
						t.Errorf("average relative error: got %.4f, want less than 0.01", r.ARE)
					}
				})
			}
		})
	}
}

// TestTraces checks bounds and logs accuracy on the files of a folder.
func TestTraces(t *testing.T) {
	folder := os.Getenv("TRACES")
	if folder == "" {
		t.Skip("TRACES is not set: TRACES=folder measures its *.u32.gz and *.txt.gz")
	}
	paths, err := filepath.Glob(filepath.Join(stream.Find(folder, ".."), "*.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no *.gz: %v", folder, err)
	}
	for _, path := range paths {
		t.Run("file="+filepath.Base(path), func(t *testing.T) {
			switch {
			case strings.HasSuffix(path, ".u32.gz"):
				input, err := stream.Uint32s(path)
				if err != nil {
					t.Fatal(err)
				}
				checkTrace(t, input)
			case strings.HasSuffix(path, ".txt.gz"):
				input, err := stream.Words(path)
				if err != nil {
					t.Fatal(err)
				}
				checkTrace(t, input)
			default:
				t.Skip("neither .u32.gz nor .txt.gz")
			}
		})
	}
}

func checkTrace[K comparable](t *testing.T, input []K) {
	for _, s := range shapes {
		t.Run(s.String(), func(t *testing.T) {
			check(t, input, s.k, s.cellBytes/(rows*cellBytes), 0)
		})
		t.Run(fmt.Sprintf("K=%d/wholeKB=%d", s.k, s.cellBytes>>10), func(t *testing.T) {
			check(t, input, s.k, 0, s.cellBytes)
		})
	}
}

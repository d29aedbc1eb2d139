package stream

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func count(keys []uint64) map[uint64]int {
	counts := map[uint64]int{}
	for _, key := range keys {
		counts[key]++
	}
	return counts
}

// TestZipf compares the counts of the first ranks with their expectation, to
// within five standard deviations.
func TestZipf(t *testing.T) {
	const keys, events = 1000, 200_000
	for _, skew := range []float64{0, 0.6, 1, 1.4, 3} {
		counts := count(Zipf(1, skew, keys, events))
		sum := 0.0
		for i := range keys {
			sum += math.Pow(float64(i+1), -skew)
		}
		for i := range 20 {
			want := events * math.Pow(float64(i+1), -skew) / sum
			if got := float64(counts[Key(i)]); math.Abs(got-want) > 5*math.Sqrt(want)+1 {
				t.Errorf("skew %v, rank %d: got %v, want about %.1f", skew, i, got, want)
			}
		}
	}
}

func TestSameSeedSameStream(t *testing.T) {
	for name, make := range map[string]func(seed uint64) []uint64{
		"zipf":   func(seed uint64) []uint64 { return Zipf(seed, 1, 100, 1000) },
		"bursts": func(seed uint64) []uint64 { return Bursts(seed, 10, 100, 1000) },
		"drift":  func(seed uint64) []uint64 { return Drift(seed, 1, 10, 5, 100, 1000) },
		"mice":   func(seed uint64) []uint64 { return MiceThenElephant(seed, 0.1, 100, 1000) },
	} {
		a, b, c := make(1), make(1), make(2)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: got two streams of one seed", name)
		}
		if reflect.DeepEqual(a, c) {
			t.Errorf("%s: got one stream of two seeds", name)
		}
		if len(a) != 1000 {
			t.Errorf("%s: got %d events, want 1000", name, len(a))
		}
	}
}

func TestKeyIsInjective(t *testing.T) {
	seen := map[uint64]bool{}
	for i := range 1_000_000 {
		seen[Key(i)] = true
	}
	if len(seen) != 1_000_000 {
		t.Errorf("got %d keys of 1000000 ranks", len(seen))
	}
}

func TestDriftMovesTheTop(t *testing.T) {
	keys := Drift(1, 1.2, 10, 50, 1000, 100_000)
	for phase := range 10 {
		counts := count(keys[phase*10_000 : (phase+1)*10_000])
		top := Key(phase * 50)
		for key, n := range counts {
			if n > counts[top] {
				t.Errorf("phase %d: got key %d heavier than the one due", phase, key)
			}
		}
	}
}

func TestMiceThenElephant(t *testing.T) {
	keys := MiceThenElephant(1, 0.1, 100, 1000)
	for i, key := range keys {
		if (key == Key(100)) != (i >= 900) {
			t.Fatalf("event %d: got key %d, want the elephant from 900 on", i, key)
		}
	}
}

func TestWeights(t *testing.T) {
	weights := Weights(1, 20, 100_000)
	sum := 0.0
	for _, w := range weights {
		sum += float64(w)
		if w == 0 {
			t.Fatal("got weight 0")
		}
	}
	if mean := sum / float64(len(weights)); math.Abs(mean-20) > 0.3 {
		t.Errorf("got mean %v, want 20", mean)
	}
}

// write makes a file, packed if its name says so, and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	data := []byte(content)
	if filepath.Ext(name) == ".gz" {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(data)
		z.Close()
		data = packed.Bytes()
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLines(t *testing.T) {
	for _, name := range []string{"keys", "keys.gz"} {
		got, err := Lines(write(t, name, "a b\n\nc\r\na b\n\xff"))
		if want := []string{"a b", "c", "a b", "\xff"}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestWords(t *testing.T) {
	got, err := Words(write(t, "text", "The cat, (the) -- \"CAT\"!"))
	if want := []string{"the", "cat", "the", "cat"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestUint32s(t *testing.T) {
	got, err := Uint32s(write(t, "keys.gz", "\x01\x00\x00\x00\x00\x00\x00\x80"))
	if want := []uint64{1, 1 << 31}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := Uint32s(write(t, "keys", "abc")); err == nil {
		t.Error("got no error of a file of 3 bytes")
	}
}

func TestMissingFile(t *testing.T) {
	if _, err := Lines(filepath.Join(t.TempDir(), "no such")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
}

func TestNotGzip(t *testing.T) {
	path := write(t, "keys", "plain")
	if err := os.Rename(path, path+".gz"); err != nil {
		t.Fatal(err)
	}
	if _, err := Lines(path + ".gz"); err == nil {
		t.Error("got no error of a plain file named .gz")
	}
}

func TestNumber(t *testing.T) {
	got := Number([]string{"a", "b", "a"})
	if got[0] != got[2] || got[0] == got[1] {
		t.Errorf("got %v, want the first and the last alike", got)
	}
}

func TestFind(t *testing.T) {
	path := write(t, "keys", "a")
	base, name := filepath.Split(path)
	for _, test := range [][3]string{
		{path, "elsewhere", path},
		{name, base, path},
		{filepath.Join(base, "none"), "elsewhere", filepath.Join(base, "none")},
	} {
		if got := Find(test[0], test[1]); got != test[2] {
			t.Errorf("Find(%q, %q): got %q, want %q", test[0], test[1], got, test[2])
		}
	}
}

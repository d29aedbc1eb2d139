package baseline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heavykeeper-go/heavykeeper/bench/measure"
	"github.com/heavykeeper-go/heavykeeper/bench/stream"
)

const bytes = 4 << 10

func config() Config[uint64] {
	return Config[uint64]{Bytes: bytes, K: 50, Hash: HashUint64(1), Seed: 1}
}

// input is a stream of keys and weights that is far too large for the budget.
type input struct {
	name    string
	keys    []uint64
	weights []uint32
	truth   *measure.Truth[uint64]
}

func inputs() []input {
	random := rand.New(rand.NewPCG(1, 1))
	var all []input
	for _, skew := range []float64{0, 0.8, 1.2} {
		keys := stream.Zipf(1, skew, 10_000, 100_000)
		weights := make([]uint32, len(keys))
		for i := range weights {
			weights[i] = 1 + random.Uint32N(40)
		}
		all = append(all,
			input{fmt.Sprintf("skew=%.1f/weights=1", skew), keys, nil, measure.Count(keys, nil)},
			input{fmt.Sprintf("skew=%.1f/weights=40", skew), keys, weights, measure.Count(keys, weights)})
	}
	return all
}

func (in input) feed(c Counter[uint64]) {
	for i, key := range in.keys {
		if in.weights == nil {
			c.Add(key)
		} else {
			c.AddN(key, in.weights[i])
		}
	}
}

// run counts each input with a new counter and calls check after each.
func run[C Counter[uint64]](t *testing.T, build func(Config[uint64]) (C, error), check func(t *testing.T, c C, in input)) {
	t.Helper()
	for _, in := range inputs() {
		t.Run(in.name, func(t *testing.T) {
			c, err := build(config())
			if err != nil {
				t.Fatal(err)
			}
			in.feed(c)
			check(t, c, in)
		})
	}
}

// TestBudget checks bytes when all is full.
func TestBudget(t *testing.T) {
	keys := stream.Zipf(1, 0.5, 5000, 20_000)
	for _, a := range All[uint64]() {
		for size := 0; size < 3000; size += 7 {
			c := config()
			c.Bytes = size
			c.K = 10
			counter, err := a.New(c)
			if err != nil {
				if size > 1500 {
					t.Errorf("%s: Bytes = %d: got error %v, want none", a.Name, size, err)
				}
				continue
			}
			if size%10 == 0 {
				for _, key := range keys {
					counter.Add(key)
				}
			}
			got := counter.Bytes()
			if size%10 == 0 && got < size-80 || got > size {
				t.Errorf("%s: got %d bytes, want %d at most, less 80 at least", a.Name, got, size)
			}
		}
	}
}

// TestBudgetOfStrings checks that the size of a key is counted, its text apart.
func TestBudgetOfStrings(t *testing.T) {
	const size = 1 << 14
	for _, a := range All[string]() {
		c, err := a.New(Config[string]{Bytes: size, K: 100, Hash: HashString(1), Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10_000 {
			c.Add(fmt.Sprintf("%08d", i))
		}
		text := 0
		if s, ok := c.(Sketch[string]); ok {
			text = 8 * s.Stats().Tracked
		}
		if got := c.Bytes() - text; got > size || got < size-100 {
			t.Errorf("%s: got %d bytes, want %d at most, less 100 at least", a.Name, got, size)
		}
	}
}

// TestExactWhileSmall wants every algorithm right when there is room for all
// keys of the stream.
func TestExactWhileSmall(t *testing.T) {
	for _, a := range append(All[uint64](), Algorithm[uint64]{"map", Adapt(NewExact[uint64])}) {
		c, err := a.New(Config[uint64]{Bytes: 1 << 16, K: 50, Hash: HashUint64(1), Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(50) {
			c.AddN(i, uint32(i))
			c.Add(i)
		}
		top := c.Top(10)
		if len(top) != 10 {
			t.Fatalf("%s: got %d items, want 10", a.Name, len(top))
		}
		for i, item := range top {
			if want := uint64(49 - i); item.Key != want || item.Count != want+1 {
				t.Errorf("%s: got item %d = %v, want key %d of count %d", a.Name, i, item, want, want+1)
			}
		}
	}
}

// TestAnswersAreOfTheStream wants unique keys, in order, for every algorithm.
func TestAnswersAreOfTheStream(t *testing.T) {
	for _, a := range All[uint64]() {
		for _, in := range inputs() {
			c, err := a.New(config())
			if err != nil {
				t.Fatal(err)
			}
			in.feed(c)
			seen, last := map[uint64]bool{}, uint64(math.MaxUint64)
			for _, item := range c.Top(50) {
				if seen[item.Key] || item.Count > last || in.truth.Counts[item.Key] == 0 {
					t.Errorf("%s, %s: item %v: listed before, out of order or not of the stream", a.Name, in.name, item)
				}
				seen[item.Key], last = true, item.Count
			}
		}
	}
}

func TestCountMinGuarantee(t *testing.T) {
	for _, build := range []func(Config[uint64]) (*CountMin[uint64], error){NewCountMin[uint64], NewConservative[uint64]} {
		run(t, build, func(t *testing.T, m *CountMin[uint64], in input) {
			most := math.E / float64(m.width) * float64(in.truth.Total)
			over := 0
			for key, n := range in.truth.Counts {
				got := m.Estimate(key)
				if got < n {
					t.Fatalf("key %d: got %d, want at least %d", key, got, n)
				}
				if float64(got-n) > most {
					over++
				}
			}
			if allowed := math.Exp(-sketchRows) * float64(len(in.truth.Counts)); float64(over) > allowed {
				t.Errorf("got %d keys more than %.0f above the truth, want at most %.0f", over, most, allowed)
			}
		})
	}
}

func TestConservativeIsNoWorse(t *testing.T) {
	for _, in := range inputs() {
		plain, _ := NewCountMin(config())
		conservative, _ := NewConservative(config())
		in.feed(plain)
		in.feed(conservative)
		for key := range in.truth.Counts {
			if p, c := plain.Estimate(key), conservative.Estimate(key); c > p {
				t.Fatalf("%s, key %d: got %d, want at most %d", in.name, key, c, p)
			}
		}
	}
}

func TestSpaceSavingGuarantee(t *testing.T) {
	run(t, NewSpaceSaving[uint64], func(t *testing.T, s *SpaceSaving[uint64], in input) {
		most := in.truth.Total / uint64(len(s.counters))
		sum := uint64(0)
		for key, n := range in.truth.Counts {
			lower, upper := s.bounds(key)
			if n < lower || n > upper {
				t.Fatalf("key %d: got %d to %d, want %d within", key, lower, upper, n)
			}
			if n > most && lower == 0 {
				t.Errorf("key %d of weight %d: not counted, want all above %d", key, n, most)
			}
			if upper-lower > most {
				t.Errorf("key %d: got an error of %d, want at most %d", key, upper-lower, most)
			}
		}
		for _, item := range s.Top(len(s.counters)) {
			sum += item.Count
		}
		for g := s.groups[0].more; g != 0; g = s.groups[g].more {
			if less := s.groups[g].less; s.groups[g].count <= s.groups[less].count {
				t.Fatalf("got a group of %d after one of %d, want ascending", s.groups[g].count, s.groups[less].count)
			}
		}
		if sum != in.truth.Total {
			t.Errorf("sum of the counters: got %d, want the weight of the stream, %d", sum, in.truth.Total)
		}
	})
}

func TestMisraGriesGuarantee(t *testing.T) {
	run(t, NewMisraGries[uint64], func(t *testing.T, m *MisraGries[uint64], in input) {
		got, sum := map[uint64]uint64{}, uint64(0)
		for _, item := range m.Top(len(m.counts)) {
			got[item.Key] = item.Count
			sum += item.Count
		}
		// What is not in the counters was taken off one more than there are.
		most := (in.truth.Total - sum) / uint64(len(m.counts)+1)
		for key, n := range in.truth.Counts {
			if got[key] > n || n-got[key] > most {
				t.Fatalf("key %d: got %d, want at most %d below %d", key, got[key], most, n)
			}
		}
	})
}

func TestLossyCountingGuarantee(t *testing.T) {
	run(t, NewLossyCounting[uint64], func(t *testing.T, l *LossyCounting[uint64], in input) {
		for key, n := range in.truth.Counts {
			if lower, upper := l.bounds(key); n < lower || n > upper {
				t.Fatalf("key %d: got %d to %d, want %d within", key, lower, upper, n)
			}
		}
	})
}

// TestHeavyKeeperGuarantee allows for keys that share cell and fingerprint: a
// chance of 2 x 10,000 / width / 2^16 for each of a hundred thousand updates'
// keys, so a handful of the fifty.
func TestHeavyKeeperGuarantee(t *testing.T) {
	for _, build := range []func(Config[uint64]) (*HeavyKeeper[uint64], error){NewParallel[uint64], NewMinimum[uint64]} {
		run(t, build, func(t *testing.T, k *HeavyKeeper[uint64], in input) {
			over := 0
			for _, item := range k.Top(50) {
				if item.Count > in.truth.Counts[item.Key] {
					over++
				}
			}
			if over > 2 {
				t.Errorf("got %d overestimates, want none but for collisions", over)
			}
			if in.name == "skew=1.2/weights=1" {
				if a := in.truth.Of(k.Top(50), 50); a.Precision < 0.9 || a.ARE > 0.1 {
					t.Errorf("got %+v, want precision 0.9 and error 0.1 as in the paper's figures", a)
				}
			}
		})
	}
}

func TestStableSketchGuarantee(t *testing.T) {
	run(t, NewStableSketch[uint64], func(t *testing.T, s *StableSketch[uint64], in input) {
		for _, item := range s.Top(len(s.cells)) {
			if n := in.truth.Counts[item.Key]; item.Count > n {
				t.Fatalf("key %d: got %d, want at most %d", item.Key, item.Count, n)
			}
		}
	})
}

// TestDecay measures how often a key takes one off a count of 10 in another's
// cell, to within five standard deviations.
func TestDecay(t *testing.T) {
	const trials, count = 100_000, 10
	check := func(name string, hits int, p float64) {
		if want := trials * p; math.Abs(float64(hits)-want) > 5*math.Sqrt(want*(1-p)) {
			t.Errorf("%s: got %d removals of %d, want about %.0f", name, hits, trials, want)
		}
	}
	stable, err := NewStableSketch(Config[uint64]{Bytes: 16 * sketchRows, Hash: HashUint64(1), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	hits := 0
	for range trials {
		for i := range stable.cells {
			stable.cells[i] = stableCell[uint64]{uint64(i), count, 5}
		}
		stable.Add(99)
		for _, c := range stable.cells {
			hits += int(count - c.count)
		}
	}
	check("Stable-Sketch", hits, 1.0/(count*5+1))

	for _, minimum := range []bool{false, true} {
		k, err := NewParallel(Config[uint64]{Bytes: 64, K: 1, Hash: HashUint64(1), Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		k.minimum = minimum
		hits, contested := 0, paperRows
		if minimum {
			contested = 1
		}
		for range trials / contested {
			for i := range k.counts {
				k.fingerprints[i], k.counts[i] = 0, count
			}
			k.Add(99)
			for _, c := range k.counts {
				hits += int(count - c)
			}
		}
		check(fmt.Sprintf("HeavyKeeper, minimum %v", minimum), hits, math.Pow(paperBase, -count))
	}
}

// TestIndex compares with a map through random puts and drops.
func TestIndex(t *testing.T) {
	const n = 64
	random := rand.New(rand.NewPCG(1, 2))
	// A poor hash, so that runs are long and wrap.
	x := newIndex(n, func(key uint64) uint64 { return key % 7 << 60 })
	model := map[uint64]int{}
	slots := map[int]bool{}
	for range 100_000 {
		key := random.Uint64N(200)
		h := x.hash(key)
		want, known := model[key]
		if !known {
			want = -1
		}
		if got := x.find(key, h); got != want {
			t.Fatalf("key %d: got slot %d, want %d", key, got, want)
		}
		if known && random.Uint32N(2) == 0 {
			x.drop(want)
			delete(model, key)
			delete(slots, want)
		} else if slot := random.IntN(n); !known && !slots[slot] {
			x.put(slot, key, h)
			model[key], slots[slot] = slot, true
		}
	}
}

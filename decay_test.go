package heavykeeper

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireBinomial requires that hits of trials is what a probability of p gives,
// to within five standard deviations. Seeds are fixed, so it is no matter of luck.
func requireBinomial(t require.TestingT, p float64, hits, trials int, what string) {
	want := p * float64(trials)
	off := 5*math.Sqrt(want*(1-p)) + 1
	require.InDelta(t, want, hits, off, "%s: %d of %d, p = %v", what, hits, trials, p)
}

// requireDistributed requires that observed is distributed as expected, by a
// chi-square test at about one in a million.
func requireDistributed(t require.TestingT, expected []float64, observed []int, what string) {
	total, weight := 0, 0.0
	for i := range expected {
		total += observed[i]
		weight += expected[i]
	}
	chi, degrees := 0.0, -1
	pooledWant, pooledGot := 0.0, 0.0
	for i, p := range expected {
		pooledWant += p / weight * float64(total)
		pooledGot += float64(observed[i])
		rest := 0.0
		for _, q := range expected[i+1:] {
			rest += q
		}
		// Outcomes that are rare by themselves are tested together.
		if pooledWant < 10 || rest/weight*float64(total) < 10 && i < len(expected)-1 {
			continue
		}
		chi += (pooledGot - pooledWant) * (pooledGot - pooledWant) / pooledWant
		degrees++
		pooledWant, pooledGot = 0, 0
	}
	if degrees < 1 {
		require.Positive(t, total, what)
		return
	}
	// Wilson and Hilferty's normal approximation.
	d := float64(degrees)
	z := (math.Cbrt(chi/d) - (1 - 2/(9*d))) / math.Sqrt(2/(9*d))
	require.Less(t, z, 4.75, "%s: chi-square %v at %d degrees, got %v", what, chi, degrees, observed)
}

// counts are those at which other libraries' decay has gone wrong.
var decayCounts = []uint64{1, 2, 3, 20, 100, 254, 255, 256, 257, 258, 511, 512, 513, 1 << 16, 1<<32 - 2, 1<<32 - 1}

func TestRemovalRate(t *testing.T) {
	trials := 50000
	if testing.Short() {
		trials = 10000
	}
	for _, base := range []float64{1.001, 1.01, 1.08, 2} {
		d := newDecay(base)
		g := newGenerator(1)
		for _, c := range decayCounts {
			p := math.Pow(base, -float64(c))
			removed := 0
			for range trials {
				rest, _ := d.contest(c, 1, &g)
				removed += int(c - rest)
			}
			requireBinomial(t, p, removed, trials, fmt.Sprintf("base %v, count %d", base, c))
		}
	}
}

// threshold returns the number of r for which an occurrence removes one from c.
func threshold(d *decay, c uint64) uint64 {
	low, high := uint64(0), uint64(math.MaxUint64)
	for low < high {
		middle := low + (high-low)/2
		if d.hit(c, middle) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// What no number of trials can measure: the probabilities themselves, to the
// table's end and past it.
func TestRemovalThreshold(t *testing.T) {
	for _, base := range []float64{minBase, 1.01, 1.08, 1.5, 2, 1e9, math.MaxFloat64} {
		d := newDecay(base)
		power, last := new(big.Float).SetPrec(200).SetInt64(1), uint64(0)
		before := uint64(math.MaxUint64)
		for c := uint64(1); c <= 2000; c++ {
			power.Quo(power, big.NewFloat(base).SetPrec(200))
			scaled := new(big.Float).SetMantExp(power, 64)
			want, _ := scaled.Float64()
			got := threshold(&d, c)
			require.LessOrEqual(t, got, before, "base %v: more at count %d than before", base, c)
			require.InDelta(t, want, float64(got), want*1e-12+1, "base %v, count %d", base, c)
			before, last = got, c
		}
		for _, c := range []uint64{1 << 16, 1<<32 - 1, 1 << 32, 1 << 63, math.MaxUint64} {
			require.Greater(t, c, last)
			require.LessOrEqual(t, threshold(&d, c), before, "base %v, count %d", base, c)
		}
		require.LessOrEqual(t, threshold(&d, 1<<32-1), uint64(1))
		require.Equal(t, uint64(math.MaxUint64), threshold(&d, 0), "an empty cell resists")
	}
}

// outcomes returns the exact distribution of contest's results: at i < c the
// probability that the rest is i+1, and after those that remain is 1..n.
func outcomes(base float64, c, n int) []float64 {
	rest := make([]float64, c+1)
	rest[c] = 1
	remain := make([]float64, n)
	for step := range n {
		for k := 1; k <= c; k++ {
			moved := rest[k] * math.Pow(base, -float64(k))
			rest[k] -= moved
			if k == 1 {
				remain[n-step-1] += moved
			} else {
				rest[k-1] += moved
			}
		}
	}
	return append(rest[1:], remain...)
}

func TestContestIsUnitSteps(t *testing.T) {
	trials := 20000
	if testing.Short() {
		trials = 5000
	}
	tests := []struct {
		base float64
		c, n int
	}{
		{1.08, 1, 1}, {1.08, 1, 2}, {1.08, 1, 7}, {1.08, 2, 2}, {1.08, 2, 5}, {1.08, 10, 30}, {1.08, 30, 100},
		{1.08, 60, 1500}, {1.001, 1, 3}, {1.001, 5, 5}, {1.001, 20, 40}, {1.001, 300, 350},
		{2, 1, 1}, {2, 1, 4}, {2, 2, 2}, {2, 3, 20}, {2, 8, 600},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("base=%v/c=%d/n=%d", test.base, test.c, test.n), func(t *testing.T) {
			d, g := newDecay(test.base), newGenerator(2)
			want := outcomes(test.base, test.c, test.n)
			got := make([]int, len(want))
			for range trials {
				rest, remain := d.contest(uint64(test.c), uint32(test.n), &g)
				tally(t, got, test.c, rest, remain)
			}
			requireDistributed(t, want, got, "one draw a removal")

			steps := make([]int, len(want))
			for range max(1, trials/test.n) {
				rest, remain := uint64(test.c), uint32(0)
				for left := uint32(test.n); left > 0 && rest > 0; left-- {
					if rest, remain = d.contest(rest, 1, &g); rest == 0 {
						remain = left
					}
				}
				tally(t, steps, test.c, rest, remain)
			}
			requireDistributed(t, want, steps, "unit steps")
		})
	}
}

func tally(t require.TestingT, into []int, c int, rest uint64, remain uint32) {
	if (rest > 0) == (remain > 0) {
		require.Failf(t, "contest", "rest %d and %d remain", rest, remain)
	}
	if rest > 0 {
		into[rest-1]++
	} else {
		into[c+int(remain)-1]++
	}
}

func TestContestWithEmptyCell(t *testing.T) {
	d, g := newDecay(1.08), newGenerator(3)
	for _, n := range []uint32{1, 2, 1 << 20, math.MaxUint32} {
		before := g
		rest, remain := d.contest(0, n, &g)
		require.Zero(t, rest)
		require.Equal(t, n, remain)
		require.Equal(t, before, g, "a draw for nothing")
	}
}

// draws returns how many numbers bring a generator from one state to another.
func draws(t require.TestingT, from, to generator) int {
	for i := range 1 << 20 {
		if from == to {
			return i
		}
		from.next()
	}
	require.Fail(t, "too many draws")
	return 0
}

func TestWeightCostsFewDraws(t *testing.T) {
	for _, base := range []float64{1.001, 1.08, 2, 1e9} {
		d := newDecay(base)
		for _, n := range []uint32{2, 1000, 1 << 20, math.MaxUint32} {
			// A count c falls to n occurrences where the sum of b^i up to c is
			// about n; luck may add to that.
			most := math.Log(float64(n)*(base-1)+1)/math.Log(base)*1.2 + 20
			for _, c := range decayCounts {
				g := newGenerator(c)
				before := g
				d.contest(c, n, &g)
				require.LessOrEqual(t, float64(draws(t, before, g)), most, "base %v, n %d, count %d", base, n, c)
			}
		}
	}
}

// One number decides, and as decay.hit would: the same law as contest's. A
// count of c occurrences and a bit is contested as one of c+1.
func TestChallengeIsContest(t *testing.T) {
	const owner, other, err = 0xaaaa, 0xbbbb, 1 << 20
	counts := append([]uint64{0, 4, 5, 7, 10, 50, 150}, decayCounts...)
	for _, base := range []float64{1.001, 1.08, 2} {
		s := must(NewSketch(Config[int]{K: 1, Base: base}))
		for _, c := range counts {
			hits := 0
			const trials = 3000
			for trial := range uint32(trials) {
				w := []uint32{1, 2, 256, 65535}[trial%4]
				if c*uint64(w) > math.MaxInt32 {
					w = 1
				}
				count := uint32(c) * w
				if count > 0 {
					count -= trial / 4 % w
				}
				before := s.random
				r := before.next()
				got := cell{owner, count, err}
				credit := s.challenge(&got, other, w)
				want, wantCredit := cell{owner, count, err}, uint32(0)
				if c == 0 {
					want, wantCredit = cell{other, w, err - w}, w
				} else if s.decay.hit(c, r) {
					hits++
					removed := min(w, count)
					want = cell{owner, count - removed, err + removed}
					if c == 1 {
						want, wantCredit = cell{other, w, err + removed - w}, w
					}
				}
				if got != want || credit != uint64(wantCredit) || s.random != before {
					require.Failf(t, "challenge", "base %v, count %d, weight %d: got %v and credit %d, want %v and %d, one draw",
						base, count, w, got, credit, want, wantCredit)
				}
			}
			if c > 0 {
				requireBinomial(t, math.Pow(base, -float64(c)), hits, trials, fmt.Sprintf("base %v, count %d", base, c))
			}
		}
	}
}

// An untracked key really meets the owner of a cell, and wears it down at the
// rate that the paper gives.
func TestRemovalRateInSketch(t *testing.T) {
	const trials = 10000
	for _, alpha := range []float64{0, 0.01} {
		s := must(NewSketch(Config[int]{K: 1, Rows: 1, Width: 1, Base: 1.01, Alpha: alpha}))
		s.AddN(1, math.MaxUint32>>16)
		s.AddN(2, math.MaxUint32>>16)
		require.True(t, s.tracked.full())
		for _, c := range []uint32{1, 2, 20, 100, 254, 255, 256, 257, 512} {
			removed, unit := 0, uint32(s.fading.unit)
			for range trials {
				s.rows.cells[0] = cell{1, c * unit, 0}
				s.Add(3)
				got := s.rows.cells[0]
				if got.count+got.err != c*unit+unit {
					require.Failf(t, "main", "got %d, want %d", got.count+got.err, c*unit+unit)
				}
				if got.count != c*unit || got.fingerprint != 1 {
					removed++
				}
			}
			requireBinomial(t, math.Pow(1.01, -float64(c)), removed, trials, fmt.Sprintf("alpha %v, count %d", alpha, c))
		}
	}
}

func TestGenerator(t *testing.T) {
	// Of xorshift64* from the state 1, as other implementations have it.
	one := generator(1)
	for i, want := range []uint64{5180492295206395165, 12380297144915551517, 13389498078930870103} {
		require.Equal(t, want, one.next(), "number %d", i)
	}
	seen := map[uint64]uint64{}
	for _, seed := range []uint64{0, 1, 2, 3, 1 << 32, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
		g := newGenerator(seed)
		require.NotZero(t, g, "seed %d: for ever 0", seed)
		first := g.next()
		require.NotContains(t, seen, first, "seeds %d and %d", seed, seen[first])
		seen[first] = seed

		const bins, trials = 64, 20000
		high, low, floats := make([]int, bins), make([]int, bins), make([]int, bins)
		for range trials {
			r := g.next()
			high[r>>58]++
			low[r%bins]++
			u := g.uniform()
			if u <= 0 || u > 1 {
				require.Failf(t, "uniform", "got %v, want one in (0, 1]", u)
			}
			floats[int(math.Ceil(u*bins))-1]++
		}
		for what, got := range map[string][]int{"high bits": high, "low bits": low, "uniform": floats} {
			requireDistributed(t, even(bins), got, fmt.Sprintf("seed %d, %s", seed, what))
		}
	}
}

// even returns the even distribution over n outcomes.
func even(n int) []float64 {
	p := make([]float64, n)
	for i := range p {
		p[i] = 1 / float64(n)
	}
	return p
}

var alphas = []float64{1e-9, 1e-6, 1e-4, 0.001, 0.0073, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999, 1 - 1e-9, 1 - 1e-12, 1 - 1e-16}

func TestFadingUnit(t *testing.T) {
	for _, alpha := range alphas {
		s := must(NewSketch(Config[int]{K: 1, Width: 1, Alpha: alpha}))
		require.Equal(t, uint64(firstUnit), s.fading.unit)
		for i := range 20000 {
			s.Fade()
			if u := s.fading.unit; u < firstUnit || u >= limitUnit {
				require.Failf(t, "unit", "alpha %v, fade %d: got %d", alpha, i, u)
			}
		}
	}
	s := must(NewSketch(Config[int]{K: 1, Width: 1}))
	s.Fade()
	require.Equal(t, uint64(1), s.fading.unit)
}

// After t fades an occurrence counts (1-Alpha)^t, whenever it came, but for the
// rounding of the unit that it came with, of today's, and of each between that
// the unit was set back to.
func TestFadedWeight(t *testing.T) {
	for _, alpha := range alphas {
		s := must(NewSketch(Config[int]{K: 100, Width: 1, Alpha: alpha}))
		const n, keys = math.MaxUint32, 50
		var fades, setBacks [keys]float64
		for i := range 300 {
			if key := i / 3; i%3 == 0 && key < keys {
				s.AddN(key, n)
			}
			unit := s.fading.unit
			for key := range min(i/3+1, keys) {
				want := n * math.Pow(1-alpha, fades[key])
				got := s.interval(key, s.keys.hash(key))
				off := want*(setBacks[key]+2)/512*1.01 + 1
				require.InDelta(t, want, math.Ldexp(float64(got.lower), -fractionBits), off, "alpha %v, key %d, %v fades", alpha, key, fades[key])
				require.InDelta(t, want, math.Ldexp(float64(got.upper), -fractionBits), off, "alpha %v, key %d, %v fades", alpha, key, fades[key])
			}
			s.Fade()
			for key := range min(i/3+1, keys) {
				fades[key]++
				if s.fading.unit < unit || alpha > 0.996 {
					setBacks[key]++
				}
			}
		}
	}
}

func TestHalfLife(t *testing.T) {
	for _, alpha := range []float64{0.001, 0.01, 0.05} {
		s := must(NewSketch(Config[int]{K: 1, Alpha: alpha}))
		const n = 1 << 30
		s.AddN(1, n)
		for range int(math.Round(math.Ln2 / alpha)) {
			s.Fade()
		}
		require.InEpsilon(t, n/2, s.Estimate(1).Count, 0.025, "alpha %v", alpha)
	}
}

func TestFullyFaded(t *testing.T) {
	for _, alpha := range []float64{0.05, 0.5, 0.99, 1 - 1e-16} {
		s := must(NewSketch(Config[int]{K: 3, Width: 4, Alpha: alpha}))
		m := newModel[int]()
		for i := range 500 {
			m.add(i%20, uint32(i))
			s.AddN(i%20, uint32(i))
		}
		for range int(40/alpha) + 1 {
			m.fade(s)
			s.Fade()
			m.checkBounds(t, s)
		}
		require.Empty(t, s.Top(0), "alpha %v", alpha)
		checkShape(t, s)
		require.Zero(t, s.Stats().Weight)
		require.Zero(t, s.Stats().TrackedWeight)
		for key := range 20 {
			e := s.Estimate(key)
			require.Zero(t, e.Count, "alpha %v, key %d", alpha, key)
			require.LessOrEqual(t, e.Upper, uint64(1), "alpha %v, key %d", alpha, key)
		}
		s.AddN(99, 5)
		require.Equal(t, []Item[int]{{99, s.Estimate(99)}}, s.Top(0))
		require.Equal(t, uint64(5), s.Estimate(99).Count)
	}
}

func TestEstimateRounds(t *testing.T) {
	const one, max = 1 << fractionBits, math.MaxUint64
	tests := []struct {
		lower, upper uint64
		alpha        float64
		want         Estimate
	}{
		{0, 0, 0.1, Estimate{0, 0, 0}},
		{1, 1, 0.1, Estimate{0, 0, 1}},
		{one/2 - 1, one, 0.1, Estimate{0, 0, 1}},
		{one / 2, one, 0.1, Estimate{1, 0, 1}},
		{one, one + 1, 0.1, Estimate{1, 1, 2}},
		{3*one - 1, 3 * one, 0.1, Estimate{3, 2, 3}},
		{5 * one, max, 0.1, Estimate{5, 5, max}},
		{max, max, 0.1, Estimate{1 << 48, 1<<48 - 1, max}},
		{0, max - 1, 0.1, Estimate{0, 0, 1 << 48}},
		{7, 9, 0, Estimate{7, 7, 9}},
		{7, max, 0, Estimate{7, 7, max}},
	}
	for _, test := range tests {
		require.Equal(t, test.want, interval{test.lower, test.upper}.estimate(test.alpha), "%+v", test)
	}
}

func TestIntervalHoldsTheQuotient(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	f := fading{alpha: 0.5}
	for range 5000 {
		f.unit = 1 + r.Uint64()>>(48+r.IntN(16))
		x := r.Uint64() >> r.IntN(64)
		got := f.interval(x, x)
		floor, rest := new(big.Int).DivMod(new(big.Int).Lsh(new(big.Int).SetUint64(x), fractionBits), new(big.Int).SetUint64(f.unit), new(big.Int))
		if !floor.IsUint64() {
			require.Equal(t, interval{math.MaxUint64, math.MaxUint64}, got)
			continue
		}
		want := interval{floor.Uint64(), floor.Uint64()}
		if rest.Sign() > 0 {
			want.upper++
		}
		require.Equal(t, want, got, "%d / %d", x, f.unit)
	}
	require.Equal(t, uint64(math.MaxUint64), f.interval(5, math.MaxUint64).upper, "unbounded stays so")
}

func TestArithmetic(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	number := func() uint64 { return r.Uint64()>>r.IntN(64) - uint64(r.IntN(2)) }
	capped := func(x *big.Int) uint64 {
		if !x.IsUint64() {
			return math.MaxUint64
		}
		return x.Uint64()
	}
	for range 10000 {
		x, y, z := number(), number(), max(number(), 1)
		bx, by, bz := new(big.Int).SetUint64(x), new(big.Int).SetUint64(y), new(big.Int).SetUint64(z)
		product := new(big.Int).Mul(bx, by)
		quotient, rest := new(big.Int).DivMod(product, bz, new(big.Int))
		q, remainder := mulDiv(x, y, z)
		require.Equal(t, capped(quotient), q, "%d * %d / %d", x, y, z)
		if quotient.IsUint64() {
			require.Equal(t, rest.Uint64(), remainder, "%d * %d %% %d", x, y, z)
		}
		require.Equal(t, capped(product), mulSaturated(x, y), "%d * %d", x, y)
		require.Equal(t, capped(new(big.Int).Add(bx, by)), addSaturated(x, y), "%d + %d", x, y)
		if y <= z {
			down, up := ratio{y, z}.down(x), ratio{y, z}.up(x)
			require.Equal(t, quotient.Uint64(), down)
			want := quotient.Uint64()
			if rest.Sign() > 0 {
				want++
			}
			require.Equal(t, want, up)
		}
	}
}

// What a weight takes off a count is what decay.contest says of it, in quanta.
func TestContestInQuanta(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 1, Rows: 1, Width: 1}))
	for _, quantum := range []uint64{1, 10} {
		for _, count := range []uint32{1, 9, 10, 11, 20, 21, 150, 500} {
			for range 200 {
				s.quantum = quantum
				c := cell{count: count}
				n := uint32(20 * quantum) // whole quanta
				before := (uint64(count) + quantum - 1) / quantum
				random := s.random
				after, left := s.decay.contest(before, n/uint32(quantum), &random)
				remain := s.contest(&c, n)
				require.Equal(t, random, s.random)
				want := uint32(min(after*quantum, uint64(count)))
				if after < before {
					want = count - uint32(min((before-after)*quantum, uint64(count)))
				}
				require.Equal(t, cell{count: want, err: count - want}, c, "quantum %d, count %d", quantum, count)
				require.Equal(t, left*uint32(quantum), remain)
			}
		}
	}
}

// A part of a quantum counts as a whole one with a probability that makes up
// for it.
func TestContestWithPartOfAQuantum(t *testing.T) {
	s := must(NewSketch(Config[int]{K: 1, Rows: 1, Width: 1}))
	s.quantum = 10
	for _, n := range []uint32{1, 3, 9} {
		const trials = 20000
		removed := 0
		for range trials {
			c := cell{count: 30}
			if s.contest(&c, n); c.count < 30 {
				removed++
			}
		}
		p := float64(n) / 10 * math.Pow(defaultBase, -3)
		requireBinomial(t, p, removed, trials, fmt.Sprintf("weight %d", n))
	}
}

// The first weight above 1 has no mean to be measured by: each of its
// occurrences has its own chance, so that a thousand take a count of five.
func TestFirstWeightContests(t *testing.T) {
	for seed := range uint64(200) {
		s := must(NewSketch(Config[int]{K: 1, Rows: 1, Width: 1, Seed: seed}))
		s.AddN(1, 1e6)
		s.AddN(2, 1e6)
		s.AddN(3, 1) // owns the cell
		for range 4 {
			s.Add(3)
		}
		s.AddN(4, 1000)
		require.GreaterOrEqual(t, s.Estimate(4).Lower, uint64(900), "seed %d", seed)
	}
}

// What probability takes from the table is what it would compute.
func TestProbabilityOfTheTable(t *testing.T) {
	for _, base := range []float64{1.001, 1.08, 2, 1000} {
		d := newDecay(base)
		for c := range uint64(2 * len(d.table)) {
			if c > 0 { // which is never contested
				require.Equal(t, math.Exp(-float64(c)*math.Log(base)), d.probability(c), "%v^-%d", base, c)
			}
		}
	}
}

package stream

import (
	"math"
	"math/rand/v2"
)

// Zipf returns events keys, drawn independently from a population of the given
// number of distinct keys; the i-th most frequent of them comes with
// probability proportional to i^-skew. A skew of 0 is uniform; 1 and less are
// allowed, which is why this is not [rand.Zipf].
func Zipf(seed uint64, skew float64, keys, events int) []uint64 {
	random := rand.New(rand.NewPCG(seed, math.Float64bits(skew)))
	draw := newAlias(keys, func(i int) float64 { return math.Pow(float64(i+1), -skew) })
	out := make([]uint64, events)
	for i := range out {
		out[i] = Key(draw.next(random))
	}
	return out
}

// Key returns the key of rank i: ranks are scrambled, so that no algorithm
// sees in a key how frequent it is. Distinct ranks have distinct keys.
func Key(i int) uint64 {
	x := uint64(i+1) * 0x9e3779b97f4a7c15
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

// alias draws from a discrete distribution in constant time.
//
// Source: A. J. Walker, "An Efficient Method for Generating Discrete Random
// Variables with General Distributions", ACM TOMS 1977, set up as by M. D.
// Vose, IEEE TSE 1991.
type alias struct {
	keep  []float64 // probability that a column stands for itself
	other []uint32  // what it stands for else
}

func newAlias(n int, weight func(i int) float64) alias {
	a := alias{make([]float64, n), make([]uint32, n)}
	sum := 0.0
	for i := range n {
		a.keep[i] = weight(i)
		sum += a.keep[i]
	}
	var small, large []uint32
	for i := range a.keep {
		a.keep[i] *= float64(n) / sum
		if a.keep[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.other[s] = l
		a.keep[l] -= 1 - a.keep[s]
		if a.keep[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	// What is left on either side differs from 1 by rounding only.
	for _, i := range append(small, large...) {
		a.keep[i] = 1
	}
	return a
}

func (a *alias) next(random *rand.Rand) int {
	i := random.IntN(len(a.keep))
	if random.Float64() < a.keep[i] {
		return i
	}
	return int(a.other[i])
}

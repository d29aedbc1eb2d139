package stream

import (
	"math"
	"math/rand/v2"
)

// Bursts returns a stream half of which is Zipf of skew 1; the other half, of
// keys of their own, comes in bursts: runs of a single key, each as long as a
// geometric distribution of the given mean says, every other event. Long bursts
// are among the heaviest keys of the stream, but only for a moment.
func Bursts(seed uint64, mean float64, keys, events int) []uint64 {
	random := rand.New(rand.NewPCG(seed, 0xb0))
	out := Zipf(seed, 1, keys, events)
	burst, left := keys, 0
	for i := 0; i < len(out); i += 2 {
		if left == 0 {
			burst++
			left = 1 + int(random.ExpFloat64()*mean)
		}
		left--
		out[i] = Key(burst)
	}
	return out
}

// Drift returns a stream of the given skew whose ranking moves: in each of the
// phases, equally long, all keys are step ranks further up than in the one
// before, and those at the top go to the bottom.
func Drift(seed uint64, skew float64, phases, step, keys, events int) []uint64 {
	random := rand.New(rand.NewPCG(seed, 0xd0))
	draw := newAlias(keys, func(i int) float64 { return math.Pow(float64(i+1), -skew) })
	out := make([]uint64, events)
	for i := range out {
		phase := i * phases / events
		out[i] = Key((draw.next(random) + phase*step) % keys)
	}
	return out
}

// RoundRobin returns keys taken in turn. With one key more than an algorithm
// has room for, each comes just after it was thrown out.
func RoundRobin(keys, events int) []uint64 {
	out := make([]uint64, events)
	for i := range out {
		out[i] = Key(i % keys)
	}
	return out
}

// MiceThenElephant returns mice, uniform over the given number of keys, and
// then one key that was not seen before, for the given share of the events.
func MiceThenElephant(seed uint64, share float64, keys, events int) []uint64 {
	mice := events - int(share*float64(events))
	out := Zipf(seed, 0, keys, mice)
	for len(out) < events {
		out = append(out, Key(keys))
	}
	return out
}

// Weights returns a weight of at least 1 for each of the given number of
// events, exponentially distributed about the given mean.
func Weights(seed uint64, mean float64, events int) []uint32 {
	random := rand.New(rand.NewPCG(seed, 0xe0))
	out := make([]uint32, events)
	for i := range out {
		out[i] = 1 + uint32(random.ExpFloat64()*(mean-0.5))
	}
	return out
}

// Number replaces each distinct token by a distinct integer key.
func Number(tokens []string) []uint64 {
	known := map[string]uint64{}
	out := make([]uint64, len(tokens))
	for i, token := range tokens {
		key, ok := known[token]
		if !ok {
			key = Key(len(known))
			known[token] = key
		}
		out[i] = key
	}
	return out
}

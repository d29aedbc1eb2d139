package heavykeeper

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper/bench/stream"
)

// TestSizing prints the table of the package comment, "Choosing parameters",
// and holds it to what is there.
func TestSizing(t *testing.T) {
	events := stream.Zipf(1, 1, 1<<18, 1<<20)
	count := map[uint64]uint64{}
	for _, key := range events {
		count[key]++
	}
	tests := []struct {
		k        int
		kilobyte float64 // 1000 bytes
		promised float64 // e / Width, in percent
		typical  float64 // average width of the interval on events, in percent
	}{
		{10, 13.5, 1.06, 0.19},
		{100, 50, 0.30, 0.043},
		{1000, 495, 0.030, 0.0023},
		{10000, 5030, 0.0030, 0.00002},
	}
	for _, test := range tests {
		s, err := NewSketch(Config[uint64]{K: test.k})
		require.NoError(t, err)
		for _, key := range events {
			s.Add(key)
		}
		sum, within := 0.0, 0
		untracked := s.Stats().Total - s.Stats().TrackedWeight
		promised := math.E / float64(s.config.Width)
		for key := range count {
			e := s.Estimate(key)
			sum += float64(e.Upper - e.Lower)
			if float64(e.Upper-e.Lower) <= promised*float64(untracked) {
				within++
			}
		}
		kilobyte := float64(s.Stats().Bytes) / 1000
		typical := 100 * sum / float64(len(count)) / float64(len(events))
		share := float64(within) / float64(len(count))
		t.Logf("K = %5d: %6.0f KB, interval at most %.4f %% of the untracked weight for %.1f %% of keys, on average %.5f %% of the stream",
			test.k, kilobyte, 100*promised, 100*share, typical)
		require.InEpsilon(t, test.kilobyte, kilobyte, 0.03)
		require.InEpsilon(t, test.promised, 100*promised, 0.02)
		require.GreaterOrEqual(t, share, 1-math.Exp(-4))
		require.LessOrEqual(t, typical, 1.2*test.typical)
	}
}

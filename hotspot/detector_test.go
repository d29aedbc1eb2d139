package hotspot

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func must[K comparable](t testing.TB, config Config[K]) *Detector[K] {
	t.Helper()
	d, err := New(config)
	require.NoError(t, err)
	return d
}

func names[K comparable](list []HotKey[K]) []K {
	keys := make([]K, 0, len(list))
	for _, k := range list {
		keys = append(keys, k.Key)
	}
	return keys
}

func TestDetector(t *testing.T) {
	d := must(t, Config[string]{Threshold: 100})
	require.False(t, d.Hot("a"))
	require.False(t, d.ObserveAt(start, "a", 99))
	d.ObserveAt(start, "b", 1)
	require.Empty(t, d.ScanAt(start.Add(time.Second)).Hot)
	require.False(t, d.ObserveAt(start.Add(time.Second), "a", 1))
	require.False(t, d.Hot("a"), "before the scan")

	change := d.ScanAt(start.Add(2 * time.Second))
	require.Equal(t, []string{"a"}, names(change.Hot))
	require.Equal(t, []string{"a"}, names(change.Entered))
	require.Empty(t, change.Left)
	require.Equal(t, uint64(101), change.Total)
	require.Equal(t, 2*time.Second, change.Span)
	require.True(t, d.Hot("a"))
	require.False(t, d.Hot("b"))
	require.True(t, d.ObserveAt(start.Add(2*time.Second), "a", 1))

	change = d.ScanAt(start.Add(time.Hour))
	require.Equal(t, []string{"a"}, names(change.Left))
	require.Empty(t, change.Hot)
	require.False(t, d.Hot("a"))
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

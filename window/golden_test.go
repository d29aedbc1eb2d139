package window

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
)

var writeGolden = flag.Bool("golden", false, "write the golden files that are missing")

// answers is what a window is expected to say when its last slot is Slot, and
// of the keys 0 to 39.
type answers[K comparable] struct {
	Slot      int64
	Span      time.Duration
	Top       []heavykeeper.Item[K]
	Estimates []heavykeeper.Estimate
	Series    [][]uint64
}

// answersOf returns the Stats of h, and its answers as time goes on.
func answersOf[K comparable](h *HeavyKeeper[K], key func(int) K) (Stats, []answers[K]) {
	stats := h.Stats()
	stats.Bytes = 0 // depends on the machine
	var list []answers[K]
	for ahead := range int64(h.config.Slots) {
		a := answers[K]{Slot: stats.Slot + ahead}
		at := time.Unix(0, 0).Add(time.Duration(a.Slot)*h.config.Slot + h.config.Slot/2)
		a.Span, a.Top = h.SpanAt(at), h.TopAt(at, 0)
		for i := range 40 {
			a.Estimates = append(a.Estimates, h.EstimateAt(at, key(i)))
			a.Series = append(a.Series, h.SeriesAt(at, key(i)))
		}
		list = append(list, a)
	}
	return stats, list
}

// checkGolden decodes a file of testdata, an encoding of version 1, into the
// zero value and requires its answers and that its encoding is the file. A file
// that is not there is written if the flag says so; it is not to be written
// again as long as that version is read.
func checkGolden[K comparable](t *testing.T, name string, config Config[K], steps int, key func(int) K) {
	type golden struct {
		Stats   Stats
		Answers []answers[K]
	}
	path := filepath.Join("testdata", name)
	if _, err := os.Stat(path + ".hk"); os.IsNotExist(err) && *writeGolden {
		h := must(t, config)
		play(&player{r: rand.New(rand.NewPCG(7, 7))}, steps, key, h)
		data, err := h.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+".hk", data, 0o644))
		var g golden
		g.Stats, g.Answers = answersOf(h, key)
		text, err := json.Marshal(g)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+".json", append(text, '\n'), 0o644))
	}
	data, err := os.ReadFile(path + ".hk")
	require.NoError(t, err)
	text, err := os.ReadFile(path + ".json")
	require.NoError(t, err)
	var want, got golden
	require.NoError(t, json.Unmarshal(text, &want))

	var h HeavyKeeper[K]
	require.NoError(t, h.UnmarshalBinary(data))
	got.Stats, got.Answers = answersOf(&h, key)
	require.Equal(t, want, got)
	again, err := h.MarshalBinary()
	require.NoError(t, err)
	require.Equal(t, data, again)
}

func TestGolden(t *testing.T) {
	word := func(i int) string {
		if key := oddKey(i); key != "\xff\xfe" { // JSON is UTF-8
			return key
		}
		return "é"
	}
	for _, steps := range []struct {
		name string
		n    int
	}{{"new", 0}, {"few", 3}, {"string", 1000}} {
		t.Run("window-"+steps.name+".v1", func(t *testing.T) {
			checkGolden(t, "window-"+steps.name+".v1",
				Config[string]{K: 2, Rows: 2, Width: 5, Slots: 3, Slot: time.Second, Stripes: 2, Seed: 9}, steps.n, word)
		})
	}
	t.Run("window-int.v1", func(t *testing.T) {
		checkGolden(t, "window-int.v1",
			Config[int]{K: 1, Rows: 1, Width: 4, Slots: 2, Slot: 7, Stripes: 1}, 500, func(i int) int { return 3 - i })
	})
	t.Run("window-uint32.v1", func(t *testing.T) {
		checkGolden(t, "window-uint32.v1",
			Config[uint32]{K: 1, Rows: 5, Width: 4, Slots: 1, Slot: time.Hour, Stripes: 1}, 500, func(i int) uint32 { return uint32(i) << 26 })
	})
}

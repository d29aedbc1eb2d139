package window

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const is64 = ^uint(0)>>32 != 0

// TestSizing holds memory to what the package comment says of it.
func TestSizing(t *testing.T) {
	const kilobyte = 1000
	h := must(t, Config[uint64]{K: 100, Stripes: 1})
	fill(h, func(i int) uint64 { return uint64(i) })
	t.Logf("defaults at K = 100: %.1f KB", float64(h.Stats().Bytes)/kilobyte)
	require.LessOrEqual(t, float64(h.Stats().Bytes)/kilobyte, 65.0)
	if is64 {
		require.GreaterOrEqual(t, float64(h.Stats().Bytes)/kilobyte, 64.0)
	}

	candidates := []int{1, 10, 100, 341, 400, 683, 1366, 4000, 10922, 10923}
	if !testing.Short() {
		candidates = append(candidates, 40000, 43690, 43691)
	}
	for _, n := range candidates {
		for _, slots := range []int{1, 10, 60} {
			numbers := must(t, Config[uint64]{K: 1, Candidates: n, Slots: slots, Slot: time.Second, Stripes: 1})
			fill(numbers, func(i int) uint64 { return uint64(i) })
			checkSize(t, numbers, 0)
			texts := must(t, Config[string]{K: 1, Candidates: n, Slots: slots, Slot: time.Second, Stripes: 1})
			fill(texts, func(i int) string { return fmt.Sprintf("%016d", i) })
			checkSize(t, texts, 8+16)
		}
	}
}

// fill makes h track as many keys as it can.
func fill[K comparable](h *HeavyKeeper[K], key func(int) K) {
	for i := range h.config.Candidates + 1 {
		h.AddAt(time.Unix(0, 0), key(i), 1)
	}
}

// checkSize requires that the bytes of h beside its cells are 60 to 75 and
// those of its slots a candidate, extra more for its key, and 3 KB. 32-bit
// machines take less.
func checkSize[K comparable](t *testing.T, h *HeavyKeeper[K], extra int) {
	c := h.config
	n := c.Candidates
	got := h.Stats().Bytes - 12*c.Rows*c.Width - 16*c.Slots - (4*c.Slots+extra)*n
	t.Logf("%5d candidates of %T, %2d slots: %d bytes, %.1f a candidate beside its slots, cells and text",
		n, *new(K), c.Slots, h.Stats().Bytes, float64(got)/float64(n))
	require.LessOrEqual(t, got, 75*n+3000, "%d candidates, %d slots", n, c.Slots)
	if is64 {
		require.GreaterOrEqual(t, got, 60*n, "%d candidates, %d slots", n, c.Slots)
	}
}

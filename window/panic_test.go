package window

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Config.Hash that panics when a key is evicted leaves no stripe locked, and
// the newcomer without the counts of the key whose slot it may have got.
func TestPanickingHashPassesNoCountsOn(t *testing.T) {
	add := map[string]func(h *HeavyKeeper[int], at time.Time, key int){
		"AddAt":      func(h *HeavyKeeper[int], at time.Time, key int) { h.AddAt(at, key, 100) },
		"AddAt late": func(h *HeavyKeeper[int], at time.Time, key int) { h.AddAt(at.Add(-time.Second), key, 100) },
		"AddBatchAt": func(h *HeavyKeeper[int], at time.Time, key int) {
			batch := []int{2, 2}
			for range 100 {
				batch = append(batch, key)
			}
			h.AddBatchAt(at, batch)
		},
	}
	for name, add := range add {
		t.Run(name, func(t *testing.T) {
			broken := false
			h := must(t, Config[int]{
				K: 2, Candidates: 2, Slots: 3, Slot: time.Second, Stripes: 1,
				Hash: func(key int) uint64 {
					if broken && key == 1 {
						panic("in Hash")
					}
					return uint64(key)
				},
			})
			at := time.Unix(0, 0)
			for range 3 {
				h.AddAt(at, 1, 10)
				h.AddAt(at, 2, 1000)
				at = at.Add(time.Second)
			}
			at = at.Add(-time.Second)
			broken = true
			require.Panics(t, func() { add(h, at, 200) })
			broken = false
			require.Zero(t, sum(h.SeriesAt(at, 200)), "%v are the counts of another key", h.SeriesAt(at, 200))
			e := h.EstimateAt(at, 200)
			require.LessOrEqual(t, e.Lower, uint64(100))
			require.LessOrEqual(t, e.Lower, e.Upper)
			require.GreaterOrEqual(t, h.EstimateAt(at, 2).Lower, uint64(3000), "a bystander")

			h.AddAt(at, 200, 5000)
			e = h.EstimateAt(at, 200)
			require.Equal(t, []uint64{0, 0, 5000}, h.SeriesAt(at, 200))
			require.LessOrEqual(t, e.Lower, uint64(5100))
			require.GreaterOrEqual(t, e.Upper, uint64(5000))
		})
	}
}

package window

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Writers of many keys and readers of everything at once, while the wheels
// turn. Afterwards, nothing is lost and nothing counted twice.
func TestConcurrentUse(t *testing.T) {
	const writers, events = 4, 20000
	h := must(t, Config[int]{K: 20, Slots: 1000, Slot: time.Millisecond, Stripes: 4})
	start := time.Unix(1e9, 0)
	var clock atomic.Int64 // microseconds, 80 ms in all: less than the window
	at := func() time.Time { return start.Add(time.Duration(clock.Add(1)) * time.Microsecond) }
	stop := make(chan struct{})
	var readers, writing sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				now := start.Add(time.Duration(clock.Load()) * time.Microsecond)
				for _, item := range h.TopAt(now, 5) {
					if item.Lower > item.Count || item.Count > item.Upper {
						t.Errorf("got %+v", item)
					}
				}
				if e := h.EstimateAt(now, 1); e.Upper > 2*writers*events {
					t.Errorf("got %+v, more than will ever be", e)
				}
				h.SeriesAt(now, 1)
				h.SpanAt(now)
				h.Stats()
				runtime.Gosched()
			}
		})
	}
	batch := []int{1, 2, 3, 4}
	for w := range writers {
		writing.Go(func() {
			for i := range events / 2 {
				h.AddAt(at(), i%10, 1)
				if i%4 == 0 {
					h.AddBatchAt(at(), batch)
				}
				if i%1000 == 0 {
					h.AddAt(at(), 1000*w+i, 3)
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	readers.Wait()
	now := start.Add(time.Duration(clock.Load()) * time.Microsecond)
	s := h.Stats()
	const each = writers * events / 2 / 10
	require.Equal(t, uint64(writers*(events/2+events/8*4+30)), s.Total)
	require.Equal(t, s.Total, s.Weight)
	require.Zero(t, s.TooLate)
	for key := range 10 {
		want := uint64(each)
		if key >= 1 && key <= 4 {
			want += writers * events / 8
		}
		e := h.EstimateAt(now, key)
		require.LessOrEqual(t, e.Lower, want+3*writers, "key %d", key)
		require.GreaterOrEqual(t, e.Upper, want, "key %d", key)
		require.InDelta(t, want, e.Count, 3*writers+1, "key %d", key)
	}
}

// Reset beside updates leaves a window that goes on.
func TestConcurrentReset(t *testing.T) {
	h := must(t, Config[int]{K: 5, Stripes: 4, Slot: time.Millisecond})
	start := time.Unix(1e9, 0)
	var clock atomic.Int64 // microseconds
	at := func() time.Time { return start.Add(time.Duration(clock.Add(1)) * time.Microsecond) }
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for i := range 5000 {
				h.AddAt(at(), i%10, 1)
				if i%500 == 0 {
					h.Reset()
				}
			}
		})
	}
	work.Wait()
	latest := h.latest.Load()
	for i, c := range h.stripes.Locked() {
		if c.started {
			require.LessOrEqual(t, c.wheel.number, latest, "stripe %d", i)
		}
	}
	h.Reset()
	require.Zero(t, h.Stats().Total)
	now := at()
	h.AddAt(now, 1, 3)
	require.Equal(t, uint64(3), h.EstimateAt(now, 1).Count)
}

// Updates of one processor keep to one stripe; those of two that meet move on.
// If an update waited for a stripe though another is free, this would hang.
func TestAnUpdateFindsAFreeStripe(t *testing.T) {
	h := must(t, Config[int]{K: 5, Stripes: 2})
	at := time.Unix(0, 0)
	h.stripes.With(0, func(*counter[int]) bool {
		var update sync.WaitGroup
		update.Go(func() { h.AddAt(at, 1, 1) })
		update.Wait()
		return true
	})
	require.Equal(t, uint64(1), h.EstimateAt(at, 1).Count)
}

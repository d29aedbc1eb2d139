package window

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestGridIsFixed(t *testing.T) {
	day := 24 * time.Hour
	tests := []struct {
		name   string
		at     time.Time
		slot   time.Duration
		number int64
		offset time.Duration
	}{
		{"epoch", time.Unix(0, 0), time.Second, 0, 0},
		{"end of the first slot", time.Unix(0, 999999999), time.Second, 0, 999999999},
		{"boundary", time.Unix(1, 0), time.Second, 1, 0},
		{"just before 1970", time.Unix(0, -1), time.Second, -1, 999999999},
		{"boundary before 1970", time.Unix(-1, 0), time.Second, -1, 0},
		{"long before 1970", time.Unix(-7, 5), 3 * time.Second, -3, 2*time.Second + 5},
		{"sub-millisecond", time.Unix(0, 1234567), time.Microsecond, 1234, 567},
		{"nanosecond", time.Unix(3, 7), 1, 3e9 + 7, 0},
		{"odd length", time.Unix(0, 20), 7, 2, 6},
		{"other zone", time.Unix(0, 0).In(time.FixedZone("", 5400)), day, 0, 0},
		{"zero time", time.Time{}, time.Second, -62135596800, 0},
		{"zero time in days", time.Time{}, day, -719162, 0},
		{"just before the zero time", time.Time{}.Add(-1), day, -719163, day - 1},
		{"year 9999", time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), day, 2932896, day - time.Second},
		{"out of numbers", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 1, math.MaxInt64, 0},
		{"out of numbers before 1970", time.Time{}, 1, math.MinInt64, 0},
		{"end of time", time.Unix(math.MaxInt64, 999999999), maxSpan, 4000000000, 0},
		{"beginning of time", time.Unix(math.MinInt64, 0), maxSpan, -4000000001, 0},
	}
	starts := map[string]time.Time{"now": time.Now(), "1970": time.Unix(0, 1), "zero time": {}, "3000": time.Unix(32503680000, 3)}
	for _, test := range tests {
		for name, start := range starts {
			t.Run(test.name+"/start="+name, func(t *testing.T) {
				g := newGrid(start, test.slot)
				number, offset := g.locate(test.at, g.since(test.at))
				if test.slot == maxSpan { // exact figures by other means
					test.number, test.offset = exactly(test.at, test.slot)
				}
				require.Equal(t, test.number, number)
				require.Equal(t, test.offset, offset)
			})
		}
	}
}

// exactly computes what grid.divide does, in integers without end.
func exactly(t time.Time, slot time.Duration) (number int64, offset time.Duration) {
	x := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
	x.Add(x, big.NewInt(int64(t.Nanosecond())))
	n, rest := new(big.Int).DivMod(x, big.NewInt(int64(slot)), new(big.Int))
	switch {
	case n.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return math.MaxInt64, 0
	case n.Cmp(big.NewInt(math.MinInt64)) < 0:
		return math.MinInt64, slot - 1
	}
	return n.Int64(), time.Duration(rest.Int64())
}

func TestGridAgainstBigIntegers(t *testing.T) {
	for _, slot := range []time.Duration{1, 3, 999, time.Millisecond, 3 * time.Second, time.Hour, maxSpan} {
		g := newGrid(time.Unix(1e9, 12345), slot)
		for shift := range 64 {
			seconds := []int64{18446744073, -18446744074} // some ns before 2^64 ns from 1970
			if shift < 63 {
				seconds = []int64{1<<shift - 1, 1 << shift, -1 << shift, -1<<shift - 1}
			}
			for _, seconds := range seconds {
				for _, nanoseconds := range []int64{0, 1, 290448384, 709551615, 709551616, 999999999} {
					at := time.Unix(seconds, nanoseconds)
					wantNumber, wantOffset := exactly(at, slot)
					number, offset := g.locate(at, g.since(at))
					require.Equal(t, wantNumber, number, "%d.%d in slots of %v", seconds, nanoseconds, slot)
					if wantNumber != math.MaxInt64 && wantNumber != math.MinInt64 {
						require.Equal(t, wantOffset, offset, "%d.%d in slots of %v", seconds, nanoseconds, slot)
					}
				}
			}
		}
	}
}

// setBack returns t as a clock would give it that has been set back by some
// seconds: the same monotonic reading with another wall clock.
func setBack(t *testing.T, at time.Time, seconds uint64) time.Time {
	const secondsShift = 30 // of time.Time.wall, in times with a monotonic reading
	changed := at
	*(*uint64)(unsafe.Pointer(&changed)) -= seconds << secondsShift
	require.Equal(t, time.Duration(0), changed.Sub(at), "monotonic reading")
	require.Equal(t, -time.Duration(seconds)*time.Second, changed.Round(0).Sub(at.Round(0)), "wall clock")
	return changed
}

func TestMonotonicAndWallClocks(t *testing.T) {
	start := time.Now()
	g := newGrid(start, time.Second)
	for _, after := range []time.Duration{0, 1, time.Second, time.Hour, -time.Hour, 10 * 365 * 24 * time.Hour} {
		at := start.Add(after)
		number, offset := g.locate(at, g.since(at))
		for name, same := range map[string]time.Time{
			"without a monotonic reading": at.Round(0),
			"clock set back":              setBack(t, at, 3600),
		} {
			n, o := g.locate(same, g.since(same))
			require.Equal(t, number, n, name)
			require.Equal(t, offset, o, name)
		}
	}
}

// positions says which slot each ring position holds.
type positions map[int]int64

func TestWheelTurns(t *testing.T) {
	for _, size := range []int{1, 2, 3, 10, 1000} {
		for _, start := range []int64{0, -5, math.MinInt64, math.MaxInt64 - 5000} {
			t.Run(fmt.Sprintf("size=%d/start=%d", size, start), func(t *testing.T) {
				w := wheel{size: size, number: start}
				held := positions{}
				for age := range size {
					held[w.position(age)] = start - int64(age)
				}
				require.Len(t, held, size, "positions are distinct")
				for _, step := range []int64{1, 1, 2, 1, int64(size) - 1, 1, int64(size), 1, int64(size) + 1, 3, 1} {
					if step == 0 {
						continue
					}
					number := w.number + step
					passed := w.turn(number)
					require.Equal(t, min(step, int64(size)), int64(passed))
					require.Equal(t, number, w.number)
					for age := range passed {
						held[w.position(age)] = number - int64(age)
					}
					for age := range size {
						require.Equal(t, number-int64(age), held[w.position(age)], "age %d", age)
					}
				}
			})
		}
	}
}

func TestWheelAges(t *testing.T) {
	w := wheel{size: 10, number: 100}
	for _, test := range []struct {
		number int64
		age    int
		ok     bool
	}{
		{100, 0, true}, {99, 1, true}, {91, 9, true}, {90, 0, false}, {0, 0, false}, {math.MinInt64, 0, false},
	} {
		age, ok := w.age(test.number)
		require.Equal(t, test.ok, ok, "slot %d", test.number)
		require.Equal(t, test.age, age, "slot %d", test.number)
	}
	for _, test := range []struct {
		number int64
		left   int
	}{
		{math.MinInt64, 10}, {50, 10}, {100, 10}, {101, 9}, {109, 1}, {110, 0}, {math.MaxInt64, 0},
	} {
		require.Equal(t, test.left, w.left(test.number), "slot %d", test.number)
	}
	w.number = math.MinInt64
	require.Zero(t, w.left(math.MaxInt64), "the whole of time apart")
	require.Equal(t, 10, w.turn(math.MaxInt64))
}

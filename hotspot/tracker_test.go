package hotspot

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
)

// The threshold is 100. A step is a scan at a second that finds keys, "a120
// b90", in the order of rank; ! after a count is pinned, + allowed.
type scanStep struct {
	at   float64
	keys string
	hot  string // names only, in the order of rank
}

var trackerTests = []struct {
	name    string
	tracker tracker[string] // topN 3 and leave 0.8 if 0
	steps   []scanStep
	flaps   uint64
}{
	{"enters at the threshold and leaves below 0.8 of it", tracker[string]{}, []scanStep{
		{1, "a99", ""}, {2, "a100", "a"}, {3, "a99", "a"}, {4, "a80", "a"}, {5, "a79", ""}, {6, "a99", ""}, {7, "a100", "a"},
	}, 0},
	{"without hysteresis a key at the edge flaps", tracker[string]{leave: 1}, []scanStep{
		{1, "a100", "a"}, {2, "a99", ""}, {3, "a100", "a"}, {4, "a99", ""},
	}, 0},
	{"with it, it does not, and that is counted", tracker[string]{}, []scanStep{
		{1, "a100", "a"}, {2, "a99", "a"}, {3, "a90", "a"}, {4, "a100", "a"}, {5, "a99", "a"}, {6, "a110", "a"}, {7, "a99", "a"}, {8, "a10", ""},
	}, 2},
	{"a key that is gone leaves", tracker[string]{}, []scanStep{{1, "a100", "a"}, {2, "", ""}}, 0},
	{"minimum stay", tracker[string]{minStay: 5 * time.Second}, []scanStep{
		{1, "a100", "a"}, {2, "a1", "a"}, {5.9, "a0", "a"}, {6, "a0", ""}, {7, "a100", "a"}, {8, "a0", "a"}, {12, "a0", ""},
	}, 0},
	{"minimum stay is from entering, not from the last time at the threshold", tracker[string]{minStay: 5 * time.Second}, []scanStep{
		{1, "a100", "a"}, {5, "a100", "a"}, {6, "a0", ""},
	}, 0},
	{"three scans in a row", tracker[string]{enterAfter: 3}, []scanStep{
		{1, "a100", ""}, {2, "a100", ""}, {3, "a99", ""}, {4, "a100", ""}, {5, "a100", ""}, {6, "a100", "a"}, {7, "a80", "a"},
	}, 1},
	{"a key that is not ranked breaks its row", tracker[string]{enterAfter: 2}, []scanStep{
		{1, "a100", ""}, {2, "", ""}, {3, "a100", ""}, {4, "a100", "a"},
	}, 1},
	{"scans at the same time are one", tracker[string]{enterAfter: 2}, []scanStep{
		{1, "a100", ""}, {1, "a100", ""}, {1, "a100 b100", ""}, {2, "a100 b100", "a b"}, {2, "a100 b100", "a b"},
	}, 0},
	{"the first of several at the same time", tracker[string]{}, []scanStep{
		{1, "a99", ""}, {1, "a100", "a"}, {1, "a80", "a"}, {1, "a79", ""},
	}, 0},
	{"when the clock steps back no time has passed", tracker[string]{minStay: 5 * time.Second}, []scanStep{
		{1000, "a100", "a"}, {1003, "a0", "a"}, {3, "a0", "a"}, {4.9, "a0", "a"}, {5, "a0", ""},
	}, 0},
	{"scans after a step back are in a row", tracker[string]{enterAfter: 3}, []scanStep{
		{1000, "a100", ""}, {3, "a100", ""}, {3, "a100", ""}, {2, "a100", "a"},
	}, 0},
	{"the first N", tracker[string]{}, []scanStep{
		{1, "a400 b300 c200 d150", "a b c"},
	}, 0},
	{"a newcomer must exceed the last of N by a quarter", tracker[string]{}, []scanStep{
		{1, "a400 b300 c200 d150", "a b c"}, {2, "a400 b300 d249 c200", "a b c"}, {3, "a400 b300 d250 c200", "a b c"},
		{4, "a400 b300 d251 c200", "a b d"}, {5, "a400 b300 d251 c250", "a b d"}, {6, "a400 b300 c300 d251", "a b d"},
	}, 0},
	{"one that nearly changes places and does not is a flap prevented, for both", tracker[string]{}, []scanStep{
		{1, "a400 b300 c200 d199", "a b c"}, {2, "a400 b300 d201 c200", "a b c"}, {3, "a400 b300 c200 d199", "a b c"}, {4, "a400 b300 c200", "a b c"},
	}, 2},
	{"nobody displaces a key in its minimum stay", tracker[string]{topN: 1, minStay: 5 * time.Second}, []scanStep{
		{1, "a100", "a"}, {2, "b900 a100", "a"}, {6, "b900 a100", "b"},
	}, 0},
	{"pinned keys come first", tracker[string]{}, []scanStep{
		{1, "a400 b300 c200 p0! q0!", "a p q"}, {2, "a400 b300 c200 p0!", "a b p"},
	}, 0},
	{"pinned keys displace one in its minimum stay", tracker[string]{topN: 1, minStay: 5 * time.Second}, []scanStep{
		{1, "a400", "a"}, {2, "a400 p0!", "p"},
	}, 0},
	{"allowed keys need no threshold and no row, but a place", tracker[string]{enterAfter: 2}, []scanStep{
		{1, "a400 x1+ y1+ z1+ w1+", "x y z"}, {2, "a400 x1+ y1+ z1+ w1+", "a x y"}, {3, "a0 x1+", "x"},
	}, 0},
	{"keys that want a place wait for it", tracker[string]{topN: 1, enterAfter: 3}, []scanStep{
		{1, "b100 a100", ""}, {2, "b100 a100", ""}, {3, "b100 a100", "b"}, {4, "b0 a100", "a"},
	}, 0},
	{"all keys go at once", tracker[string]{}, []scanStep{{1, "a100 b100 c100", "a b c"}, {2, "d100 e100 f100 g100", "d e f"}}, 0},
}

func parseCandidates(t *testing.T, keys string, leave float64) []candidate[string] {
	var list []candidate[string]
	for rank, word := range strings.Fields(keys) {
		digits := strings.TrimRight(word[1:], "!+")
		n, err := strconv.ParseUint(digits, 10, 64)
		require.NoError(t, err)
		c := candidate[string]{meets: n >= 100, stays: n >= scale(100, leave), possible: n >= 90}
		c.Key, c.Rank, c.Estimate = word[:1], rank+1, heavykeeper.Estimate{Count: n}
		c.pinned = strings.HasSuffix(word, "!")
		c.Allowed = c.pinned || strings.HasSuffix(word, "+")
		list = append(list, c)
	}
	return list
}

func TestTracker(t *testing.T) {
	for _, test := range trackerTests {
		t.Run(test.name, func(t *testing.T) {
			r := test.tracker
			if r.topN == 0 {
				r.topN = 3
			}
			if r.leave == 0 {
				r.leave = 0.8
			}
			r.enterAfter = max(r.enterAfter, 1)
			for _, s := range test.steps {
				list := parseCandidates(t, s.keys, r.leave)
				hot, possible := r.step(start.Add(time.Duration(s.at*1e9)), list)
				require.Equal(t, strings.Fields(s.hot), names(hot), "at %v", s.at)
				require.LessOrEqual(t, len(r.waiting), len(list))
				require.Equal(t, len(hot), len(r.members))
				for _, key := range possible {
					require.NotContains(t, names(hot), key.Key)
					require.GreaterOrEqual(t, key.Count, uint64(90))
				}
			}
			require.Equal(t, test.flaps, r.flaps, "flaps prevented")
		})
	}
}

// Since is when a key entered, whatever came later; a step of the clock moves
// it.
func TestTrackerSince(t *testing.T) {
	r := tracker[string]{topN: 3, leave: 0.8, enterAfter: 1}
	since := func(second float64, keys string) string {
		hot, _ := r.step(start.Add(time.Duration(second*1e9)), parseCandidates(t, keys, 0.8))
		var out []string
		for _, key := range hot {
			out = append(out, key.Key+strconv.FormatFloat(key.Since.Sub(start).Seconds(), 'f', -1, 64))
		}
		return strings.Join(out, " ")
	}
	require.Equal(t, "a1", since(1, "a100"))
	require.Equal(t, "a1 b2", since(2, "a100 b100"))
	require.Equal(t, "a1 b2", since(3, "a80 b100"))
	require.Equal(t, "b2", since(4, "b100"))
	require.Equal(t, "a5 b2", since(5, "a100 b100"))
	require.Equal(t, "a1 b-2", since(1, "a100 b100"), "four seconds back")
	require.Equal(t, "a1 b-2", since(9, "a100 b100"))
}

// However keys come and go: never more than TopN, never one twice, always all
// that are pinned, and nothing is retained of keys that have gone.
func TestTrackerInvariants(t *testing.T) {
	random := newRandom(1)
	for range 200 {
		r := tracker[string]{topN: 1 + random.IntN(4), leave: 0.5, enterAfter: 1 + random.IntN(3), minStay: time.Duration(random.IntN(4)) * time.Second}
		now := start
		for range 50 {
			now = now.Add(time.Duration(random.IntN(7)-2) * time.Second)
			var words []string
			pinned := 0
			for _, key := range "abcdefgh" {
				word := string(key) + strconv.Itoa(random.IntN(200))
				switch random.IntN(8) {
				case 0:
					if pinned < r.topN {
						word += "!"
						pinned++
					}
				case 1:
					word += "+"
				case 2, 3:
					continue
				}
				words = append(words, word)
			}
			list := parseCandidates(t, strings.Join(words, " "), r.leave)
			slices.SortStableFunc(list, func(a, b candidate[string]) int { return int(b.Count) - int(a.Count) })
			hot, _ := r.step(now, list)
			require.LessOrEqual(t, len(hot), r.topN)
			keys := names(hot)
			for _, c := range list {
				if c.pinned {
					require.Contains(t, keys, c.Key)
				}
			}
			slices.Sort(keys)
			require.Equal(t, len(keys), len(slices.Compact(keys)), "a key twice")
			for _, key := range hot {
				require.False(t, key.Since.After(now))
			}
		}
		hot, possible := r.step(now.Add(time.Hour), nil)
		require.Empty(t, hot)
		require.Empty(t, possible)
		require.Empty(t, r.waiting)
		require.Empty(t, r.members)
	}
}

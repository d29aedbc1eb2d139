package window_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heavykeeper-go/heavykeeper/window"
)

func Example() {
	hot, err := window.New[string](window.Config[string]{K: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		hot.Add("/index.html")
	}
	hot.Add("/about.html")
	hot.AddN("/logo.png", 2)
	for _, item := range hot.Top(0) {
		fmt.Println(item.Key, item.Count)
	}
	// Output:
	// /index.html 3
	// /logo.png 2
}

// sparkline draws counts as bars, 0 as a blank.
func sparkline(series []uint64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	highest := uint64(1)
	for _, n := range series {
		highest = max(highest, n)
	}
	var line strings.Builder
	for _, n := range series {
		bar := ' '
		if n > 0 {
			bar = bars[n*uint64(len(bars)-1)/highest]
		}
		line.WriteRune(bar)
	}
	return line.String()
}

// A live list of the five hottest keys of the last ten seconds. Time is that
// of the events, so the program does not wait.
func Example_live() {
	hot, err := window.New[string](window.Config[string]{K: 5, Slots: 10, Slot: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for second := range 30 {
		now := start.Add(time.Duration(second) * time.Second)
		hot.AddAt(now, "/home", 50)
		hot.AddAt(now, "/rising", uint32(4*second))
		hot.AddAt(now, "/falling", uint32(120-4*second))
		hot.AddAt(now, "/waves", uint32(10+40*(second%3)))
		if second == 20 {
			hot.AddAt(now, "/spike", 300)
		}
		if second < 15 {
			hot.AddAt(now, "/gone", 1000)
		}
		for page := range 40 {
			hot.AddAt(now, fmt.Sprintf("/page/%d", page), 1)
		}
		if second != 14 && second != 29 {
			continue
		}
		end := now.Add(time.Second - 1)
		fmt.Printf("%s, last %v\n", end.Format(time.TimeOnly), hot.SpanAt(end).Round(time.Second))
		for _, item := range hot.TopAt(end, 5) {
			rate := window.Rate(item.Count, hot.SpanAt(end))
			fmt.Printf("%-8s %5d %6.1f/s |%s|\n", item.Key, item.Count, rate, sparkline(hot.SeriesAt(end, item.Key)))
		}
	}
	// Output:
	// 12:00:14, last 10s
	// /gone    10000 1000.0/s |██████████|
	// /falling   820   82.0/s |█▇▇▇▆▆▆▆▅▅|
	// /waves     540   54.0/s |█▁▄█▁▄█▁▄█|
	// /home      500   50.0/s |██████████|
	// /rising    380   38.0/s |▃▄▄▅▅▆▆▇▇█|
	// 12:00:29, last 10s
	// /rising    980   98.0/s |▅▆▆▆▆▇▇▇▇█|
	// /waves     540   54.0/s |█▁▄█▁▄█▁▄█|
	// /home      500   50.0/s |██████████|
	// /spike     300   30.0/s |█         |
	// /falling   220   22.0/s |█▇▆▅▅▄▃▃▂▁|
}

// In a bubble of testing/synctest the short forms follow its clock, so a test
// of code that uses them passes minutes in no time. New must be called inside.
func TestSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hot, err := window.New[string](window.Config[string]{K: 3, Slots: 10, Slot: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		hot.AddN("early", 5)
		time.Sleep(4 * time.Second)
		hot.Add("late")
		if got, want := hot.Span(), 4*time.Second; got != want {
			t.Errorf("span: got %v, want %v", got, want)
		}
		if top := hot.Top(0); len(top) != 2 || top[0].Key != "early" {
			t.Errorf("got %v, want early, late", top)
		}
		time.Sleep(6 * time.Second)
		if top := hot.Top(0); len(top) != 1 || top[0].Key != "late" {
			t.Errorf("after ten seconds: got %v, want late alone", top)
		}
		time.Sleep(24 * time.Hour)
		if top := hot.Top(0); len(top) != 0 {
			t.Errorf("after a day: got %v, want nothing", top)
		}
	})
}

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
)

// manyItems returns n items that want columns of different widths.
func manyItems(n int) []heavykeeper.Item[string] {
	items := make([]heavykeeper.Item[string], n)
	for i := range items {
		count := uint64(n - i)
		items[i] = heavykeeper.Item[string]{
			Key:      fmt.Sprintf("key%d", i),
			Estimate: heavykeeper.Estimate{Count: count, Lower: count, Upper: count},
		}
	}
	return items
}

// A table takes time in proportion to its rows: were it their square, this one
// would run for a quarter of an hour, and into the limit of go test.
func TestTableOfManyKeys(t *testing.T) {
	n := 300_000
	if testing.Short() {
		n = 30_000
	}
	var b bytes.Buffer
	table{}.print(&b, &frame{items: manyItems(n), total: uint64(n)})
	rows := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Len(t, rows, n+1)
	end := strings.Index(rows[0], "KEY")
	for i, row := range rows[1:] {
		if want := fmt.Sprintf("  key%d", i); row[end-2:] != want {
			t.Fatalf("row %d: got %q, want %q at its end", i, row, want)
		}
	}
}

// Series are fetched for those who show them only: for many keys and slots they
// take a great deal of memory.
func TestFramesHaveNoMoreThanIsShown(t *testing.T) {
	for _, test := range []struct {
		args   string
		screen size
		want   bool
	}{
		{"", size{}, false},
		{"-o csv", size{}, false},
		{"-o csv", size{80, 24}, false},
		{"-o json", size{}, true},
		{"-o json", size{40, 24}, true},
		{"", size{80, 24}, true},
		{"", size{59, 24}, false},
	} {
		o, err := parse(append(strings.Fields(test.args), "-window", "10s"))
		require.NoError(t, err)
		p := process{terminal: func(any) (size, bool) { return test.screen, test.screen != size{} }}
		v := p.newView(o)
		tally, err := newTally(o)
		require.NoError(t, err)
		now := time.Unix(100, 0)
		tally.add([]byte("a"), now)
		f := tally.frame(10, now, 0, v.showsSlots())
		require.Len(t, f.items, 1)
		require.Equal(t, test.want, len(f.series) == 1, "%+v", test)
		v.printer.print(&v.buffer, f)
	}
}

// BenchmarkTable reports what a row costs where there are few, and many.
func BenchmarkTable(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			f := &frame{items: manyItems(n), total: uint64(n)}
			var out bytes.Buffer
			for b.Loop() {
				out.Reset()
				table{}.print(&out, f)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
			if bytes.Count(out.Bytes(), []byte("\n")) != n+1 {
				b.Fatalf("got %d bytes", out.Len())
			}
		})
	}
}

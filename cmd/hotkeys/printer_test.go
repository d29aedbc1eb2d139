package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

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
	const n = 300_000
	var b bytes.Buffer
	table{}.print(&b, &frame{items: manyItems(n), total: n})
	rows := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Len(t, rows, n+1)
	end := strings.Index(rows[0], "KEY")
	for i, row := range rows[1:] {
		if want := fmt.Sprintf("  key%d", i); row[end-2:] != want {
			t.Fatalf("row %d: got %q, want %q at its end", i, row, want)
		}
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

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/heavykeeper-go/heavykeeper/window"
)

// timeForm is how times are written: sortable, and no finer than need be.
const timeForm = "2006-01-02T15:04:05.999Z07:00"

// printer writes frames in some format.
type printer interface {
	print(b *bytes.Buffer, f *frame)
}

// showsSlots reports whether a printer shows the series of a frame's keys.
func showsSlots(p printer) bool {
	switch p := p.(type) {
	case table:
		return p.width >= leastForSlots
	case jsonPrinter:
		return true
	}
	return false
}

// leastForSlots is the width of a terminal in which there is room for slots.
const leastForSlots = 60

// table is for people: all of the stream, or the whole of a window.
type table struct{ width int } // of the terminal; 0: none

func (t table) print(b *bytes.Buffer, f *frame) {
	const uncertain = "?" // nothing is known from above
	errors := func(i int) string {
		if e := f.items[i].Estimate; e.Upper != math.MaxUint64 {
			return grouped(e.Upper - e.Lower)
		}
		return uncertain
	}
	columns := []column{
		{"COUNT", func(i int) string { return grouped(f.items[i].Count) }},
		{"ERROR", errors},
	}
	if !f.windowed {
		columns = append(columns, column{"SHARE", func(i int) string {
			return fmt.Sprintf("%.2f%%", 100*f.share(i))
		}})
	} else {
		columns = append(columns, column{"RATE/S", func(i int) string {
			return rateText(window.Rate(f.items[i].Count, f.span))
		}})
		if showsSlots(t) && len(f.series) > 0 {
			shown := min(len(f.series[0]), t.width/3)
			name := fmt.Sprintf("%*s", shown, "SLOTS")
			columns = append(columns, column{name, func(i int) string {
				return sparkline(f.series[i][len(f.series[i])-shown:])
			}})
		}
	}
	t.rows(b, f, columns)
}

// column is all of a table but the keys, which come last.
type column struct {
	title string
	cell  func(row int) string
}

func (t table) rows(b *bytes.Buffer, f *frame, columns []column) {
	if len(f.items) == 0 {
		return
	}
	cells := make([][]string, len(columns))
	widths := make([]int, len(columns))
	for i, c := range columns {
		cells[i] = append(cells[i], c.title)
		for row := range f.items {
			cells[i] = append(cells[i], c.cell(row))
		}
		for _, cell := range cells[i] {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for row := range len(f.items) + 1 {
		used := 0
		for i, width := range widths {
			fmt.Fprintf(b, "%*s  ", width, cells[i][row])
			used += width + 2
		}
		key := "KEY"
		if row > 0 {
			key = safe(f.items[row-1].Key)
		}
		b.WriteString(cutTo(key, t.width-used, t.width > 0))
		b.WriteByte('\n')
	}
}

// cutTo returns text without what is beyond a width, if there is a limit.
func cutTo(text string, width int, limited bool) string {
	if !limited || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width, 0)])
}

// share returns the share of item i in all of the stream.
func (f *frame) share(i int) float64 {
	return float64(f.items[i].Count) / float64(max(f.total, 1))
}

// plainLines is for pipes: a line for each key, of a window as it moves on.
type plainLines struct{}

func (plainLines) print(b *bytes.Buffer, f *frame) {
	at := f.at.Truncate(time.Millisecond).Format(timeForm)
	for i, item := range f.items {
		fmt.Fprintf(b, "%s %3d %9d %9s/s  %s\n",
			at, i+1, item.Count, rateText(window.Rate(item.Count, f.span)), safe(item.Key))
	}
}

// jsonPrinter writes a frame as an object on one line.
type jsonPrinter struct{}

type jsonFrame struct {
	Time  string    `json:"time,omitempty"`
	Span  float64   `json:"span_seconds,omitempty"`
	Lines uint64    `json:"lines"`
	Total *uint64   `json:"total,omitempty"`
	Exact *bool     `json:"exact,omitempty"`
	Keys  []jsonKey `json:"keys"`
}

type jsonKey struct {
	Rank  int      `json:"rank"`
	Key   string   `json:"key"`
	Bytes string   `json:"key_base64,omitempty"` // of keys that are not UTF-8
	Count uint64   `json:"count"`
	Lower uint64   `json:"lower"`
	Upper *uint64  `json:"upper"` // null: nothing is known
	Share *float64 `json:"share,omitempty"`
	Rate  *float64 `json:"rate_per_second,omitempty"`
	Slots []uint64 `json:"slots,omitempty"`
}

func (jsonPrinter) print(b *bytes.Buffer, f *frame) {
	out := jsonFrame{Lines: f.lines, Keys: []jsonKey{}}
	if !f.windowed {
		out.Total, out.Exact = &f.total, &f.exact
	} else if !f.at.IsZero() {
		out.Time, out.Span = f.at.Truncate(time.Millisecond).Format(timeForm), f.span.Seconds()
	}
	for i, item := range f.items {
		key := jsonKey{Rank: i + 1, Key: item.Key, Count: item.Count, Lower: item.Lower}
		if !utf8.ValidString(item.Key) {
			key.Bytes = base64.StdEncoding.EncodeToString([]byte(item.Key))
		}
		if item.Upper != math.MaxUint64 {
			key.Upper = &item.Upper
		}
		if !f.windowed {
			share := f.share(i)
			key.Share = &share
		} else {
			rate := window.Rate(item.Count, f.span)
			key.Rate, key.Slots = &rate, f.series[i]
		}
		out.Keys = append(out.Keys, key)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.Encode(out) // cannot fail: strings and finite numbers, written to memory
	escapeJSON(b, text.String())
}

// escapeJSON writes JSON text with what is not printable escaped: an encoder
// leaves alone some characters that terminals take for commands.
func escapeJSON(b *bytes.Buffer, text string) {
	for _, r := range text {
		switch {
		case r == '\n' || strconv.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(b, `\u%04x`, r)
		}
	}
}

// csvPrinter writes a row for each key, below one row of titles.
type csvPrinter struct {
	terminal bool // keys must be safe to print
	titled   bool
}

func (p *csvPrinter) print(b *bytes.Buffer, f *frame) {
	w := csv.NewWriter(b) // its errors are those of b, which has none
	if !p.titled {
		p.titled = true
		titles := []string{"rank", "key", "count", "lower", "upper", "share"}
		if f.windowed {
			titles = []string{"time", "rank", "key", "count", "lower", "upper", "rate_per_second"}
		}
		w.Write(titles)
	}
	for i, item := range f.items {
		key, upper := item.Key, ""
		if p.terminal {
			key = safe(key)
		}
		if item.Upper != math.MaxUint64 {
			upper = strconv.FormatUint(item.Upper, 10)
		}
		row := []string{
			strconv.Itoa(i + 1), key, strconv.FormatUint(item.Count, 10), strconv.FormatUint(item.Lower, 10), upper,
			strconv.FormatFloat(f.share(i), 'g', 6, 64),
		}
		if f.windowed {
			at := f.at.Truncate(time.Millisecond).Format(timeForm)
			row[len(row)-1] = strconv.FormatFloat(window.Rate(item.Count, f.span), 'g', 6, 64)
			row = append([]string{at}, row...)
		}
		w.Write(row)
	}
	w.Flush()
}

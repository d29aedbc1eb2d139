package hotspot

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageStyle string

// pageStyleHash lets the page have its own style and no other.
var pageStyleHash = func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}()

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"key":     legible,
	"count":   grouped,
	"rate":    func(x float64) string { return grouped(uint64(math.Round(x))) },
	"percent": func(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + " %" },
	"bars":    bars,
	"last":    func(list []bar) int { return len(list) - 1 },
	"took":    func(s float64) time.Duration { return seconds(s).Round(10 * time.Microsecond) },
	"seconds": func(s float64) time.Duration { return seconds(s).Round(100 * time.Millisecond) },
	"bound":   bound,
	"ago":     ago,
	"width":   func(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) },
}).Parse(pageHTML))

// page is what the template shows.
type page struct {
	Style    template.CSS
	Refresh  int    // seconds; 0: never
	Toggle   string // link, as a query alone, that stops or starts the refreshing
	JSON     string // link to the JSON form
	Detector *detectorReport
	Group    *groupReport
}

func newPage(report any, query url.Values) *page {
	p := &page{Style: template.CSS(pageStyle)}
	slot := 0.0
	switch r := report.(type) {
	case *detectorReport:
		p.Detector, slot = r, r.Slot
	case *groupReport:
		p.Group, slot = r, r.Slot
	}
	link := func(key, value string) string {
		q := url.Values{}
		if query.Has("name") {
			q.Set("name", query.Get("name"))
		}
		if key != "" {
			q.Set(key, value)
		}
		return "?" + q.Encode()
	}
	p.Toggle, p.JSON = link("", ""), link("format", "json")
	if !query.Has("pause") {
		p.Refresh = int(math.Ceil(min(max(slot, 1), 3600)))
		p.Toggle = link("pause", "1")
	}
	return p
}

// MemberLink returns the link to the page of a Detector of a group.
func (p *page) MemberLink(name string) string {
	return "?" + url.Values{"name": {name}}.Encode()
}

// legible returns a text that shows a key and cannot be taken for another: as
// it is, if it is printable, or quoted as in Go. Long ones are cut.
func legible(key string) string {
	const most = 160
	cut := ""
	if len(key) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(key[end]) {
			end--
		}
		cut = fmt.Sprintf(" … (%s bytes)", grouped(uint64(len(key))))
		key = key[:end]
	}
	plain := key != "" && key[0] != '"' && key[0] != ' ' && key[len(key)-1] != ' '
	for _, r := range key {
		plain = plain && unicode.IsPrint(r)
	}
	if !plain || !utf8.ValidString(key) {
		key = strconv.Quote(key)
	}
	return key + cut
}

// grouped returns n with a thin space between groups of three digits.
func grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func bound(x *uint64) string {
	if x == nil {
		return "∞"
	}
	return grouped(*x)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// ago returns how long before now t was.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "always"
	}
	d := now.Sub(t)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// bar is one of a sparkline that is barsHeight high.
type bar struct{ X, Y, Width, Height float64 }

const (
	barsWidth  = 150.0
	barsHeight = 28.0
	mostBars   = 60
)

// bars returns the sparkline of a series, which has several slots a bar if
// there are many.
func bars(series []uint64) []bar {
	each := (len(series) + mostBars - 1) / mostBars
	var sums []uint64
	for i := 0; i < len(series); i += each {
		sums = append(sums, sum(series[i:min(i+each, len(series))]))
	}
	highest := uint64(1)
	for _, n := range sums {
		highest = max(highest, n)
	}
	list := make([]bar, len(sums))
	step := barsWidth / float64(max(len(sums), 1))
	for i, n := range sums {
		height := barsHeight * float64(n) / float64(highest)
		if n > 0 {
			height = max(height, 1)
		}
		list[i] = bar{
			X:      math.Round(100*float64(i)*step) / 100,
			Y:      math.Round(100*(barsHeight-height)) / 100,
			Width:  math.Round(100*step*0.82) / 100,
			Height: math.Round(100*height) / 100,
		}
	}
	return list
}

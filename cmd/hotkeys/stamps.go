package main

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// Layouts with a name. All others are those of package time.
var layouts = map[string]string{
	"rfc3339": time.RFC3339,
	"clf":     "[02/Jan/2006:15:04:05 -0700]", // the common log format
	"syslog":  time.Stamp,
}

// units are those of layouts that are numbers since 1970.
var units = map[string]time.Duration{
	"unix":   time.Second,
	"unixms": time.Millisecond,
	"unixus": time.Microsecond,
	"unixns": time.Nanosecond,
}

// layoutOf returns the layout of a name, or the name itself.
func layoutOf(name string) string {
	if layout, ok := layouts[name]; ok {
		return layout
	}
	return name
}

// Times out of this range are taken for errors. Within it, nanoseconds since
// 1970 fit into an int64.
var (
	earliest = time.Date(1700, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// stamps reads the times of lines. Many lines have the same as the one before,
// so it keeps the last.
type stamps struct {
	layout string
	unit   time.Duration    // 0: layout is one of package time
	now    func() time.Time // tells the year of layouts that have none

	text []byte // of the last time
	last time.Time
	ok   bool
}

func newStamps(layout string, now func() time.Time) *stamps {
	return &stamps{layout: layoutOf(layout), unit: units[layout], now: now}
}

// read returns the time that text tells.
func (s *stamps) read(text []byte) (time.Time, bool) {
	if s.text == nil || !bytes.Equal(text, s.text) {
		s.text = append(s.text[:0], text...)
		s.last, s.ok = s.parse(string(text))
		s.ok = s.ok && s.last.After(earliest) && s.last.Before(latest)
	}
	return s.last, s.ok
}

func (s *stamps) parse(text string) (time.Time, bool) {
	if s.unit != 0 {
		return parseUnix(text, s.unit)
	}
	t, err := time.Parse(s.layout, text)
	if err != nil {
		return time.Time{}, false
	}
	if t.Year() == 0 {
		return withYear(t, s.now())
	}
	return t, true
}

// withYear returns the latest such time of a year that is not in the future. A
// day of grace is for zones and clocks that differ.
func withYear(t, now time.Time) (time.Time, bool) {
	limit := now.AddDate(0, 0, 1)
	const longest = 8 // years between two leap years, around 2100
	for year := now.Year() + 1; year >= now.Year()-longest; year-- {
		dated := t.AddDate(year, 0, 0)
		if dated.Day() == t.Day() && !dated.After(limit) { // not 29 February of a common year
			return dated, true
		}
	}
	return time.Time{}, false
}

// parseUnix reads a decimal number of units since 1970.
func parseUnix(text string, unit time.Duration) (time.Time, bool) {
	whole, fraction := text, ""
	for i := range len(text) {
		if text[i] == '.' {
			whole, fraction = text[:i], text[i+1:]
			break
		}
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	perSecond := int64(time.Second / unit)
	seconds, part := n/perSecond, n%perSecond*int64(unit)
	if fraction != "" {
		f, err := strconv.ParseUint(fraction, 10, 64)
		if err != nil {
			return time.Time{}, false
		}
		nanoseconds := int64(math.Round(float64(f) / math.Pow10(len(fraction)) * float64(unit)))
		if text[0] == '-' {
			nanoseconds = -nanoseconds
		}
		part += nanoseconds
	}
	return time.Unix(seconds, part).UTC(), true
}

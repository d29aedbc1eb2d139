package main

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// safe returns key as it can be printed to a terminal: what is not a printable
// character is escaped as in Go, and so is the backslash.
func safe(key string) string {
	var dst []byte
	for len(key) > 0 {
		r, n := utf8.DecodeRuneInString(key)
		switch {
		case r == '\\':
			dst = append(dst, `\\`...)
		case r == utf8.RuneError && n == 1 || !strconv.IsPrint(r):
			quoted := strconv.AppendQuote(nil, key[:n])
			dst = append(dst, quoted[1:len(quoted)-1]...)
		default:
			dst = append(dst, key[:n]...)
		}
		key = key[n:]
	}
	return string(dst)
}

// grouped returns n with its digits in groups of three.
func grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

// rateText returns a rate to a tenth, or to two digits if it is below 1.
func rateText(rate float64) string {
	if rate < 1 {
		return strconv.FormatFloat(rate, 'g', 2, 64)
	}
	return strconv.FormatFloat(rate, 'f', 1, 64)
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
			bar = bars[int(float64(n)/float64(highest)*float64(len(bars)-1))]
		}
		line.WriteRune(bar)
	}
	return line.String()
}

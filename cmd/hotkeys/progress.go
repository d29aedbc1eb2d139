package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progress is a bar on a terminal that tells how much of the input was read.
type progress struct {
	out      io.Writer
	terminal func() (size, bool)
	total    int64 // bytes
	started  time.Time
	drawn    bool
}

// draw draws the bar over the one before.
func (p *progress) draw(read int64, now time.Time) {
	s, _ := p.terminal()
	share := min(float64(read)/float64(p.total), 1)
	passed := now.Sub(p.started).Seconds()
	text := fmt.Sprintf(" %3.0f%%  %s of %s", 100*share, bytesText(read), bytesText(p.total))
	if passed > 0 && read > 0 {
		left := time.Duration(passed * (1 - share) / share * float64(time.Second))
		text += fmt.Sprintf("  %s/s  %v left", bytesText(int64(float64(read)/passed)), left.Round(time.Second))
	}
	if width := min(s.columns-len(text)-3, 40); width >= 5 {
		done := int(share * float64(width))
		text = "[" + strings.Repeat("=", done) + strings.Repeat(" ", width-done) + "]" + text
	}
	fmt.Fprintf(p.out, "\r%s%s", cutTo(text, s.columns-1, true), clearLine)
	p.drawn = true
}

// clear removes the bar.
func (p *progress) clear() {
	if p.drawn {
		io.WriteString(p.out, "\r"+clearLine)
		p.drawn = false
	}
}

// bytesText returns n bytes to three digits or so.
func bytesText(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	x := float64(n)
	i := 0
	for ; x >= 999.5 && i < len(units)-1; i++ {
		x /= 1000
	}
	if i == 0 || x >= 99.5 {
		return fmt.Sprintf("%.0f %s", x, units[i])
	}
	return fmt.Sprintf("%.1f %s", x, units[i])
}

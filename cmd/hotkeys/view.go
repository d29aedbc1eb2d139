package main

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

// Control sequences of terminals, as all have that are in use.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // other screen, no cursor, no wrapping of long lines
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

// redrawAtMost is how often a screen is drawn, however fast a log is replayed.
const redrawAtMost = 40 * time.Millisecond

// view shows frames on standard output.
type view struct {
	out      io.Writer
	printer  printer
	terminal func() (size, bool)
	screen   bool   // a window is redrawn in place
	title    string // of the screen
	buffer   bytes.Buffer

	drawn     time.Time // last, by the clock
	shown     bool      // anything
	counted   uint64    // keys, of the last frame shown
	lastLines uint64
	lastAt    time.Time
	rate      float64 // lines a second between the last two frames
}

func (p *process) newView(o *options) *view {
	v := &view{out: p.stdout, terminal: func() (size, bool) { return p.terminal(p.stdout) }}
	_, terminal := v.terminal()
	switch o.format {
	case "json":
		v.printer = jsonPrinter{}
	case "csv":
		v.printer = &csvPrinter{terminal: terminal}
	default:
		v.printer = table{}
		if v.screen = o.window > 0 && terminal; o.window > 0 && !terminal {
			v.printer = plainLines{}
		}
	}
	if v.screen {
		v.title = fmt.Sprintf("last %v, %d slots of %v", o.window, o.slots, o.slot())
	}
	return v
}

// show shows a frame of a window.
func (v *view) show(f *frame) error {
	v.shown, v.counted = true, f.counted
	if !v.screen {
		return v.write(f)
	}
	if time.Since(v.drawn) < redrawAtMost {
		return nil
	}
	v.buffer.Reset()
	if v.drawn.IsZero() {
		v.buffer.WriteString(enterScreen)
	}
	v.draw(f)
	v.drawn = time.Now()
	_, err := v.out.Write(v.buffer.Bytes())
	return err
}

// showsSlots reports whether show shows the series of a frame's keys.
func (v *view) showsSlots() bool {
	if !v.screen {
		return showsSlots(v.printer)
	}
	s, _ := v.terminal()
	return showsSlots(table{width: s.columns})
}

// draw draws a screen over the one before.
func (v *view) draw(f *frame) {
	if passed := f.at.Sub(v.lastAt); passed > 0 && !v.lastAt.IsZero() {
		v.rate = float64(f.lines-v.lastLines) / passed.Seconds()
	}
	v.lastAt, v.lastLines = f.at, f.lines
	var body bytes.Buffer
	s, _ := v.terminal()
	fmt.Fprintf(&body, "hotkeys  %s  %s  %.0f lines/s  %s lines\n\n",
		f.at.Format(time.DateTime), v.title, v.rate, grouped(f.lines))
	table{width: s.columns}.print(&body, f)
	v.buffer.WriteString(home)
	rows := bytes.Split(bytes.TrimSuffix(body.Bytes(), []byte("\n")), []byte("\n"))
	for i, row := range rows[:min(len(rows), max(s.lines, 1))] {
		if i > 0 {
			v.buffer.WriteByte('\n')
		}
		v.buffer.Write(row)
		v.buffer.WriteString(clearLine)
	}
	v.buffer.WriteString(clearRest)
}

// leave gives the terminal back as it was.
func (v *view) leave() {
	if !v.drawn.IsZero() {
		io.WriteString(v.out, leaveScreen)
		v.drawn = time.Time{}
	}
}

// write prints a frame, and nothing else, below what there is.
func (v *view) write(f *frame) error {
	v.buffer.Reset()
	v.printer.print(&v.buffer, f)
	_, err := v.out.Write(v.buffer.Bytes())
	return err
}

package main

import (
	"bytes"
	"io"
)

// maxLine is the length at which a line is cut. It bounds memory: a reader
// holds one buffer of that size, whatever comes.
const maxLine = 256 << 10

// lines reads a stream line by line.
type lines struct {
	r          io.Reader
	buffer     []byte // two more than a line may have: for a return, and to see more
	start, end int    // of what is in the buffer and was not returned
	scanned    int    // up to which there is no line feed
	rest       bool   // what comes next is the rest of a line that was cut
	err        error
	cut        uint64 // lines cut
}

func newLines() *lines { return &lines{buffer: make([]byte, maxLine+2)} }

// reset makes l read r.
func (l *lines) reset(r io.Reader) { *l = lines{r: r, buffer: l.buffer, cut: l.cut} }

// next returns the next line without its end, which is a line feed with or
// without a carriage return before it, or the end of the stream. It is valid
// until the next call. ok is false at the end of the stream, or an error; what
// an error leaves of a line is not one.
func (l *lines) next() (line []byte, ok bool) {
	for {
		if i := bytes.IndexByte(l.buffer[l.scanned:l.end], '\n'); i >= 0 {
			line = l.buffer[l.start : l.scanned+i]
			l.start = l.scanned + i + 1
			l.scanned = l.start
			if l.rest {
				l.rest = false
				continue
			}
			return l.finished(line), true
		}
		l.scanned = l.end
		switch {
		case !l.rest && l.start == 0 && l.end == len(l.buffer):
			l.rest = true
			l.start = l.end
			return l.finished(l.buffer), true
		case l.err != nil:
			line = l.buffer[l.start:l.end]
			l.start, l.scanned, l.end = 0, 0, 0
			if len(line) == 0 || l.rest || l.err != io.EOF {
				return nil, false
			}
			return l.finished(line), true
		case l.rest:
			l.start, l.scanned, l.end = 0, 0, 0
		}
		l.fill()
	}
}

// finished returns a line without a carriage return at its end, and cut if it is
// too long.
func (l *lines) finished(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if longest := len(l.buffer) - 2; len(line) > longest {
		l.cut++
		line = line[:longest]
	}
	return line
}

// fill moves the line that has begun to the front of the buffer and reads more.
func (l *lines) fill() {
	if l.start > 0 {
		copy(l.buffer, l.buffer[l.start:l.end])
		l.end -= l.start
		l.scanned -= l.start
		l.start = 0
	}
	for empty := 0; ; empty++ {
		n, err := l.r.Read(l.buffer[l.end:])
		l.end += n
		if err == nil && n == 0 && empty == 100 {
			err = io.ErrNoProgress
		}
		if l.err = err; n > 0 || err != nil {
			break
		}
	}
}

// failure returns the error that ended the stream, nil if it was its end.
func (l *lines) failure() error {
	if l.err == io.EOF {
		return nil
	}
	return l.err
}

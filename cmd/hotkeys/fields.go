package main

import "bytes"

// maxField is the highest number of a field that a line can have: of empty ones.
const maxField = maxLine + 1

// isField reports whether n is the number of a field, from the front or the end.
func isField(n int) bool { return n != 0 && n >= -maxField && n <= maxField }

// fields splits lines at a separator, or at runs of blanks if there is none.
type fields struct {
	separator []byte
	key       int // from 1, or from -1 backwards; 0 is the whole line
	all       bool

	time, timeEnd int // first and last field of the time, 0 for none
}

func (f *fields) split(keys [][]byte, line []byte) (_ [][]byte, stamp []byte, ok bool) {
	if f.time != 0 {
		if stamp, ok = f.stamp(line); !ok {
			return keys, nil, false
		}
	}
	switch {
	case f.all:
		return f.appendAll(keys, line), stamp, true
	case f.key == 0:
		return append(keys, line), stamp, true
	}
	start, end, ok := f.find(line, f.key)
	if !ok {
		return keys, nil, false
	}
	return append(keys, line[start:end]), stamp, true
}

// stamp returns the text of the time, which must be asked for.
func (f *fields) stamp(line []byte) (_ []byte, ok bool) {
	from, _, found := f.find(line, f.time)
	_, to, complete := f.find(line, f.timeEnd)
	if !found || !complete {
		return nil, false
	}
	return line[from:to], true
}

// find returns where field n is.
func (f *fields) find(line []byte, n int) (start, end int, ok bool) {
	switch {
	case len(f.separator) > 0 && n > 0:
		return separatedField(line, f.separator, n)
	case len(f.separator) > 0:
		return lastSeparatedField(line, f.separator, -n)
	case n > 0:
		return blankField(line, n)
	}
	return lastBlankField(line, -n)
}

func (f *fields) appendAll(keys [][]byte, line []byte) [][]byte {
	next := blankField
	if len(f.separator) > 0 {
		next = func(line []byte, n int) (start, end int, ok bool) {
			return separatedField(line, f.separator, n)
		}
	}
	for {
		start, end, ok := next(line, 1)
		if !ok {
			return keys
		}
		keys = append(keys, line[start:end])
		if line = line[end:]; len(f.separator) == 0 {
			continue
		}
		if len(line) == 0 {
			return keys
		}
		line = line[len(f.separator):]
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// blankField returns where the n-th field is, n > 0, fields being what runs of
// blanks separate.
func blankField(line []byte, n int) (start, end int, ok bool) {
	for i := 0; ; n-- {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) {
			return 0, 0, false
		}
		start = i
		for i < len(line) && !isBlank(line[i]) {
			i++
		}
		if n == 1 {
			return start, i, true
		}
	}
}

// lastBlankField does what blankField does, counting from the end.
func lastBlankField(line []byte, n int) (start, end int, ok bool) {
	for i := len(line); ; n-- {
		for i > 0 && isBlank(line[i-1]) {
			i--
		}
		if i == 0 {
			return 0, 0, false
		}
		end = i
		for i > 0 && !isBlank(line[i-1]) {
			i--
		}
		if n == 1 {
			return i, end, true
		}
	}
}

// separatedField returns where the n-th field is, n > 0. Each separator ends a
// field, so fields may be empty.
func separatedField(line, separator []byte, n int) (start, end int, ok bool) {
	for ; ; n-- {
		i := bytes.Index(line[start:], separator)
		switch {
		case i < 0:
			return start, len(line), n == 1
		case n == 1:
			return start, start + i, true
		}
		start += i + len(separator)
	}
}

// lastSeparatedField does what separatedField does, counting from the end.
func lastSeparatedField(line, separator []byte, n int) (start, end int, ok bool) {
	for end = len(line); ; n-- {
		i := bytes.LastIndex(line[:end], separator)
		switch {
		case i < 0:
			return 0, end, n == 1
		case n == 1:
			return i + len(separator), end, true
		}
		end = i
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// jsonPath says where in a JSON text a value is: names of members of objects
// and indexes into arrays, from the outside in.
type jsonPath []string

// parsePath splits a path at its dots. A backslash takes the meaning from a dot
// or a backslash that follows.
func parsePath(text string) (jsonPath, error) {
	var path jsonPath
	var name strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == '.' || text[i+1] == '\\'):
			i++
			name.WriteByte(text[i])
		case c == '.':
			path = append(path, name.String())
			name.Reset()
		default:
			name.WriteByte(c)
		}
	}
	path = append(path, name.String())
	for _, name := range path {
		if name == "" {
			return nil, fmt.Errorf("%q: a name in the path is empty", text)
		}
	}
	return path, nil
}

// jsonLines finds the keys of lines that are JSON objects or arrays.
type jsonLines struct{ key, time jsonPath }

func newJSON(o *options) (*jsonLines, error) {
	j := &jsonLines{}
	var err error
	if j.key, err = parsePath(o.path); err != nil {
		return nil, fmt.Errorf("-json %w", err)
	}
	if o.time != "" {
		if j.time, err = parsePath(o.time); err != nil {
			return nil, fmt.Errorf("-time %w", err)
		}
	}
	return j, nil
}

func (j *jsonLines) split(keys [][]byte, line []byte) (_ [][]byte, stamp []byte, ok bool) {
	if j.time != nil {
		if stamp, ok = j.time.find(line); !ok {
			return keys, nil, false
		}
	}
	key, ok := j.key.find(line)
	if !ok {
		return keys, nil, false
	}
	return append(keys, key), stamp, true
}

// find returns the value at p in a JSON text: of a string what it stands for,
// of anything else the text. ok is false if there is none, or null, or if the
// text is not JSON up to the end of the value; what follows is not looked at.
// Of members of the same name the first counts.
//
// It reads no more than it must and allocates only if the string has escapes:
// that makes it several times as fast as decoding the line.
func (p jsonPath) find(text []byte) (value []byte, ok bool) {
	s := jsonScanner{text: text}
	for _, name := range p {
		if !s.enter(name) {
			return nil, false
		}
	}
	s.space()
	start := s.at
	if !s.value() {
		return nil, false
	}
	value = text[start:s.at]
	switch {
	case value[0] == '"':
		return unquote(value)
	case value[0] == '{' || value[0] == '[':
		return value, json.Valid(value)
	}
	return value, string(value) != "null" && json.Valid(value)
}

// unquote returns what a JSON string stands for.
func unquote(quoted []byte) (value []byte, ok bool) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		value = quoted[1 : len(quoted)-1]
		return value, bytes.IndexFunc(value, func(r rune) bool { return r < ' ' }) < 0
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return nil, false
	}
	return []byte(s), true
}

// jsonScanner walks over a JSON text. Its methods report whether they found
// what they look for, and leave at behind that.
type jsonScanner struct {
	text []byte
	at   int
}

func (s *jsonScanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// next skips white space and the byte c, if that follows.
func (s *jsonScanner) next(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// enter goes to the value of a member of the object, or of an element of the
// array, that follows.
func (s *jsonScanner) enter(name string) bool {
	switch {
	case s.next('{'):
		return s.member(name)
	case s.next('['):
		index, err := strconv.ParseUint(name, 10, 31)
		return err == nil && s.element(int(index))
	}
	return false
}

func (s *jsonScanner) member(name string) bool {
	for {
		s.space()
		start := s.at
		if !s.quoted() {
			return false
		}
		quoted := s.text[start:s.at]
		if !s.next(':') {
			return false
		}
		if isName(quoted, name) {
			return true
		}
		if s.space(); !s.value() || !s.next(',') {
			return false
		}
	}
}

// isName reports whether a JSON string stands for name.
func isName(quoted []byte, name string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == name
	}
	unquoted, ok := unquote(quoted)
	return ok && string(unquoted) == name
}

func (s *jsonScanner) element(index int) bool {
	for ; index > 0; index-- {
		if s.space(); !s.value() || !s.next(',') {
			return false
		}
	}
	return true
}

// quoted skips a string.
func (s *jsonScanner) quoted() bool {
	if s.at == len(s.text) || s.text[s.at] != '"' {
		return false
	}
	for i := s.at + 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '"':
			s.at = i + 1
			return true
		case '\\':
			i++
		}
	}
	return false
}

// value skips a value. It counts braces and brackets but does not match them.
func (s *jsonScanner) value() bool {
	depth := 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			if !s.quoted() {
				return false
			}
			if depth == 0 {
				return true
			}
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth--; depth < 0 {
				return false
			}
			if s.at++; depth == 0 {
				return true
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return false
			}
			s.at++
		default:
			s.scalar()
			if depth == 0 {
				return true
			}
		}
	}
	return false
}

// scalar skips a number or a word.
func (s *jsonScanner) scalar() {
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case ',', ':', ' ', '\t', '\r', '\n', '}', ']', '{', '[', '"':
			return
		}
	}
}

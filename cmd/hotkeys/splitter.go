package main

import (
	"fmt"
	"strconv"
	"strings"
)

// splitter finds the keys of lines.
type splitter interface {
	// split appends the keys of a line to keys and returns the text of its
	// time, if it is asked for that. ok is false if the line is not of the
	// form expected, or its keys have no time. What it returns is valid until
	// the line changes or the next call.
	split(keys [][]byte, line []byte) (_ [][]byte, stamp []byte, ok bool)
}

// newSplitter returns what the options ask for. They must be valid.
func newSplitter(o *options) (splitter, error) {
	switch {
	case o.pattern != nil:
		return newPattern(o)
	case o.path != "" || o.set["json"]:
		return newJSON(o)
	}
	f := fields{separator: []byte(o.separator), key: o.field, all: o.all}
	if o.time != "" {
		if err := f.setTime(o.time, o.layout); err != nil {
			return nil, err
		}
	}
	if o.monitor {
		return &monitor{stamps: f}, nil
	}
	return &f, nil
}

// setTime sets the fields that hold the time of a line: as many as the layout
// has, from the first on.
func (f *fields) setTime(first, layout string) error {
	n, err := strconv.Atoi(first)
	if err != nil || !isField(n) {
		return fmt.Errorf("-time %s: must be the number of a field, 1 to %d, or -1 to -%d", first, maxField, maxField)
	}
	layout = layoutOf(layout)
	count := len(strings.Fields(layout))
	if len(f.separator) > 0 {
		count = 1 + strings.Count(layout, string(f.separator))
	}
	f.time, f.timeEnd = n, n+max(count, 1)-1
	if n < 0 && f.timeEnd >= 0 {
		return fmt.Errorf("-time %s: the layout has %d fields", first, count)
	}
	return nil
}

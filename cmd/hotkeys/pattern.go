package main

import (
	"fmt"
	"regexp"
	"strconv"
)

// pattern finds the keys of lines by a regular expression.
type pattern struct {
	re   *regexp.Regexp
	all  bool // every match, not just the first
	key  int  // group
	time int  // group, or none
}

// noGroup stands for a group that there is not.
const noGroup = -1

func newPattern(o *options) (*pattern, error) {
	p := &pattern{re: o.pattern, all: o.all, time: noGroup}
	if p.re.NumSubexp() > 0 {
		p.key = max(p.re.SubexpIndex("key"), 1)
	}
	if o.time == "" {
		return p, nil
	}
	p.time = p.re.SubexpIndex(o.time)
	if n, err := strconv.Atoi(o.time); err == nil && n >= 0 && n <= p.re.NumSubexp() {
		p.time = n
	}
	if p.time < 0 {
		return nil, fmt.Errorf("-time %s: -re has no such group", o.time)
	}
	if p.time == 1 && p.key == 1 && p.re.NumSubexp() > 1 && p.re.SubexpIndex("key") < 0 {
		p.key = 2 // the first group that is not the time
	}
	return p, nil
}

func (p *pattern) split(keys [][]byte, line []byte) (_ [][]byte, stamp []byte, ok bool) {
	if !p.all {
		return p.appendMatch(keys, line, p.re.FindSubmatchIndex(line))
	}
	for _, match := range p.re.FindAllSubmatchIndex(line, -1) {
		var at []byte
		var found bool
		if keys, at, found = p.appendMatch(keys, line, match); found && !ok {
			stamp, ok = at, true // the time of the line is that of its first match
		}
	}
	return keys, stamp, ok
}

// appendMatch appends the key of one match, as FindSubmatchIndex returns it.
func (p *pattern) appendMatch(keys [][]byte, line []byte, match []int) (_ [][]byte, stamp []byte, ok bool) {
	if match == nil || match[2*p.key] < 0 {
		return keys, nil, false
	}
	if p.time != noGroup {
		if match[2*p.time] < 0 {
			return keys, nil, false
		}
		stamp = line[match[2*p.time]:match[2*p.time+1]]
	}
	return append(keys, line[match[2*p.key]:match[2*p.key+1]]), stamp, true
}

package hotspot

import (
	"errors"
	"unicode/utf8"
)

// glob is a pattern in the language of shells and of Redis, in which * takes
// slashes too. It matches a whole text, in O(len(text) x len(pattern)) at
// worst: only the latest star is ever tried again.
type glob []globPart

// globPart takes one character, or is a star. A byte that is not UTF-8 is one
// character, utf8.RuneError, as package regexp has it.
type globPart struct {
	star, any, negated bool
	ranges             []rune // pairs of first and last
}

func newGlob(pattern string) (glob, error) {
	var g glob
	for i := 0; i < len(pattern); {
		r, size := utf8.DecodeRuneInString(pattern[i:])
		i += size
		switch r {
		case '*':
			if len(g) == 0 || !g[len(g)-1].star {
				g = append(g, globPart{star: true})
			}
			continue
		case '?':
			g = append(g, globPart{any: true})
			continue
		case '[':
			part, size, err := newGlobClass(pattern[i:])
			if err != nil {
				return nil, err
			}
			i += size
			g = append(g, part)
			continue
		case '\\':
			if i == len(pattern) {
				return nil, errors.New(`\ at the end`)
			}
			r, size = utf8.DecodeRuneInString(pattern[i:])
			i += size
		}
		g = append(g, globPart{ranges: []rune{r, r}})
	}
	return g, nil
}

// newGlobClass parses a class from after its [ on, and returns how many bytes
// that took.
func newGlobClass(s string) (part globPart, size int, err error) {
	i := 0
	next := func() (r rune, escaped, ok bool) {
		if i == len(s) {
			return 0, false, false
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if r == '\\' && i < len(s) {
			r, size = utf8.DecodeRuneInString(s[i:])
			i += size
			return r, true, true
		}
		return r, false, true
	}
	if len(s) > 0 && s[0] == '^' {
		part.negated, i = true, 1
	}
	for {
		first, escaped, ok := next()
		switch {
		case !ok:
			return part, 0, errors.New("[ without ]")
		case first == ']' && !escaped:
			if len(part.ranges) == 0 {
				return part, 0, errors.New("[] is empty")
			}
			return part, i, nil
		}
		last := first
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			i++
			last, _, _ = next()
		}
		if last < first {
			return part, 0, errors.New("[ with a range that ends before it begins")
		}
		part.ranges = append(part.ranges, first, last)
	}
}

// takes reports whether a part that is no star takes a character.
func (p *globPart) takes(r rune) bool {
	if p.any {
		return true
	}
	for i := 0; i < len(p.ranges); i += 2 {
		if p.ranges[i] <= r && r <= p.ranges[i+1] {
			return !p.negated
		}
	}
	return p.negated
}

func (g glob) match(text string) bool {
	part, at := 0, 0
	star, from := -1, 0 // the latest star, and where what follows it was last tried
	for {
		if part < len(g) && g[part].star {
			star, from = part, at
			part++
			continue
		}
		if at == len(text) {
			return part == len(g)
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		if part < len(g) && g[part].takes(r) {
			part, at = part+1, at+size
			continue
		}
		if star < 0 {
			return false
		}
		_, size = utf8.DecodeRuneInString(text[from:])
		from += size
		part, at = star+1, from
	}
}

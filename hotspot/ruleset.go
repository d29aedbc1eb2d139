package hotspot

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"
)

// ruleset is a list of rules made ready. It does not change.
type ruleset[K comparable] struct {
	rules    []Rule
	exact    map[string]int // the first rule with that text
	patterns []pattern      // in the order of rules
	text     func(K) string

	// allowed and denied are the keys of exact rules, if keys are strings that
	// are their own text. The index of a Set has them.
	allowed, denied []K

	// verdicts is nil if no key can be allowed or denied but these.
	verdicts *verdicts
}

// pattern is a rule that is not exact.
type pattern struct {
	rule  int
	match func(text string) bool
}

// newRuleset makes rules ready for a source with a window of some slots, 0 if
// it has none. The error names the rule.
func newRuleset[K comparable](rules []Rule, text func(K) string, r *reader[K], topN int) (*ruleset[K], error) {
	s := &ruleset[K]{rules: slices.Clone(rules), exact: make(map[string]int), text: text}
	for i := range s.rules {
		if err := s.add(i, r); err != nil {
			return nil, ruleError(i, s.rules[i].Name, err)
		}
	}
	plain := text == nil && reflect.TypeFor[K]().Kind() == reflect.String
	if text == nil {
		s.text = textOf[K]
	}
	for i := range s.rules {
		rule := &s.rules[i]
		if rule.Action == Detect {
			continue
		}
		if rule.Match != Exact || !plain {
			s.verdicts = new(verdicts)
		} else if s.find(rule.Pattern) == rule {
			key := *(*K)(unsafe.Pointer(&rule.Pattern))
			if rule.Action == Deny {
				s.denied = append(s.denied, key)
				continue
			}
			if s.allowed = append(s.allowed, key); len(s.allowed) > topN {
				return nil, ruleError(i, rule.Name, wrong("Action", rule.Action, fmt.Sprintf("more exact keys than TopN = %d", topN)))
			}
		}
	}
	return s, nil
}

func ruleError(i int, name string, err error) error {
	return fmt.Errorf("hotspot: rule %d (%q): %w", i+1, name, err)
}

// add makes rule i ready.
func (s *ruleset[K]) add(i int, r *reader[K]) error {
	rule := &s.rules[i]
	if err := rule.fault(r.slots); err != nil {
		return err
	}
	if err := r.able(rule.limits()); err != nil {
		return err
	}
	p := rule.Pattern
	var match func(string) bool
	switch rule.Match {
	case Exact:
		if _, ok := s.exact[p]; !ok {
			s.exact[p] = i
		}
		return nil
	case Prefix:
		match = func(text string) bool { return strings.HasPrefix(text, p) }
	case Suffix:
		match = func(text string) bool { return strings.HasSuffix(text, p) }
	case Contains:
		match = func(text string) bool { return strings.Contains(text, p) }
	case Glob:
		g, err := newGlob(p)
		if err != nil {
			return wrong("Pattern", strconv.Quote(p), err)
		}
		match = g.match
	case Regexp:
		re, err := regexp.Compile(p)
		if err != nil {
			return wrong("Pattern", strconv.Quote(p), err)
		}
		match = re.MatchString
	}
	s.patterns = append(s.patterns, pattern{i, match})
	return nil
}

// find returns the first rule that matches a text, nil if none does.
func (s *ruleset[K]) find(text string) *Rule {
	first, ok := s.exact[text]
	if !ok {
		first = len(s.rules)
	}
	for i := range s.patterns {
		p := &s.patterns[i]
		if p.rule > first {
			break
		}
		if p.match(text) {
			return &s.rules[p.rule]
		}
	}
	if first == len(s.rules) {
		return nil
	}
	return &s.rules[first]
}

// of returns the first rule that matches a key, nil if none does.
func (s *ruleset[K]) of(key K) *Rule {
	if len(s.rules) == 0 {
		return nil
	}
	return s.find(s.text(key))
}

// verdict is what rules say of a key that is not in a Set.
type verdict uint64

const (
	cold    verdict = 1 + iota // nothing
	allowed                    // it is hot
	denied                     // it is not to be counted
)

// verdict returns what the rules say of a key that is not in the index of a
// Set. s.verdicts must not be nil.
func (s *ruleset[K]) verdict(key K, hash uint64, keys *keys[K]) verdict {
	if v := s.verdicts.find(hash); v != 0 {
		return v
	}
	if !keys.order.Valid(key) { // nothing to remember: all such have one hash, or any
		return cold
	}
	v := cold
	if rule := s.of(key); rule != nil {
		switch rule.Action {
		case Allow:
			v = allowed
		case Deny:
			v = denied
		}
	}
	s.verdicts.note(hash, v)
	return v
}

// verdicts remembers verdicts by hash, for as many keys as it has words: what
// comes new to a word takes the place of what was there. A word is 62 bits of
// the hash and the verdict, so that it needs no lock.
type verdicts [1 << verdictBits]atomic.Uint64

const verdictBits = 13

func (v *verdicts) find(hash uint64) verdict {
	if word := v[hash>>(64-verdictBits)].Load(); (word^hash)&^3 == 0 {
		return verdict(word & 3)
	}
	return 0
}

func (v *verdicts) note(hash uint64, x verdict) {
	v[hash>>(64-verdictBits)].Store(hash&^3 | uint64(x))
}

// textOf is the default of Config.Text.
func textOf[K comparable](key K) string {
	if reflect.TypeFor[K]().Kind() == reflect.String {
		return *(*string)(unsafe.Pointer(&key))
	}
	return sprint(key)
}

// sprint is apart so that only keys that need it escape.
func sprint(key any) string { return fmt.Sprint(key) }

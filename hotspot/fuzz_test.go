package hotspot

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// globRegexp returns what a glob means as a regular expression.
func globRegexp(pattern string) string {
	var out strings.Builder
	out.WriteString(`(?s)\A`)
	rest := pattern
	next := func() string {
		_, size := utf8.DecodeRuneInString(rest)
		c := rest[:size]
		rest = rest[size:]
		return c
	}
	quote := func(c string) string {
		if !utf8.ValidString(c) {
			return `\x{FFFD}` // as package regexp reads such a byte
		}
		return regexp.QuoteMeta(c)
	}
	for rest != "" {
		switch c := next(); c {
		case "*":
			out.WriteString(".*")
		case "?":
			out.WriteString(".")
		case "[":
			out.WriteString("[")
			if strings.HasPrefix(rest, "^") {
				out.WriteString(next())
			}
			for !strings.HasPrefix(rest, "]") {
				c := next()
				if c == `\` {
					c = next()
				}
				out.WriteString(strings.ReplaceAll(strings.ReplaceAll(quote(c), "-", `\-`), "&", `\&`))
				if strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "-]") && len(rest) > 1 {
					next()
					c := next()
					if c == `\` {
						c = next()
					}
					out.WriteString("-" + strings.ReplaceAll(quote(c), "-", `\-`))
				}
			}
			out.WriteString(next())
		case `\`:
			out.WriteString(quote(next()))
		default:
			out.WriteString(quote(c))
		}
	}
	out.WriteString(`\z`)
	return out.String()
}

// FuzzGlob compares a glob with the regular expression that means the same.
func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"*", "a*b?c", "[a-c]*", "[^a-c]?", `\*\?`, "**a**", `[\]a-]x`, "é*[à-ü]", "[\xff]*", "a\xff?", "[--/]", "*a*a*a*a*b"} {
		for _, text := range []string{"", "abc", "a/b/c", "*?", "éàü", "\xff\xfe", "aaaaaaaaaaaaaaaaaaaa"} {
			f.Add(pattern, text)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		g, err := newGlob(pattern)
		if err != nil {
			return
		}
		want, err := regexp.Compile(globRegexp(pattern))
		if err != nil {
			t.Skip(err) // too large for package regexp
		}
		if got := g.match(text); got != want.MatchString(text) {
			t.Errorf("glob %q of %q: got %v, want %v as of %v", pattern, text, got, !got, want)
		}
	})
}

// FuzzRules has rules of any kind decide about any key, and compares them with
// asking each in turn. What is remembered of a key must not change the answer.
func FuzzRules(f *testing.F) {
	f.Add("user:*", "user:1", "x", uint8(0), uint8(4), uint8(1), uint8(0))
	f.Add("a", "a", "a", uint8(1), uint8(0), uint8(2), uint8(0))
	f.Add("^[a-z]+$", "abc", "ab", uint8(2), uint8(5), uint8(1), uint8(1))
	f.Add("[", "", "[", uint8(2), uint8(4), uint8(0), uint8(3))
	f.Add("", "\xff", "\xff", uint8(9), uint8(9), uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, one, key, two string, actionOne, matchOne, actionTwo, matchTwo uint8) {
		rules := []Rule{
			{Name: "one", Action: Action(actionOne % 4), Match: Match(matchOne % 7), Pattern: one},
			{Name: "two", Action: Action(actionTwo % 4), Match: Match(matchTwo % 7), Pattern: two},
		}
		d, err := New(Config[string]{Threshold: 10, TopN: 3, Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		before := d.Set()
		if err := d.SetRules(rules); err != nil {
			if !strings.Contains(err.Error(), `"one"`) && !strings.Contains(err.Error(), `"two"`) {
				t.Errorf("got %v, which names no rule", err)
			}
			if d.Set() != before {
				t.Errorf("a failed SetRules has published something")
			}
			return
		}
		want := Detect
		for _, rule := range rules {
			if matches(rule, key) {
				want = rule.Action
				break
			}
		}
		for range 3 {
			if got := d.Hot(key); got != (want == Allow) {
				t.Fatalf("%+v: Hot(%q): got %v, want %v", rules, key, got, want)
			}
			d.ObserveAt(start, key, 5)
		}
		change := d.ScanAt(start)
		if counted := change.Total == 15; counted == (want == Deny) {
			t.Errorf("%+v: %q was counted: %v, want %v", rules, key, counted, want)
		}
		if _, hot := d.Set().Find(key); hot == (want == Deny) {
			t.Errorf("%+v: %q is in the set: %v, want %v", rules, key, hot, want)
		}
	})
}

// matches says what a good rule says of a text, the slow way.
func matches(rule Rule, text string) bool {
	switch rule.Match {
	case Exact:
		return text == rule.Pattern
	case Prefix:
		return len(text) >= len(rule.Pattern) && text[:len(rule.Pattern)] == rule.Pattern
	case Suffix:
		return len(text) >= len(rule.Pattern) && text[len(text)-len(rule.Pattern):] == rule.Pattern
	case Contains:
		return strings.Count(text, rule.Pattern) > 0
	case Glob:
		re, err := regexp.Compile(globRegexp(rule.Pattern))
		return err == nil && re.MatchString(text)
	}
	return regexp.MustCompile(rule.Pattern).MatchString(text)
}

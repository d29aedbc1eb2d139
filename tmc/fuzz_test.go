package tmc

import (
	"slices"
	"strings"
	"testing"
)

// FuzzWritten finds the keys of any command: each is one of its arguments, and a
// command that names some key is not taken for one that changes nothing, unless
// it is known to.
func FuzzWritten(f *testing.F) {
	for _, line := range []string{
		"set a 1", "get a", "lmpop 2 a b left", "eval s 1 a", "sort a store b", "xreadgroup group g c streams s >", "migrate h 1 a 0 1",
		"zunionstore d 1 a", "unknown a b", "mset a", "blpop", "rename", "", "msetex 99999999999 a b",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := split(line)
		name := nameOf(args)
		keys, effect := written(name, args, nil)
		for _, key := range keys {
			if !slices.Contains(args[1:], any(key)) {
				t.Errorf("%q: got key %q, which is not an argument", line, key)
			}
		}
		if c, known := commands[name]; effect == passes && !(known && c.effect == passes) {
			t.Errorf("%q: passes", line)
		}
		if upper := split(strings.ToUpper(name)); len(upper) == 1 && strings.ToLower(strings.ToUpper(name)) == name {
			if _, again := written(nameOf(upper), append(upper, args[1:]...), nil); again != effect {
				t.Errorf("%q: got effect %d in capitals, %d otherwise", line, again, effect)
			}
		}
	})
}

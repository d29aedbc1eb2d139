package main

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"-k", "3", "a", "-f", "-1", "-", "-d=\\t", "--", "-x", "b"})
	require.NoError(t, err)
	require.Equal(t, 3, o.k)
	require.Equal(t, -1, o.field)
	require.Equal(t, "\t", o.separator)
	require.Equal(t, []string{"a", "-", "-x", "b"}, o.files)

	o, err = parse([]string{"-d", "--", "a", "--f", "1", "-q", "--", "--", "-k"})
	require.NoError(t, err)
	require.Equal(t, "--", o.separator, "a value, not the end of the flags")
	require.Equal(t, 1, o.field)
	require.True(t, o.quiet)
	require.Equal(t, []string{"a", "--", "-k"}, o.files)

	o, err = parse([]string{"merge", "-save", "--", "--", "-o", "json"})
	require.NoError(t, err)
	require.Equal(t, "--", o.save)
	require.Equal(t, []string{"-o", "json"}, o.files)

	o, err = parse([]string{"-window", "30s", "-time", "1"})
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, o.slot())
	require.Equal(t, "rfc3339", o.layout)

	o, err = parse([]string{"-monitor", "-window", "30s", "-time", "1"})
	require.NoError(t, err)
	require.Equal(t, "unix", o.layout)
}

// Bad arguments are told by name and value, before anything is read.
func TestBadArguments(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-k 0", "-k 0: must be 1 to 1000000"},
		{"-k -1", "-k -1"},
		{"-k 1000001", "-k 1000001"},
		{"-k 9223372036854775808", `invalid value "9223372036854775808" for flag -k`},
		{"-k x", `invalid value "x" for flag -k`},
		{"-z", "flag provided but not defined: -z"},
		{"a -k", "flag needs an argument: -k"},
		{"---k 1", "bad flag syntax: ---k"},
		{"-o xml", "-o xml: must be table, json or csv"},
		{"-f 0", "-f 0: must be 1 to 262145, or -1 to -262145"},
		{"-f 262146", "-f 262146"},
		{fmt.Sprint("-f ", math.MinInt), fmt.Sprint("-f ", math.MinInt)},
		{"-window 10s -time -9223372036854775808", "-time -9223372036854775808: must be the number of a field"},
		{"-window 10s -time 9223372036854775807", "-time 9223372036854775807"},
		{"-f 1 -re a", "-f and -re exclude each other"},
		{"-f 1 -json a", "-f and -json exclude each other"},
		{"-d , -monitor", "-d and -monitor exclude each other"},
		{"-all -json a", "-all and -json exclude each other"},
		{"-all -f 2", "-all and -f exclude each other"},
		{"-re a -json b", "-re and -json exclude each other"},
		{"-json a -monitor", "-json and -monitor exclude each other"},
		{"-re (", "-re: error parsing regexp"},
		{"-json a..b", `-json "a..b": a name in the path is empty`},
		{"-json=", `-json "": a name`},
		{"-d ,", "-d needs -f or -all"},
		{"-f 1 -d=", "-d: must not be empty"},
		{"-f 1 -d=\\n", "-d \"\\n\": must not contain a line feed"},
		{"-slots 5", "-slots needs -window"},
		{"-every 5s", "-every needs -window"},
		{"-time 1", "-time needs -window"},
		{"-layout clf", "-layout needs -time"},
		{"-speed 2", "-speed needs -time"},
		{"-window 0s", "-window 0s: must be positive"},
		{"-window -1s", "-window -1s: must be positive"},
		{"-window 5", `invalid value "5" for flag -window`},
		{"-window 10s -slots 0", "-slots 0: must be 1 to 65536"},
		{"-window 20h -slots 65537", "-slots 65537"},
		{"-window 10s -slots 3", "-slots 3: must divide -window 10s"},
		{"-window 1000000h -slots 1", "-window 1000000h0m0s -slots 1 -k 10: window: Slot = 1000000h0m0s: "},
		{"-window 65536s -slots 65536 -k 100000", "-window 18h12m16s -slots 65536 -k 100000: window: Candidates = 400000: "},
		{"-window 10s -every 0s", "-every 0s: must be positive"},
		{"-window 10s -every -1s", "-every -1s"},
		{"-window 10s -save x", "-save: only a count of the whole stream"},
		{"-window 10s -load x", "-load: only a count of the whole stream"},
		{"-window 10s -time=", "-time: must not be empty"},
		{"-window 10s -time x", "-time x: must be the number of a field"},
		{"-window 10s -time 0", "-time 0"},
		{"-window 10s -time -1 -layout clf", "-time -1: the layout has 2 fields"},
		{"-window 10s -re a(b) -time 2", "-time 2: -re has no such group"},
		{"-window 10s -re a(b) -time at", "-time at: -re has no such group"},
		{"-window 10s -json a -time a.", "-time \"a.\": a name"},
		{"-window 10s -time 1 -speed 0", "-speed 0: must be 1e-06 to 1e+09"},
		{"-window 10s -time 1 -speed -1", "-speed -1"},
		{"-window 10s -time 1 -speed 1e-12", "-speed 1e-12: must be 1e-06 to 1e+09"},
		{"-window 10s -time 1 -speed 1e10", "-speed 1e+10"},
		{"-window 10s -time 1 -speed NaN", "-speed NaN"},
		{"-window 10s -time 1 -speed Inf", "-speed +Inf"},
		{"-window 10s -time 1 -layout=", "-layout: must not be empty"},
		{"-load=", "-load: no file name"},
		{"-save=", "-save: no file name"},
		{"-load x -seed 1", "-seed: a sketch that is loaded has its own"},
		{"merge", "merge: no files of sketches"},
		{"merge -f 1 a", "flag provided but not defined: -f"},
		{"merge -k 0 a", "-k 0"},
	} {
		t.Run(test.args, func(t *testing.T) {
			got := run("a\n", strings.Fields(test.args)...)
			require.Equal(t, statusUsage, got.status)
			require.Empty(t, got.stdout)
			require.Contains(t, got.stderr, "hotkeys: "+test.want)
			require.Contains(t, got.stderr, "usage: hotkeys ")
		})
	}
}

// flagNames returns the names of all flags.
func flagNames(merge bool) (names []string) {
	flags, _ := (&options{merge: merge}).flags()
	flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// Each flag is in the manual, and so is what holds for all.
func TestManual(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"merge", "-h"}} {
		got := run("", args...)
		require.Equal(t, result{stdout: manual}, got)
	}
	for _, merge := range []bool{false, true} {
		for _, name := range flagNames(merge) {
			require.Regexp(t, "-"+name+"[ ,]", manual)
		}
	}
	// TestAttackInflates of the library shows that it is so.
	require.Contains(t, strings.Join(strings.Fields(manual), " "), "No seed, secret or not, helps against keys")
	require.Contains(t, manual, grouped(maxLine)+" bytes")
	require.Contains(t, manual, grouped(maxKey))
	for line := range strings.Lines(manual) {
		require.LessOrEqual(t, len(line), 90, line)
		require.NotContains(t, line, "\t")
	}
	require.Contains(t, run("", "-version").stdout, "hotkeys ")
}

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file that is saved anew stays where it is, with the mode it has, and so do
// links to it.
func TestSaveKeepsLinksAndModes(t *testing.T) {
	inFolder(t, map[string]string{"log": "a\n"})
	require.NoError(t, os.Mkdir("folder", 0o777))
	if err := os.Symlink(filepath.Join("folder", "sketch"), "link"); err != nil {
		t.Skip(err)
	}
	want := result{stdout: "COUNT  ERROR    SHARE  KEY\n    1      0  100.00%  a\n"}
	sketch := filepath.Join("folder", "sketch")
	for _, mode := range []os.FileMode{0o666, 0o600, 0o640, 0o777} { // first there is none
		require.Equal(t, want, run("", "-save", "link", "log"), "%o", mode)
		target, err := os.Readlink("link")
		require.NoError(t, err)
		require.Equal(t, sketch, target)
		require.Equal(t, want, run("", "merge", sketch))
		require.NoError(t, os.Chmod(sketch, mode))
		before, err := os.Stat(sketch)
		require.NoError(t, err)

		require.Equal(t, want, run("", "-save", "link", "log"), "%o", mode)
		after, err := os.Stat(sketch)
		require.NoError(t, err)
		require.Equal(t, before.Mode(), after.Mode())
		require.False(t, os.SameFile(before, after), "it is replaced as a whole")
	}
	entries, err := os.ReadDir("folder")
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

// A sketch that keeps fewer keys than are asked for says so.
func TestSketchOfFewerKeys(t *testing.T) {
	var many strings.Builder
	for i := range 3 * leastTracked {
		many.WriteString(strconv.Itoa(i) + "\n")
	}
	inFolder(t, map[string]string{"many": many.String(), "few": "a\nb\n", "none": ""})
	require.Empty(t, run("", "-save", "many.hk", "many").stderr)
	require.Empty(t, run("", "-save", "few.hk", "few").stderr)
	const want = "hotkeys: -k 5000: the sketch tells the hottest 1,000 keys and no more\n"
	for _, test := range []struct{ args, want string }{
		{"merge -k 5000 many.hk", want},
		{"merge -k 5000 few.hk many.hk", want},
		{"-load many.hk -k 5000 none", want},
		{"-load many.hk -k 5000 -q none", ""},
		{"merge -k 1000 many.hk", ""},
		{"-load many.hk -k 1000 none", ""},
		{"merge -k 5000 few.hk", ""}, // all there are
		{"-k 2000 many", ""},
	} {
		got := run("", strings.Fields(test.args)...)
		require.Equal(t, statusOK, got.status, test.args)
		require.Equal(t, test.want, got.stderr, test.args)
	}
}

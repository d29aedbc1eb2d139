package main

import (
	"os"
	"path/filepath"
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

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadme runs the commands that README shows and requires the output shown
// below each, and that README has every flag.
func TestReadme(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	commands := regexp.MustCompile("(?s)```sh\ngo run ./cmd/hotkeys ([^\n]*)\n```\n\n```text\n(.*?)```").
		FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, commands)
	for _, c := range commands {
		got := run("", strings.Fields(c[1])...)
		require.Equal(t, result{stdout: c[2]}, got)
	}
	for _, name := range flagNames(false) {
		if name != "version" {
			require.Regexp(t, "`[^`]*-"+name+"\\b", string(text))
		}
	}
}

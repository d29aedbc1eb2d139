package heavykeeper

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadme runs the programs that README shows, each with the output shown
// below it, and requires that CI runs the commands it gives.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	script, err := os.ReadFile(filepath.Join(".ci", "run"))
	require.NoError(t, err)
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Log("programs not run: there is no go command")
	}
	blocks := regexp.MustCompile("(?s)```(go|text|sh)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	programs, commands := 0, 0
	for i, block := range blocks {
		switch {
		case block[1] == "go" && goTool != "":
			programs++
			file := filepath.Join(t.TempDir(), "main.go")
			require.NoError(t, os.WriteFile(file, []byte(block[2]), 0o600))
			command := exec.Command(goTool, "run", file)
			command.Env = append(os.Environ(), "GOARCH=") // this machine's
			got, err := command.CombinedOutput()
			require.NoError(t, err, "%s", got)
			require.Equal(t, "text", blocks[i+1][1], "a program without output")
			require.Equal(t, blocks[i+1][2], string(got))
		case block[1] == "sh":
			for line := range strings.Lines(block[2]) {
				commands++
				require.Contains(t, string(script), strings.TrimSpace(line), "CI does not run it")
			}
		}
	}
	require.Positive(t, commands)
	require.True(t, programs > 0 || goTool == "")
}

package tmc

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestReadme compares README with what it is about: its program is the one of
// the package comment, CI runs its commands, and what it names in code exists.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, ok := strings.Cut(string(readme), "```go\n")
	program, _, ended := strings.Cut(program, "```")
	if !ok || !ended {
		t.Fatal("got no program")
	}
	example, err := os.ReadFile("readme_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(program) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(string(example), line) {
			t.Errorf("got %q in the program; want what is in readme_example_test.go", line)
		}
	}
	script, err := os.ReadFile("../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	_, command, ok := strings.Cut(string(readme), "```sh\n")
	command, _, ended = strings.Cut(command, "\n```")
	if !ok || !ended || !strings.Contains(string(script), "\n"+command+" ") {
		t.Errorf("got command %q; want one that .ci/run runs", command)
	}
	_, cache, _ := attach(t, Options{})
	descs := make(chan *prometheus.Desc, 100)
	cache.Collector().Describe(descs)
	close(descs)
	var metrics strings.Builder
	for desc := range descs {
		metrics.WriteString(desc.String())
	}
	for _, word := range strings.FieldsFunc(string(readme), func(r rune) bool { return r == '`' || r == ' ' || r == ',' || r == '\n' }) {
		if strings.HasPrefix(word, "tmc_") && !strings.Contains(metrics.String(), `"`+word+`"`) {
			t.Errorf("got metric %s, which there is not", word)
		}
	}
	for _, file := range []string{"flow.svg", "../README.md"} {
		if _, err := os.Stat(file); err != nil || !strings.Contains(string(readme), "("+file+")") {
			t.Errorf("%s: got %v; want a file that README refers to", file, err)
		}
	}
}

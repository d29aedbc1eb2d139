package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tiny returns a lab whose streams take no time.
func tiny(t *testing.T, seed uint64) *lab {
	t.Helper()
	l := newLab(options{seed: seed, out: t.TempDir()})
	l.keys, l.events, l.passes = 4_000, 10_000, 1
	return l
}

// sections returns the text of all sections without timings.
func sections(t *testing.T, l *lab) string {
	t.Helper()
	var b strings.Builder
	for _, section := range []func(*lab) (string, error){
		workloadSection, memorySection, crossingSection, cellsSection, paperSection, thresholdSection,
	} {
		text, err := section(l)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(text)
	}
	return b.String()
}

func TestReport(t *testing.T) {
	l := tiny(t, 1)
	text := sections(t, l)
	t.Run("deterministic", func(t *testing.T) {
		if again := sections(t, tiny(t, 1)); again != text {
			t.Errorf("the same seed gives another report: %s", difference(text, again))
		}
		if testing.Short() {
			return
		}
		if other := sections(t, tiny(t, 2)); other == text {
			t.Error("the seed makes no difference")
		}
	})
	t.Run("tables", func(t *testing.T) { testTables(t, text) })
	t.Run("plots", func(t *testing.T) { testPlots(t, l, text) })
}

// difference returns the first lines that differ.
func difference(a, b string) string {
	other := strings.Split(b, "\n")
	for i, line := range strings.Split(a, "\n") {
		if i >= len(other) || line != other[i] {
			return line + "\nagainst\n" + strings.Join(other[min(i, len(other)):min(i+1, len(other))], "")
		}
	}
	return "one is longer"
}

// Every row of a table has as many cells as its head.
func testTables(t *testing.T, text string) {
	columns := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		if n := strings.Count(line, "|"); columns == 0 {
			columns = n
		} else if n != columns {
			t.Errorf("%d cells rather than %d: %s", n-1, columns-1, line)
		}
	}
}

// The text shows every plot that is drawn and no other, and each is an SVG
// with words on both axes.
func testPlots(t *testing.T, l *lab, text string) {
	for _, f := range l.figures {
		if err := f.save(l.out); err != nil {
			t.Fatal(err)
		}
	}
	shown := map[string]bool{}
	for _, match := range regexp.MustCompile(`\(PLOTS/(.*?)\)`).FindAllStringSubmatch(text, -1) {
		shown[match[1]] = true
	}
	files, err := filepath.Glob(filepath.Join(l.out, "*"))
	if err != nil || len(files) == 0 || len(files) != len(shown) {
		t.Errorf("%d files for %d plots shown, %v", len(files), len(shown), err)
	}
	for _, file := range files {
		if !shown[filepath.Base(file)] {
			t.Errorf("%s is not shown", file)
		}
		if words := svgWords(t, file); len(words) < 10 {
			t.Errorf("%s has few words: %q", file, words)
		}
	}
}

// svgWords returns the texts in an SVG file.
func svgWords(t *testing.T, file string) (words []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := ""
	for decoder := xml.NewDecoder(f); ; {
		token, err := decoder.Token()
		if err == io.EOF {
			return words
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			in = x.Name.Local
		case xml.CharData:
			if word := strings.TrimSpace(string(x)); in == "text" && word != "" {
				words = append(words, word)
			}
		}
	}
}

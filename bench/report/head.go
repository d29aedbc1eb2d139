package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// header returns the title, what was run where, and how to read the figures.
func header(o options, l *lab, took time.Duration) string {
	command := "go -C bench/report run ."
	if o.quick {
		command += " -quick"
	}
	if o.seed != 1 {
		command += fmt.Sprintf(" -seed %d", o.seed)
	}
	if o.keys != "" {
		command += " -keys " + filepath.Base(o.keys)
	}
	var b strings.Builder
	b.WriteString("# HeavyKeeper beside other ways to find the heaviest keys\n\n")
	for _, row := range [][2]string{
		{"Machine", fmt.Sprintf("%s, %d cores used, %s/%s", processor(), runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH)},
		{"Go", runtime.Version()},
		{"Command", "`" + command + "`"},
		{"Date", time.Now().UTC().Format("2006-01-02")},
		{"Commit", commit()},
		{"Streams", fmt.Sprintf("%s events over %s keys unless said otherwise, seed %d", thousands(l.events), thousands(l.keys), o.seed)},
		{"Took", took.Round(time.Second).String()},
	} {
		fmt.Fprintf(&b, "- %s: %s\n", row[0], row[1])
	}
	b.WriteString(reading)
	return b.String()
}

const reading = `
This file is written by the command above; for equal seeds, all figures but the
timings come out equal anywhere.

**Equal memory.** Every algorithm gets the same number of bytes and builds the
largest structure that fits. Counted is all that grows with the size: cells,
counters, keys, heap, links, and the index that finds a key's entry. The other
algorithms were given the leanest layouts we could find for them (32-bit
counters and links, 8 bytes of index a key); their usual implementations take
two to four times as much. KB is 1024 bytes. Keys are 8-byte integers; texts are
numbered first.

**Precision** is the share of the true top K that is reported; a key that ties
with the K-th is as good. **ARE** is the average of |reported - true| / true over
the reported keys, right or wrong, as in the HeavyKeeper paper; **AAE** the
average of |reported - true|. A dash means that nothing fits in so little
memory. The best of a row is bold.

"HeavyKeeper" is this module's Sketch: one stripe, four rows, defaults. "Textbook"
is the algorithm as published: the parallel version of 2018 and the minimum
version of 2019. CU is Count-Min with conservative update.

`

// processor returns the name of the processor, as far as the system tells.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// commit returns the commit that was measured, and whether the tree differed
// from it in anything but earlier reports.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	text := strings.TrimSpace(string(hash))
	changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", "--", ":/",
		":(top,exclude)bench/REPORT.md", ":(top,exclude)bench/plots").Output()
	if err != nil || len(changed) > 0 {
		text += " and changes"
	}
	return text
}

func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

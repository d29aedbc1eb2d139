// Command report measures HeavyKeeper beside other algorithms and libraries at
// equal memory, and writes REPORT.md and its plots into the folder above it.
//
//	go -C bench/report run .            # all of it, in less than ten minutes
//	go -C bench/report run . -quick     # a twentieth of the events, within one
//	go -C bench/report run . -keys file # and a file of yours, one key a line
//
// For equal seeds all figures but the timings are equal on every machine.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	quick bool
	seed  uint64
	keys  string // a file, or ""
	out   string // folder
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "use a twentieth of the events and write quick.md, leaving REPORT.md alone")
	flag.Uint64Var(&o.seed, "seed", 1, "`seed` of the streams and of the algorithms")
	flag.StringVar(&o.keys, "keys", "", "also count this `file`, one key a line, plain or .gz; relative names are looked up here and in the module's root")
	flag.StringVar(&o.out, "out", "..", "`folder` to write to")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	name, plots := "REPORT.md", "plots"
	if o.quick {
		name, plots = "quick.md", "quick-plots"
	}
	if err := os.MkdirAll(filepath.Join(o.out, plots), 0o777); err != nil {
		return err
	}
	l := newLab(o)
	started := time.Now()
	var sections []string
	for _, section := range []func(*lab) (string, error){
		workloadSection, memorySection, crossingSection, cellsSection, paperSection, thresholdSection,
		timeSection, coresSection, peersSection,
	} {
		text, err := section(l)
		if err != nil {
			return err
		}
		sections = append(sections, text)
	}
	l.progress.done()
	for _, f := range l.figures {
		if err := f.save(filepath.Join(o.out, plots)); err != nil {
			return err
		}
	}
	text := header(o, l, time.Since(started)) + l.glance.text(l) + strings.Join(sections, "\n")
	text = strings.ReplaceAll(text, "PLOTS/", plots+"/")
	return os.WriteFile(filepath.Join(o.out, name), []byte(text), 0o666)
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heavykeeper-go/heavykeeper/bench/stream"
)

// size is a number of keys to report and the memory to do it in.
type size struct{ k, bytes int }

var workloadSizes = []size{{100, 16 << 10}, {1000, 96 << 10}}

// workloads returns the streams of the comparison. Each is made only when it is
// asked for, and forgotten after.
func (l *lab) workloads() (names []string, make map[string]func() (*workload, error)) {
	make = map[string]func() (*workload, error){}
	add := func(name string, keys func() []uint64, weights func() []uint32) {
		names = append(names, name)
		make[name] = func() (*workload, error) {
			w := []uint32(nil)
			if weights != nil {
				w = weights()
			}
			return newWorkload(name, keys(), w), nil
		}
	}
	for _, skew := range []float64{0.6, 0.8, 1.0, 1.2, 1.4, 2.0} {
		add(fmt.Sprintf("Zipf %.1f", skew), func() []uint64 { return stream.Zipf(l.seed, skew, l.keys, l.events) }, nil)
	}
	add("uniform", func() []uint64 { return stream.Zipf(l.seed, 0, l.keys, l.events) }, nil)
	add("bursts", func() []uint64 { return stream.Bursts(l.seed, float64(l.events)/5000, l.keys, l.events) }, nil)
	add("drift", func() []uint64 { return stream.Drift(l.seed, 1, 10, 20, l.keys, l.events) }, nil)
	add("round robin, 101", func() []uint64 { return stream.RoundRobin(101, l.events) }, nil)
	add("round robin, 1001", func() []uint64 { return stream.RoundRobin(1001, l.events) }, nil)
	add("mice, elephant", func() []uint64 { return stream.MiceThenElephant(l.seed, 0.02, l.keys, l.events) }, nil)
	add("weights", func() []uint64 { return stream.Zipf(l.seed, 1, l.keys, l.events/5) },
		func() []uint32 { return stream.Weights(l.seed, 20, l.events/5) })
	l.addFile(&names, make, "Opticks", stream.Opticks)
	if l.options.keys != "" {
		l.addFile(&names, make, filepath.Base(l.options.keys), func() ([]string, error) { return stream.Lines(stream.Find(l.options.keys, "../..")) })
	}
	return names, make
}

// addFile adds a workload that is read rather than made.
func (l *lab) addFile(names *[]string, make map[string]func() (*workload, error), name string, read func() ([]string, error)) {
	*names = append(*names, name)
	make[name] = func() (*workload, error) {
		tokens, err := read()
		if err != nil {
			return nil, err
		}
		return newWorkload(name, stream.Number(tokens), nil), nil
	}
}

// workloadSection compares all algorithms on all streams.
func workloadSection(l *lab) (string, error) {
	names, make := l.workloads()
	grids := map[int]*grid{}
	for _, s := range workloadSizes {
		grids[s.k] = &grid{}
	}
	var missed []string
	for _, name := range names {
		w, err := make[name]()
		if err != nil {
			if name != "Opticks" {
				return "", err
			}
			fmt.Fprintln(os.Stderr, "\nreport: going on without:", err)
			missed = append(missed, name)
			continue
		}
		var now grid
		for _, s := range workloadSizes {
			t := trial{on: w, bytes: s.bytes, k: s.k}
			if name == "mice, elephant" {
				t.asked = 1
			}
			now.add(l, name, t)
		}
		l.run(name, now.all())
		for i, s := range workloadSizes {
			grids[s.k].rows = append(grids[s.k].rows, name)
			grids[s.k].trials = append(grids[s.k].trials, now.trials[i])
			for _, t := range now.trials[i] {
				t.on = nil // lets the stream go
			}
		}
	}
	return l.workloadText(grids, missed), nil
}

func (l *lab) workloadText(grids map[int]*grid, missed []string) string {
	var b strings.Builder
	b.WriteString("## Workloads\n\n" + workloadNote)
	for _, name := range missed {
		fmt.Fprintf(&b, "%s was not to be had on this machine and is left out.\n\n", name)
	}
	for _, s := range workloadSizes {
		g := grids[s.k]
		for _, m := range []metric{precision, are} {
			fmt.Fprintf(&b, "### K = %d in %d KB: %s\n\n%s\n", s.k, s.bytes>>10, m.name, g.table(l, "stream", m))
		}
	}
	b.WriteString("### Where another is ahead\n\n")
	b.WriteString("HeavyKeeper is first, or equal to what three decimals show, in all of the above but these:\n\n")
	none := true
	for _, s := range workloadSizes {
		for i, name := range grids[s.k].rows {
			for _, m := range []metric{precision, are} {
				if leaders := ahead(m, grids[s.k].trials[i]); leaders != "" {
					none = false
					fmt.Fprintf(&b, "- %s, K = %d, %s: %s\n", name, s.k, m.name, leaders)
				}
			}
		}
	}
	if none {
		b.WriteString("- none\n")
	}
	b.WriteString("\n" + aheadNote)
	return b.String()
}

// ahead names the algorithms whose metric is better than the first one's, with
// its value and theirs. A reported list of fewer keys than half is no lead in
// error: it leaves out the hard ones.
func ahead(m metric, trials []*trial) string {
	own := m.value(trials[0])
	var names []string
	for _, t := range trials[1:] {
		if v := m.value(t); m.better(v, own) && m.format(v) != m.format(own) && t.Precision >= trials[0].Precision/2 {
			names = append(names, fmt.Sprintf("%s %s", t.algorithm.Name, m.format(v)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf("%s, HeavyKeeper %s", strings.Join(names, ", "), m.format(own))
}

const workloadNote = `- *uniform*: all keys alike. The top K are whichever chance put ahead by a few
  occurrences; nobody finds them in less memory than a map.
- *bursts*: every other event belongs to a key that comes in one long run and
  never again; the rest is Zipf 1.0.
- *drift*: Zipf 1.0 whose ranking moves by 20 places ten times.
- *round robin*: 101 or 1001 keys in turn, one more than K, so that each comes
  just after a table of K would have thrown it out. All are of equal count, so
  precision only tells whether K keys are listed; the error tells the rest.
- *mice, elephant*: 98 % of events uniform, then one new key. Asked for is the
  top 1.
- *weights*: a fifth of the events, Zipf 1.0, weights of mean 20.
- *Opticks*: the words of Newton's text.

`

const aheadNote = `Why: the two that come up most are leaner, not better by the cell. A cell of the
textbook's minimum version has 6 bytes and an entry of its list 28, since it gives
no bounds; Stable-Sketch has cells of 16 bytes with the keys in them, and no list.
HeavyKeeper spends 12 bytes a cell and some 60 an entry to know an upper and a
lower bound of every key and to count tracked keys exactly. So where memory per K
is short it has a third of the textbook's cells. By the cell it is ahead, as "By
the cell" shows; by the byte, on flat streams, where many keys are nearly as heavy
as the K-th, it is not: "Where the lines cross" gives the memory from which on it
is. On uniform streams the list is a matter of luck for all.

*bursts* is HeavyKeeper's weak spot by design, in whichever form: collision decay
protects large counts, so a cell whose owner's burst is over stays its own, and
with more such owners than cells a new burst cannot get in. Fading is made for
this; it is off here, since no other algorithm has it. Lossy Counting has no
error on a key that comes in one burst, once it holds it.
`

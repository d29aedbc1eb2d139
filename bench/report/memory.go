package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// memorySection draws precision and error over memory.
func memorySection(l *lab) (string, error) {
	const k = 100
	sizes := []int{2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}
	var b strings.Builder
	fmt.Fprintf(&b, "## Over memory, K = %d\n\n", k)
	for _, skew := range []float64{0.8, glanceSkew} {
		w := l.zipf(skew)
		var g grid
		for _, kb := range sizes {
			g.add(l, fmt.Sprintf("%d KB", kb), trial{on: w, bytes: kb << 10, k: k})
		}
		l.run("over memory, "+w.name, g.all())
		if skew == glanceSkew {
			l.glance.read(l, &g, sizes)
		}
		x := make([]float64, len(sizes))
		for i, kb := range sizes {
			x[i] = float64(kb)
		}
		for _, m := range []metric{precision, are} {
			name := fmt.Sprintf("%s-memory-zipf%.1f.svg", strings.ToLower(m.name), skew)
			l.figures = append(l.figures, figure{
				file: name, title: fmt.Sprintf("%s of the top %d, %s", label(m), k, w.name),
				x: "memory, all counted (KB)", y: label(m), logX: true, logY: m.name != "precision",
				ticks: x, lines: g.lines(l, x, m),
			})
			fmt.Fprintf(&b, "![%s over memory, %s](PLOTS/%s)\n\n%s\n", label(m), w.name, name, g.table(l, w.name, m))
		}
	}
	return b.String(), nil
}

func label(m metric) string {
	if m.name == "precision" {
		return "Precision"
	}
	return "Average relative error"
}

// lines returns a metric as one line for each algorithm.
func (g *grid) lines(l *lab, x []float64, m metric) []line {
	lines := make([]line, len(l.algorithms))
	for i, a := range l.algorithms {
		lines[i].name = a.Name
		for row := range g.rows {
			if v := m.value(g.trials[row][i]); !math.IsNaN(v) {
				lines[i].points = append(lines[i].points, point{x[row], v})
			}
		}
	}
	return lines
}

// rivals are the algorithms that lead where memory is short.
var rivals = []string{"Stable-Sketch", "Textbook minimum"}

// crossingSection finds the memory from which on HeavyKeeper is not behind
// those that keep less beside their cells.
func crossingSection(l *lab) (string, error) {
	perKey := []int{12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 72, 80, 96, 112, 128, 160, 192, 256}
	saved := l.algorithms
	defer func() { l.algorithms = saved }()
	l.algorithms = saved[:1:1]
	for _, a := range saved {
		if slices.Contains(rivals, a.Name) {
			l.algorithms = append(l.algorithms, a)
		}
	}
	t := table{header: []string{"stream", "K"}}
	for _, a := range l.algorithms[1:] {
		t.header = append(t.header, a.Name+": precision from", "error from")
	}
	var b strings.Builder
	b.WriteString("## Where the lines cross\n\n" + crossingNote)
	var curves grid
	for _, skew := range []float64{0.6, 0.8, 1.0, 1.2} {
		w := l.zipf(skew)
		for _, k := range []int{100, 1000} {
			var g grid
			for _, bytes := range perKey {
				g.add(l, fmt.Sprint(bytes), trial{on: w, bytes: bytes * k, k: k})
			}
			l.run("crossing, "+w.name, g.all())
			cells := []string{w.name, fmt.Sprint(k)}
			for i := range l.algorithms[1:] {
				cells = append(cells, from(perKey, crossing(&g, precision, i+1, 0.005)), from(perKey, crossing(&g, are, i+1, 0.001)))
			}
			t.add(cells...)
			if skew == 0.8 && k == 100 {
				curves = g
			}
		}
	}
	fmt.Fprintf(&b, "%s\nIn between, Zipf 0.8, K = 100, by bytes per K:\n\n", t.String())
	for _, m := range []metric{precision, are} {
		b.WriteString(curves.table(l, m.name, m) + "\n")
	}
	return b.String(), nil
}

// crossing returns the first row from which on the first algorithm is nowhere
// behind that of a column, by more than a margin, or the number of rows.
func crossing(g *grid, m metric, column int, margin float64) int {
	for i := len(g.trials) - 1; i >= 0; i-- {
		own, other := m.value(g.trials[i][0]), m.value(g.trials[i][column])
		if math.IsNaN(own) && !math.IsNaN(other) || m.better(other, own) && math.Abs(other-own) > margin {
			return i + 1
		}
	}
	return 0
}

func from(perKey []int, row int) string {
	if row == len(perKey) {
		return fmt.Sprintf("beyond %d", perKey[row-1])
	}
	return fmt.Sprint(perKey[row])
}

const crossingNote = `Stable-Sketch (WWW 2024) stores keys in its cells and pays for no list beside
them. The textbook's cells have 6 bytes, since they know no bounds, and its list
28 a key. HeavyKeeper pays some 60 bytes for each of K entries before the first
cell, and 12 for a cell. So these lead where memory is short. The table
gives the bytes per K, all counted, from which on HeavyKeeper is nowhere behind
by more than 0.005 in precision or 0.001 in error, up to the 256 that were tried.

`

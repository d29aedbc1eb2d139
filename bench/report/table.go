package main

import (
	"fmt"
	"math"
	"strings"
)

// table is a Markdown table. The first column is text, the rest numbers.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.header)
	rule := make([]string, len(t.header))
	for i := range rule {
		rule[i] = "---:"
	}
	rule[0] = "---"
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}

// missing stands for a figure that there is none of.
const missing = "–"

// best formats values and makes those bold that look like the best. NaN is a
// missing value.
func best(values []float64, format func(float64) string, better func(a, b float64) bool) []string {
	top := math.NaN()
	for _, v := range values {
		if !math.IsNaN(v) && (math.IsNaN(top) || better(v, top)) {
			top = v
		}
	}
	cells := make([]string, len(values))
	for i, v := range values {
		switch {
		case math.IsNaN(v):
			cells[i] = missing
		case format(v) == format(top):
			cells[i] = "**" + format(v) + "**"
		default:
			cells[i] = format(v)
		}
	}
	return cells
}

func larger(a, b float64) bool  { return a > b }
func smaller(a, b float64) bool { return a < b }

func share(v float64) string { return fmt.Sprintf("%.3f", v) }

// small formats an error: two digits, and no longer than need be.
func small(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.001:
		return fmt.Sprintf("%.0e", v)
	case v < 1:
		return fmt.Sprintf("%.4f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return thousands(int(v + 0.5))
}

// metric is a column of an accuracy table.
type metric struct {
	name   string
	of     func(*trial) float64
	format func(float64) string
	better func(a, b float64) bool
}

var (
	precision = metric{"precision", func(t *trial) float64 { return t.Precision }, share, larger}
	are       = metric{"ARE", func(t *trial) float64 { return t.ARE }, small, smaller}
	aae       = metric{"AAE", func(t *trial) float64 { return t.AAE }, small, smaller}

	hitPrecision = metric{"precision", func(t *trial) float64 { return t.hitters.Precision }, share, larger}
	hitRecall    = metric{"recall", func(t *trial) float64 { return t.hitters.Recall }, share, larger}
	hitARE       = metric{"ARE", func(t *trial) float64 { return t.hitters.ARE }, small, smaller}
)

// value returns a metric of a trial, NaN if it did not fit.
func (m metric) value(t *trial) float64 {
	if !t.fits {
		return math.NaN()
	}
	return m.of(t)
}

// cells formats a metric of trials side by side.
func (m metric) cells(trials []*trial) []string {
	values := make([]float64, len(trials))
	for i, t := range trials {
		values[i] = m.value(t)
	}
	return best(values, m.format, m.better)
}

// grid is trials of all algorithms for each of a number of rows.
type grid struct {
	rows   []string
	trials [][]*trial
}

func (g *grid) all() []*trial {
	var all []*trial
	for _, row := range g.trials {
		all = append(all, row...)
	}
	return all
}

// add appends a row in which t is tried with each of the lab's algorithms.
func (g *grid) add(l *lab, row string, t trial) {
	trials := make([]*trial, len(l.algorithms))
	for i, a := range l.algorithms {
		one := t
		one.algorithm = a
		trials[i] = &one
	}
	g.rows = append(g.rows, row)
	g.trials = append(g.trials, trials)
}

// table returns one metric of all trials.
func (g *grid) table(l *lab, corner string, m metric) string {
	t := table{header: []string{corner}}
	for _, a := range l.algorithms {
		t.header = append(t.header, a.Name)
	}
	for i, row := range g.rows {
		t.add(append([]string{row}, m.cells(g.trials[i])...)...)
	}
	return t.String()
}

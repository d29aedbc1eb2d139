package main

import (
	"fmt"

	"github.com/heavykeeper-go/heavykeeper"
	"github.com/heavykeeper-go/heavykeeper/bench/baseline"
)

// cellsSection compares with the textbook at an equal number of cells, so that
// the rule is told apart from its price in bytes.
func cellsSection(l *lab) (string, error) {
	t := table{header: []string{"stream", "K", "cells", "HeavyKeeper: precision", "ARE", "bytes", "Textbook minimum: precision", "ARE", "bytes"}}
	for _, skew := range []float64{0.6, 0.8, 1.0, 1.2} {
		w := l.zipf(skew)
		var trials []*trial
		for _, s := range []struct{ k, cells int }{{100, 800}, {1000, 6000}} {
			for _, a := range []baseline.Algorithm[uint64]{withCells(s.cells), {Name: "Textbook minimum", New: baseline.Adapt(baseline.NewMinimum[uint64])}} {
				trials = append(trials, &trial{on: w, algorithm: a, k: s.k, cells: s.cells, bytes: 6*s.cells + 28*s.k})
			}
		}
		l.run("by the cell, "+w.name, trials)
		for i := 0; i < len(trials); i += 2 {
			pair := trials[i : i+2]
			p, e := precision.cells(pair), are.cells(pair)
			t.add(w.name, fmt.Sprint(pair[0].k), thousands(pair[0].cells),
				p[0], e[0], thousands(pair[0].used), p[1], e[1], thousands(pair[1].used))
		}
	}
	return "## By the cell: what the bounds cost\n\n" + cellsNote + t.String(), nil
}

// withCells is HeavyKeeper with so many cells in all, whatever they take.
func withCells(cells int) baseline.Algorithm[uint64] {
	return baseline.Algorithm[uint64]{Name: ownName, New: func(c baseline.Config[uint64]) (baseline.Counter[uint64], error) {
		s, err := heavykeeper.NewSketch(heavykeeper.Config[uint64]{K: c.K, Rows: 4, Width: cells / 4, Seed: c.Seed})
		return baseline.Sketch[uint64]{Sketch: s}, err
	}}
}

const cellsNote = `The same number of cells for both, and so about twice the bytes for HeavyKeeper:
for the weight of colliding keys in each cell, which gives the bounds, and for
entries that count exactly.

`

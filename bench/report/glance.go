package main

import (
	"fmt"
	"strings"
)

const (
	ownName    = "HeavyKeeper"
	mapName    = "map, exact"
	glanceSkew = 1.0
)

// glance collects what the summary at the top needs from the sections.
type glance struct {
	enough map[string]string  // memory for a precision of 0.99
	are    map[string]string  // in glanceKB
	ns     map[string]float64 // an update
}

const glanceKB = 16

func newGlance() glance {
	return glance{map[string]string{}, map[string]string{}, map[string]float64{}}
}

// read takes memory and error from the trials of sizes.
func (g *glance) read(l *lab, trials *grid, sizes []int) {
	for i, a := range l.algorithms {
		g.enough[a.Name] = fmt.Sprintf("over %d KB", sizes[len(sizes)-1])
		for row := len(sizes) - 1; row >= 0 && trials.trials[row][i].Precision >= 0.99; row-- {
			g.enough[a.Name] = fmt.Sprintf("%d KB", sizes[row])
		}
		for row, kb := range sizes {
			if kb == glanceKB {
				g.are[a.Name] = small(trials.trials[row][i].ARE)
			}
		}
	}
}

// text returns the comparison of the field.
func (g *glance) text(l *lab) string {
	t := table{header: []string{
		"algorithm", "memory for precision 0.99", fmt.Sprintf("ARE in %d KB", glanceKB), "ns/update",
		"top K", "error control", "aging", "where to use",
	}}
	g.enough[mapName], g.are[mapName] = "all keys", "0"
	for _, name := range glanceOrder(l) {
		ns := missing
		if v, ok := g.ns[name]; ok {
			ns = fmt.Sprintf("%.0f", v)
		}
		t.add(append([]string{name, g.enough[name], g.are[name], ns}, traits[name]...)...)
	}
	return fmt.Sprintf("## At a glance\n\nMemory and ARE: top 100, Zipf %.1f. Time: K = 1000 in 96 KB, Zipf %.1f, one\ngoroutine. The rest is what the algorithms are, not measured.\n\n%s\n",
		glanceSkew, glanceSkew, strings.Replace(t.String(), "---: | ---: | ---: | ---: |\n", "--- | --- | --- | --- |\n", 1))
}

func glanceOrder(l *lab) []string {
	var names []string
	for _, a := range l.algorithms {
		names = append(names, a.Name)
	}
	return append(names, mapName)
}

// traits are top-K support, error control, aging and use.
var traits = map[string][]string{
	ownName:               {"yes; tracked keys exact from admission", "lower and upper bound with every answer", "fading by a factor, sliding window", "hot keys of a service, many cores"},
	"Textbook minimum":    {"yes", "none stated with an answer; never over but for collisions", "none", "least memory where no bounds are needed"},
	"Textbook parallel":   {"yes", "as above", "none", "hardware pipelines, a row a stage"},
	"Stable-Sketch":       {"yes, keys in cells", "never over", "none", "memory below some tens of bytes per K"},
	"Space-Saving":        {"yes", "over by at most N/m, known for each key", "none", "every key above N/m, for certain"},
	"Misra-Gries":         {"yes", "under by at most N/(m+1)", "none", "the same, and merging"},
	"Lossy Counting":      {"yes", "under by at most the number of buckets", "none", "all keys above a threshold, where memory may grow"},
	"Count-Min + heap":    {"with a heap", "over by at most eN/w, with probability", "none; linear, so slots can be subtracted", "counts of any key; sums of streams"},
	"Count-Min CU + heap": {"with a heap", "as above, less in practice", "none", "counts of any key"},
	mapName:               {"by sorting", "exact", "delete and start again", "when all keys fit"},
}

package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heavykeeper-go/heavykeeper"
	"github.com/heavykeeper-go/heavykeeper/bench/baseline"
)

// contender is something whose time is taken.
type contender struct {
	name string
	// empty returns a function that counts keys from empty. Only that is timed.
	empty func() (count func(keys []uint64))
}

// contenders returns all algorithms and ways to use this one. A configuration
// that fits all of them has no errors.
func (l *lab) contenders() []contender {
	config := l.config(96<<10, 1000)
	all := []contender{{ownName, func() func([]uint64) {
		s, _ := baseline.NewSketch(config)
		return func(keys []uint64) {
			for _, key := range keys {
				s.Add(key)
			}
		}
	}}, {"HeavyKeeper, AddBatch of 64", func() func([]uint64) {
		s, _ := baseline.NewSketch(config)
		return func(keys []uint64) {
			for batch := range slices.Chunk(keys, 64) {
				s.AddBatch(batch)
			}
		}
	}}, {mapName, func() func([]uint64) {
		counts := map[uint64]uint64{}
		return func(keys []uint64) {
			for _, key := range keys {
				counts[key]++
			}
		}
	}}}
	for _, a := range l.algorithms[1:] {
		all = append(all, contender{a.Name, func() func([]uint64) {
			c, _ := a.New(config)
			return func(keys []uint64) {
				for _, key := range keys {
					c.Add(key)
				}
			}
		}})
	}
	return all
}

// timeSection takes the time of one update, one goroutine.
func timeSection(l *lab) (string, error) {
	contenders := l.contenders()
	skews := []float64{0.6, 0.8, 1.0, 1.2, 1.4}
	t := table{header: []string{"ns/update"}}
	columns := make([][]string, len(skews))
	for i, skew := range skews {
		w := l.zipf(skew)
		t.header = append(t.header, w.name)
		ns := l.times("time, "+w.name, contenders, w.keys)
		if skew == glanceSkew {
			for j, c := range contenders {
				l.glance.ns[c.name] = ns[j]
			}
		}
		columns[i] = best(ns, func(v float64) string { return fmt.Sprintf("%.1f", v) }, smaller)
	}
	for row, c := range contenders {
		cells := []string{c.name}
		for _, column := range columns {
			cells = append(cells, column[row])
		}
		t.add(cells...)
	}
	return "## Time of one update, one goroutine\n\n" + timeNote + t.String(), nil
}

const timeNote = `K = 1000 in 96 KB, from empty over the whole stream. Median of passes taken in
turn, so that what disturbs the machine disturbs all alike. The map has no
bound on its memory. All but the first three are called through an interface,
which costs them about 1 ns. HeavyKeeper is called by Add and by AddBatch.

`

// times returns the median time of one key in ns for each contender, in passes
// taken in turn.
func (l *lab) times(section string, contenders []contender, keys []uint64) []float64 {
	l.progress.begin(section, l.passes*len(contenders))
	took := make([][]float64, len(contenders))
	for range l.passes {
		for i, c := range contenders {
			count := c.empty()
			runtime.GC()
			started := time.Now()
			count(keys)
			took[i] = append(took[i], float64(time.Since(started).Nanoseconds())/float64(len(keys)))
			l.progress.step()
		}
	}
	medians := make([]float64, len(contenders))
	for i := range took {
		slices.Sort(took[i])
		medians[i] = took[i][l.passes/2]
	}
	return medians
}

// coresSection measures throughput over goroutines.
func coresSection(l *lab) (string, error) {
	counts := []int{1}
	for n := 2; n <= 2*runtime.GOMAXPROCS(0); n *= 2 {
		counts = append(counts, n)
	}
	var b strings.Builder
	b.WriteString("## Throughput over cores\n\n" + coresNote)
	for _, skew := range []float64{0.6, 1.2} {
		w := l.zipf(skew)
		t := table{header: []string{w.name + ", million updates/s"}}
		var lines []line
		x := make([]float64, len(counts))
		for i, n := range counts {
			x[i] = float64(n)
			t.header = append(t.header, fmt.Sprintf("%d goroutines", n))
			all := concurrent(l, n)
			for j, ns := range l.times(fmt.Sprintf("cores, %s, %d", w.name, n), all, w.keys) {
				if i == 0 {
					lines = append(lines, line{name: all[j].name})
					t.add(all[j].name)
				}
				rate := 1000 / ns
				lines[j].points = append(lines[j].points, point{float64(n), rate})
				t.rows[j] = append(t.rows[j], fmt.Sprintf("%.0f", rate))
			}
		}
		file := fmt.Sprintf("throughput-cores-zipf%.1f.svg", skew)
		l.figures = append(l.figures, figure{
			file: file, title: fmt.Sprintf("Throughput over goroutines on %d cores, %s", runtime.GOMAXPROCS(0), w.name),
			x: "goroutines", y: "million updates per second, all together", logX: true, fromZero: true, ticks: x, lines: lines,
		})
		fmt.Fprintf(&b, "![Throughput over cores, %s](PLOTS/%s)\n\n%s\n", w.name, file, t.String())
	}
	return b.String(), nil
}

const coresNote = `K = 100, 4 x 4096 cells a stripe. Each goroutine counts an equal part of the
stream. "One lock" is a Sketch, or the textbook algorithm, behind a mutex: what
one writes without a library. More goroutines than cores show what waiting costs.

`

// concurrent returns the contenders that count with n goroutines.
func concurrent(l *lab, n int) []contender {
	const width = 4096
	config := heavykeeper.Config[uint64]{K: 100, Width: width, Seed: l.seed}
	keeper := func() *heavykeeper.HeavyKeeper[uint64] {
		h, err := heavykeeper.New(config)
		if err != nil {
			panic(err) // a constant configuration
		}
		return h
	}
	locked := func(add func(uint64)) func(uint64) {
		var mu sync.Mutex
		return func(key uint64) {
			mu.Lock()
			add(key)
			mu.Unlock()
		}
	}
	parts := func(add func(uint64)) func([]uint64) {
		return func(keys []uint64) {
			split(keys, n, func(part []uint64) {
				for _, key := range part {
					add(key)
				}
			})
		}
	}
	return []contender{
		{"AddBatch of 64", func() func([]uint64) {
			h := keeper()
			return func(keys []uint64) {
				split(keys, n, func(part []uint64) {
					for batch := range slices.Chunk(part, 64) {
						h.AddBatch(batch)
					}
				})
			}
		}},
		{"Add", func() func([]uint64) { return parts(keeper().Add) }},
		{"Sketch, one lock", func() func([]uint64) {
			s, _ := heavykeeper.NewSketch(config)
			return parts(locked(s.Add))
		}},
		{"Textbook, one lock", func() func([]uint64) {
			k, _ := baseline.NewMinimum(l.config(4*width*12, 100))
			return parts(locked(k.Add))
		}},
	}
}

// split counts n equal parts of keys at a time.
func split(keys []uint64, n int, count func(part []uint64)) {
	var group sync.WaitGroup
	for part := range slices.Chunk(keys, (len(keys)+n-1)/n) {
		group.Go(func() { count(part) })
	}
	group.Wait()
}

package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/heavykeeper-go/heavykeeper"
	"github.com/heavykeeper-go/heavykeeper/window"
)

const (
	// maxKey is the length at which a key is cut, so that the keys that are
	// tracked have bounded memory.
	maxKey = 4096

	// leastTracked is the number of keys tracked at least, whatever -k: sketches
	// that were made with different -k are alike and merge, and show more keys
	// than was thought of when they were made.
	leastTracked = 1000
)

// tally is what has been counted, in all or in a window. One goroutine counts
// and any may read.
type tally struct {
	all    *heavykeeper.HeavyKeeper[string]
	window *window.HeavyKeeper[string] // instead of all

	lines   atomic.Uint64 // read
	skipped atomic.Uint64 // of them, without a key or a time
	counted atomic.Uint64 // keys

	cutLines, cutKeys atomic.Uint64             // were too long
	present           atomic.Pointer[time.Time] // the latest of all lines, if they have times
}

func newTally(o *options) (*tally, error) {
	t := &tally{}
	var err error
	switch {
	case o.window > 0:
		t.window, err = window.New(window.Config[string]{
			K: o.k, Slots: o.slots, Slot: o.slot(), Candidates: max(4*o.k, leastTracked), Stripes: 1, Seed: o.seed,
		})
		if err != nil {
			err = fmt.Errorf("-window %v -slots %d -k %d: %w", o.window, o.slots, o.k, err)
		}
	case o.load != "":
		t.all, err = readSketch(o.load)
	default:
		t.all, err = heavykeeper.New(heavykeeper.Config[string]{K: max(o.k, leastTracked), Stripes: 1, Seed: o.seed})
	}
	return t, err
}

// add counts a key, at a time that matters to windows only. It retains nothing.
func (t *tally) add(key []byte, at time.Time) {
	if t.window != nil {
		window.AddBytesAt(t.window, at, key, 1)
		return
	}
	heavykeeper.AddBytes(t.all, key, 1)
}

// frame is what there is to show at one moment.
type frame struct {
	items   []heavykeeper.Item[string]
	lines   uint64 // read so far
	counted uint64 // keys

	// Of all of the stream.
	total uint64 // keys counted
	exact bool

	// Of a window.
	windowed bool
	at       time.Time // zero before the first time of a log
	span     time.Duration
	series   [][]uint64 // of items, if asked for
}

// frame returns the k hottest keys, at a time that matters to windows only. If
// slots end just then, short is how much earlier to look, so that it is they
// that are shown and not the ones that begin. slots asks for the series of each
// key, which take as much memory as there are keys and slots.
func (t *tally) frame(k int, at time.Time, short time.Duration, slots bool) *frame {
	f := &frame{lines: t.lines.Load(), counted: t.counted.Load()}
	if t.window == nil {
		stats := t.all.Stats()
		f.items, f.total, f.exact = t.all.Top(k), stats.Total, stats.Exact
		return f
	}
	f.windowed, f.at = true, at
	at = at.Add(-short)
	f.items = t.window.TopAt(at, k)
	f.span = (t.window.SpanAt(at) + short).Round(time.Microsecond)
	if !slots {
		return f
	}
	for _, item := range f.items {
		f.series = append(f.series, t.window.SeriesAt(at, item.Key))
	}
	return f
}

// tooLate returns the number of keys that were not counted in the window
// because they came after later ones.
func (t *tally) tooLate() uint64 {
	if t.window == nil {
		return 0
	}
	return t.window.Stats().TooLate
}

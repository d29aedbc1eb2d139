package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/heavykeeper-go/heavykeeper"
)

// merge adds up sketches, shows the hottest keys of all, and returns the exit
// status. A sum of some of them would be wrong, so any that cannot be read ends
// it.
func (p *process) merge(o *options) int {
	var sum *heavykeeper.HeavyKeeper[string]
	for _, name := range o.files {
		h, err := readSketch(name)
		if err != nil {
			return p.fail(err)
		}
		if sum == nil {
			sum = h
			continue
		}
		if err := sum.Merge(h); errors.Is(err, heavykeeper.ErrMerge) {
			return p.fail(fmt.Errorf("%s and %s: %w: give -seed, and -k above %d, alike to all",
				o.files[0], name, err, leastTracked))
		} else if err != nil {
			return p.fail(fmt.Errorf("%s: %w", name, err))
		}
	}
	if o.save != "" {
		if err := writeSketch(o.save, sum); err != nil {
			return p.fail(err)
		}
	}
	t := &tally{all: sum}
	f := t.frame(o.k, time.Time{}, 0, false)
	if err := p.newView(o).write(f); err != nil {
		return p.fail(err)
	}
	p.warnFew(o.k, f)
	return statusOK
}

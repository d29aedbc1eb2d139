package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// progressEvery is how often the bar of progress is drawn.
const progressEvery = 200 * time.Millisecond

// counting is one run of the command that counts.
type counting struct {
	*process
	options  *options
	tally    *tally
	input    *input
	reader   *reader
	view     *view
	signals  *signals
	progress *progress // nil if none is shown
	held     []error   // what went wrong while a screen was shown
	ended    time.Time // when the input did, or a signal came
	status   int       // to exit with, if nothing worse happens
}

// count counts keys, shows the hottest, and returns the exit status.
func (p *process) count(o *options) int {
	c := &counting{process: p, options: o, input: newInput(o.files, p.stdin), view: p.newView(o)}
	if o.window > 0 && o.every == 0 {
		o.every = o.slot()
		if c.view.screen && o.time == "" {
			o.every = min(o.every, time.Second)
		}
	}
	var err error
	if c.tally, err = newTally(o); err != nil && o.load != "" {
		return p.fail(err)
	} else if err != nil { // sizes that are beyond the libraries' limits
		return p.refuse(err)
	}
	if c.reader, err = newReader(o, c.input, c.tally); err != nil {
		return p.refuse(err)
	}
	c.progress = c.newProgress()
	err = c.read()
	if c.progress != nil {
		c.progress.clear()
	}
	c.view.leave()
	for _, problem := range c.held {
		p.complain(problem)
	}
	if o.save != "" { // before anything is written to a pipe that may be closed
		if err := writeSketch(o.save, c.tally.all); err != nil {
			c.complain(err)
			c.status = statusFailed
		}
	}
	if err == nil {
		err = c.finish()
	}
	if err != nil {
		return p.fail(err)
	}
	c.warn()
	return c.status
}

func (c *counting) newProgress() *progress {
	_, terminal := c.terminal(c.stderr)
	total, known := c.input.size()
	if !terminal || !known || c.options.quiet || c.options.window > 0 {
		return nil
	}
	return &progress{
		out: c.stderr, total: total, started: time.Now(),
		terminal: func() (size, bool) { return c.terminal(c.stderr) },
	}
}

// read reads the input in another goroutine until it ends, a signal comes, or
// the output is gone, which it returns as an error.
func (c *counting) read() error {
	c.signals = c.catch(c.view.screen)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.reader.run(ctx)
	}()
	err := c.watch(done)
	c.ended = time.Now()
	stop()
	c.reader.settle()
	return err
}

// watch shows what there is to see until the input ends.
func (c *counting) watch(done <-chan struct{}) error {
	tick := time.NewTimer(time.Hour)
	defer tick.Stop()
	due := c.schedule(tick)
	for {
		var err error
		select {
		case <-done:
			return nil
		case problem := <-c.reader.problems:
			c.report(problem)
		case at := <-c.reader.frames:
			err = c.view.show(c.tally.frame(c.options.k, at, 1, c.view.showsSlots()))
			c.reader.shown <- struct{}{}
		case <-tick.C:
			if c.progress != nil {
				c.progress.draw(c.input.read.Load(), time.Now())
			} else {
				err = c.view.show(c.tally.frame(c.options.k, due, c.short(), c.view.showsSlots()))
			}
			due = c.schedule(tick)
		case <-c.signals.stop:
			c.view.leave()
			c.signals.suspend()
			err = c.view.show(c.tally.frame(c.options.k, c.present(), 0, c.view.showsSlots()))
		case s := <-c.signals.end:
			c.status = statusSignal
			if number, ok := s.(syscall.Signal); ok {
				c.status += int(number)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// schedule sets tick to when there is something to draw, and returns when that
// is. For a log that is replayed the reader says when.
func (c *counting) schedule(tick *time.Timer) time.Time {
	now := time.Now()
	switch {
	case c.progress != nil:
		tick.Reset(progressEvery)
	case c.options.window > 0 && c.options.time == "":
		due := after(now, c.options.every)
		tick.Reset(due.Sub(now))
		return due
	default:
		tick.Stop()
	}
	return now
}

// short is how much before the end of slots a window is shown. Clocks that the
// slots go by differ in fractions of a microsecond.
func (c *counting) short() time.Duration { return min(time.Millisecond, c.options.slot()/10) }

// report says which file could not be read; the others are.
func (c *counting) report(problem error) {
	c.status = statusFailed
	if c.view.screen {
		c.held = append(c.held, problem)
		return
	}
	if c.progress != nil {
		c.progress.clear()
	}
	c.complain(problem)
}

// present returns the time of which to show the window: that of the log, zero
// if it has not told any, or else of the clock, which stands still at the end.
func (c *counting) present() time.Time {
	switch present := c.tally.present.Load(); {
	case c.options.time == "" && c.ended.IsZero():
		return time.Now()
	case c.options.time == "":
		return c.ended
	case present != nil:
		return *present
	}
	return time.Time{}
}

// finish shows what is known at the end, unless just that was shown.
func (c *counting) finish() error {
	f := c.tally.frame(c.options.k, c.present(), 0, showsSlots(c.view.printer))
	if c.options.window > 0 && !c.view.screen && c.view.shown && f.counted == c.view.counted {
		return nil
	}
	if err := c.view.write(f); err != nil {
		return err
	}
	if !c.options.quiet {
		c.warnFew(c.options.k, f)
	}
	return nil
}

// warn tells what was left out of the counts.
func (c *counting) warn() {
	if c.options.quiet {
		return
	}
	t := c.tally
	for _, w := range []struct {
		n    uint64
		what string
	}{
		{t.skipped.Load(), fmt.Sprintf("lines of %s without a key, or a time, where it should be", grouped(t.lines.Load()))},
		{t.cutLines.Load(), fmt.Sprintf("lines of more than %d bytes, of which the rest was not looked at", maxLine)},
		{t.cutKeys.Load(), fmt.Sprintf("keys of more than %d bytes, which were cut", maxKey)},
		{t.tooLate(), "keys whose time had left the window when they came"},
	} {
		if w.n > 0 {
			fmt.Fprintf(c.stderr, "hotkeys: %s: %s\n", w.what, grouped(w.n))
		}
	}
}

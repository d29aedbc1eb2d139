package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"
)

// reader reads the input in a goroutine of its own and counts the keys. The
// goroutine that watches it must take what comes from its channels.
type reader struct {
	input    *input
	lines    *lines
	splitter splitter
	tally    *tally
	stamps   *stamps // nil: the time of a line is that of its arrival
	every    time.Duration
	speed    float64

	counting sync.Mutex // held but while waiting for input

	problems chan error     // files that could not be read
	frames   chan time.Time // moments of the log at which to show the window
	shown    chan struct{}  // the answer to each

	keys    [][]byte
	read    uint64 // lines; this and what follows is published before each read
	counted uint64 // keys
	skipped uint64
	cutKeys uint64
	arrived time.Time // of what was read last

	present       time.Time // latest time of a line
	next          time.Time // when to show the window again
	started, from time.Time // by the clock and by the log
}

func newReader(o *options, in *input, t *tally) (*reader, error) {
	r := &reader{
		input: in, lines: newLines(), tally: t, every: o.every, speed: o.speed,
		problems: make(chan error), frames: make(chan time.Time), shown: make(chan struct{}),
	}
	if o.time != "" {
		r.stamps = newStamps(o.layout, time.Now)
	}
	var err error
	r.splitter, err = newSplitter(o)
	return r, err
}

// run reads all files. It returns early when ctx is done, as soon as a read that
// is under way has ended, and does not count what that brings.
func (r *reader) run(ctx context.Context) {
	r.counting.Lock()
	defer r.counting.Unlock()
	for _, name := range r.input.names {
		err := r.file(ctx, name)
		r.publish()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			select {
			case r.problems <- err:
			case <-ctx.Done():
				return
			}
		}
	}
}

// settle waits until what was read is counted, but not for input: a pipe may be
// silent for ever. The context of run must be done. Nothing is counted after
// settle has returned.
func (r *reader) settle() {
	r.counting.Lock()
	defer r.counting.Unlock()
}

func (r *reader) file(ctx context.Context, name string) error {
	r.counting.Unlock()
	file, closer, err := r.input.open(name)
	r.counting.Lock()
	if err != nil {
		return err
	}
	defer closer.Close()
	r.lines.reset(&watchedReader{file, ctx, r})
	for line, ok := r.lines.next(); ok; line, ok = r.lines.next() {
		r.read++
		if err := r.line(ctx, line); err != nil {
			return err
		}
	}
	err = r.lines.failure()
	var path *fs.PathError // says the name itself
	if err != nil && !errors.As(err, &path) {
		err = fmt.Errorf("%s: %w", title(name), err)
	}
	return err
}

// line counts the keys of a line.
func (r *reader) line(ctx context.Context, line []byte) error {
	keys, stamp, ok := r.splitter.split(r.keys[:0], line)
	r.keys = keys
	at := r.arrived
	if ok && r.stamps != nil && len(keys) > 0 {
		at, ok = r.stamps.read(stamp)
	}
	if !ok {
		r.skipped++
		return nil
	}
	if len(keys) == 0 {
		return nil
	}
	if r.stamps != nil {
		if err := r.turn(ctx, at); err != nil {
			return err
		}
	}
	for _, key := range keys {
		if len(key) > maxKey {
			key = key[:maxKey]
			r.cutKeys++
		}
		r.tally.add(key, at)
	}
	r.counted += uint64(len(keys))
	return nil
}

// turn brings the log's time to t. At the end of each interval it has the
// window shown. An interval in which nothing comes is passed over.
func (r *reader) turn(ctx context.Context, t time.Time) error {
	if !t.After(r.present) {
		return nil
	}
	if r.next.IsZero() {
		r.started, r.from = time.Now(), t
	} else if !t.Before(r.next) {
		if err := r.wait(ctx, r.next); err != nil {
			return err
		}
		r.publish()
		select {
		case r.frames <- r.next:
			<-r.shown
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if r.present = t; !t.Before(r.next) {
		r.next = after(t, r.every)
	}
	return r.wait(ctx, t)
}

// wait waits for time t of the log, if it is replayed at some speed.
func (r *reader) wait(ctx context.Context, t time.Time) error {
	if r.speed == 0 {
		return nil
	}
	pause := time.Until(r.started.Add(replayTime(t.Sub(r.from), r.speed)))
	if pause < time.Millisecond { // timers do no better
		return nil
	}
	r.publish()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// replayTime returns how long a span of a log takes at a speed; no more than a
// timer can wait, even for centuries in slow motion.
func replayTime(span time.Duration, speed float64) time.Duration {
	const century = 100 * 365 * 24 * time.Hour
	return time.Duration(min(float64(span)/speed, float64(century)))
}

// after returns the first multiple of d since 1970 that is after t.
func after(t time.Time, d time.Duration) time.Time {
	part := time.Duration(t.UnixNano() % int64(d))
	if part < 0 {
		part += d
	}
	return t.Add(d - part)
}

// publish makes what was counted visible to other goroutines.
func (r *reader) publish() {
	r.tally.lines.Store(r.read)
	r.tally.counted.Store(r.counted)
	r.tally.skipped.Store(r.skipped)
	r.tally.cutLines.Store(r.lines.cut)
	r.tally.cutKeys.Store(r.cutKeys)
	if !r.present.IsZero() {
		present := r.present
		r.tally.present.Store(&present)
	}
}

// watchedReader is what the lines of a file are read from.
type watchedReader struct {
	file   io.Reader
	ctx    context.Context
	reader *reader
}

func (w *watchedReader) Read(p []byte) (int, error) {
	w.reader.publish()
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	w.reader.counting.Unlock()
	n, err := w.file.Read(p)
	w.reader.counting.Lock()
	if err := w.ctx.Err(); err != nil { // may have settled
		return 0, err
	}
	w.reader.arrived = time.Now()
	return n, err
}

package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// result is what came out.
type result struct {
	before, after counts          // times of reads: while all went to Redis, and in the sale
	found         []time.Duration // by node: from crossing the threshold until hot; negative: never
	sale          span            // from when the key was hot everywhere
	calm, off     span
	writes        uint64
	failed        uint64
	problem       error
	judge         *judge
	exact         bool // it is known how many reads of the sale's key Redis had
}

// span is what happened in some time.
type span struct {
	time      time.Duration
	reads     uint64
	hits      uint64
	commands  uint64
	saleReads uint64
	saleOps   uint64
}

func (s span) perSecond(n uint64) float64 { return float64(n) / max(s.time.Seconds(), 1e-9) }

// local returns the shares that were served locally in the sale: of all reads,
// and of those of the sale's key, which means nothing unless exact.
func (r *result) local() (all, sale float64) {
	if r.sale.saleReads > 0 {
		sale = 1 - ratio(r.sale.saleOps, r.sale.saleReads)
	}
	return ratio(r.sale.hits, r.sale.reads), sale
}

// faults returns what came out otherwise than o demands.
func (r *result) faults(o options) (faults []string) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if n := r.judge.beyond.Load(); n > 0 {
		add("%d reads were stale for longer than %v", n, r.judge.bound)
	}
	if n := r.judge.own.Load(); n > 0 {
		add("%d reads missed what their node had written", n)
	}
	if r.failed > 0 {
		add("%d requests failed, the last: %v", r.failed, r.problem)
	}
	for i, d := range r.found {
		switch {
		case d < 0:
			add("node %d did not find the sale's key", i)
		case o.hotWithin > 0 && d > o.hotWithin:
			add("node %d found the sale's key after %v, later than -hot-within = %v", i, d, o.hotWithin)
		}
	}
	all, sale := r.local()
	if all < o.local {
		add("%s of all reads were served locally, less than -local = %v", percent(all), o.local)
	}
	if r.exact && sale < o.localSale {
		add("%s of the reads of the sale's key were served locally, less than -local-sale = %v", percent(sale), o.localSale)
	}
	return faults
}

// marks are counters at a moment.
type marks struct {
	at                          time.Time
	reads, hits, commands, sale uint64
	saleOps                     uint64
}

func (l *load) marks(ctx context.Context) (m marks, err error) {
	m.at = time.Now()
	m.commands, err = l.s.commands(ctx)
	m.saleOps = l.s.saleOps.Load()
	for i, n := range l.s.nodes {
		s := n.cache.Stats()
		m.reads, m.hits = m.reads+s.Reads, m.hits+s.Hits
		m.sale += l.sale[i].Load()
	}
	return m, err
}

func (a marks) until(b marks) span {
	return span{b.at.Sub(a.at), b.reads - a.reads, b.hits - a.hits, b.commands - a.commands, b.sale - a.sale, b.saleOps - a.saleOps}
}

// play builds the stage and plays the sale on it.
func play(ctx context.Context, o options, out io.Writer) (r *result, err error) {
	s, err := build(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.await(ctx, false); err != nil {
		return nil, err
	}
	// What the SDK states once it is on, as the document says.
	bound := min(10*time.Second, s.nodes[0].cache.Stats().Bound)
	p := &player{s: s, out: out, r: &result{judge: newJudge(bound), exact: s.mini != nil}}
	p.load = newLoad(s, p.r.judge)
	loading, stop := context.WithCancel(ctx)
	defer s.group.Wait()
	defer stop()
	p.introduce(bound)
	p.load.start(loading)
	if err := p.acts(ctx); err != nil {
		return nil, err
	}
	stop()
	s.group.Wait()
	p.r.writes, p.r.failed = p.load.writes.Load(), p.load.failed.Load()
	if problem := p.load.lastly.Load(); problem != nil {
		p.r.problem = *problem
	}
	return p.r, nil
}

// player plays one act after another.
type player struct {
	s     *stage
	load  *load
	out   io.Writer
	r     *result
	began time.Time
}

func (p *player) introduce(bound time.Duration) {
	o := p.s.o
	fmt.Fprintf(p.out, "%d nodes, %.0f reads/s of %d keys (Zipf %.2f), %s mode; hot from %.1f reads/s; a read may be stale for %v\n\n",
		o.nodes, o.rate, o.keys, o.skew, o.mode, p.s.threshold(), bound)
	fmt.Fprintf(p.out, "%4s  %-5s %9s %6s %6s %9s %9s %9s %5s %6s %9s %6s\n",
		"s", "act", "reads/s", "local", "sale", "p50", "p99", "Redis/s", "hot", "stale", "longest", "beyond")
}

func (p *player) acts(ctx context.Context) (err error) {
	p.began = time.Now()
	if p.r.off, err = p.act(ctx, "off", p.s.o.off, &p.r.before, nil); err != nil {
		return err
	}
	if err := p.s.enable(ctx, true); err != nil {
		return err
	}
	if p.r.calm, err = p.act(ctx, "calm", p.s.o.calm, nil, nil); err != nil {
		return err
	}
	// From here on the key is watched, on every node.
	watching, stop := context.WithCancel(ctx)
	defer stop()
	found := p.watch(watching)
	rising := func(done float64) { p.load.setShare(p.s.o.share * done) }
	if _, err = p.act(ctx, "rise", p.s.o.rise, nil, rising); err != nil {
		return err
	}
	p.load.setShare(p.s.o.share)
	p.r.sale, err = p.act(ctx, "sale", p.s.o.sale, &p.r.after, nil)
	stop()
	p.r.found = <-found
	return err
}

// act plays one act, a line of the table for each second, and returns what
// happened in it. The times of reads are added to sum.
func (p *player) act(ctx context.Context, name string, length time.Duration, sum *counts, each func(done float64)) (span, error) {
	first, err := p.load.marks(ctx)
	p.load.reads.take()
	last := first
	for err == nil && last.at.Sub(first.at) < length {
		next := min(time.Second, length-last.at.Sub(first.at))
		for end := time.Now().Add(next); err == nil && time.Now().Before(end); {
			if each != nil {
				each(min(1, float64(time.Since(first.at))/float64(length)))
			}
			err = sleep(ctx, min(50*time.Millisecond, max(time.Until(end), time.Millisecond)))
		}
		if err != nil {
			break
		}
		var now marks
		if now, err = p.load.marks(ctx); err != nil {
			break
		}
		times := p.load.reads.take()
		if sum != nil {
			sum.add(&times)
		}
		p.line(name, last.until(now), &times)
		last = now
	}
	return first.until(last), err
}

func (p *player) line(name string, s span, times *counts) {
	j := p.r.judge
	sale := "-"
	if p.r.exact && s.saleReads > 0 {
		sale = percent(1 - float64(s.saleOps)/float64(s.saleReads))
	}
	fmt.Fprintf(p.out, "%4.0f  %-5s %9.0f %6s %6s %9s %9s %9.0f %5d %6d %9s %6d\n",
		time.Since(p.began).Seconds(), name, s.perSecond(s.reads), percent(ratio(s.hits, s.reads)), sale,
		short(times.quantile(0.5)), short(times.quantile(0.99)), s.perSecond(s.commands),
		p.s.nodes[0].cache.Stats().HotKeys, j.stale.Load(), short(time.Duration(j.longest.Load())), j.beyond.Load()+j.own.Load())
}

// watch returns, when ctx has ended, how long it took each node to take the
// sale's key for hot, from the moment that it had been read often enough for
// the threshold.
func (p *player) watch(ctx context.Context) <-chan []time.Duration {
	out := make(chan []time.Duration, 1)
	crossed, found := make([]time.Time, len(p.s.nodes)), make([]time.Duration, len(p.s.nodes))
	for i := range found {
		found[i] = -1
	}
	go func() {
		for ctx.Err() == nil {
			now := time.Now()
			for i, n := range p.s.nodes {
				if crossed[i].IsZero() && p.crossed(i) {
					crossed[i] = now
				}
				if found[i] < 0 && n.cache.Hot(saleKey) {
					if crossed[i].IsZero() {
						crossed[i] = now
					}
					found[i] = now.Sub(crossed[i])
				}
			}
			_ = sleep(ctx, 5*time.Millisecond)
		}
		out <- found
	}()
	return out
}

// crossed reports whether the sale's key has been read as often as a key at the
// threshold is in a window: by node i, or in cluster mode by all.
func (p *player) crossed(i int) bool {
	reads := p.load.sale[i].Load()
	if p.s.o.mode == "cluster" {
		reads = 0
		for j := range p.load.sale {
			reads += p.load.sale[j].Load()
		}
	}
	return float64(reads) >= p.s.threshold()*(slots*slot).Seconds()
}

func (r *result) print(w io.Writer) {
	fmt.Fprintf(w, "\nhot after crossing the threshold, by node:")
	for _, d := range r.found {
		if d < 0 {
			fmt.Fprint(w, "  never")
		} else {
			fmt.Fprintf(w, "  %.2f s", d.Seconds())
		}
	}
	all, sale := r.local()
	fmt.Fprintf(w, "\nserved locally in the sale: %s of all reads", percent(all))
	if r.exact {
		fmt.Fprintf(w, ", %s of those of the sale's key", percent(sale))
	}
	fmt.Fprintf(w, "\nreads, off: p50 %s, p99 %s; in the sale: p50 %s, p99 %s\n",
		short(r.before.quantile(0.5)), short(r.before.quantile(0.99)), short(r.after.quantile(0.5)), short(r.after.quantile(0.99)))
	fmt.Fprintf(w, "commands of Redis for each read: off %.2f, in the sale %.2f\n",
		ratio(r.off.commands, r.off.reads), ratio(r.sale.commands, r.sale.reads))
	fmt.Fprintf(w, "prices changed: %d; reads of one that had been replaced: %d, the longest %s before\n",
		r.writes, r.judge.stale.Load(), short(time.Duration(r.judge.longest.Load())))
	fmt.Fprintf(w, "stale for longer than %v: %d; on the node that wrote: %d\n", r.judge.bound, r.judge.beyond.Load(), r.judge.own.Load())
}

func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// short returns a time with three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"
)

// zipfShare returns the share of key number rank, from 1 on, of reads that are
// distributed as rand.Zipf does.
func zipfShare(skew float64, keys, rank int) float64 {
	var sum float64
	for i := 1; i <= keys; i++ {
		sum += math.Pow(float64(i), -skew)
	}
	return math.Pow(float64(min(rank, keys)), -skew) / sum
}

// load reads and writes as customers and the shop do.
type load struct {
	s      *stage
	judge  *judge
	share  atomic.Uint64 // of the sale's key, as float64
	reads  histogram
	failed atomic.Uint64
	writes atomic.Uint64
	sale   []atomic.Uint64 // reads of the sale's key, by node
	lastly atomic.Pointer[error]
}

func newLoad(s *stage, j *judge) *load {
	return &load{s: s, judge: j, sale: make([]atomic.Uint64, len(s.nodes))}
}

func (l *load) setShare(share float64) { l.share.Store(math.Float64bits(share)) }
func (l *load) shareNow() float64      { return math.Float64frombits(l.share.Load()) }

func (l *load) fail(err error) {
	l.failed.Add(1)
	l.lastly.Store(&err)
}

// start starts all readers and the writer, which end with ctx.
func (l *load) start(ctx context.Context) {
	for i, n := range l.s.nodes {
		for w := range l.s.o.workers {
			l.s.group.Go(func() { l.readAll(ctx, i, n, rand.New(rand.NewPCG(uint64(i), uint64(w)))) })
		}
	}
	l.s.group.Go(func() { l.writeAll(ctx) })
}

// readAll is a reader. It keeps to its share of the rate; what it falls behind
// by more than 50 ms it gives up.
func (l *load) readAll(ctx context.Context, i int, n *node, random *rand.Rand) {
	rate := l.s.o.rate / float64(len(l.s.nodes)*l.s.o.workers)
	zipf := rand.NewZipf(random, l.s.o.skew, 1, uint64(l.s.o.keys-1))
	start, done := time.Now(), 0.0
	for ctx.Err() == nil {
		due := rate * time.Since(start).Seconds()
		if done < due-rate/20 {
			done = due - rate/20
		}
		for ; done < due && ctx.Err() == nil; done++ {
			key := saleKey
			if random.Float64() >= l.shareNow() {
				key = itemKey(zipf.Uint64())
			} else {
				l.sale[i].Add(1)
			}
			l.read(ctx, n, key)
		}
		time.Sleep(time.Duration((1 - (due - math.Floor(due))) / rate * float64(time.Second)))
	}
}

func (l *load) read(ctx context.Context, n *node, key string) {
	start := time.Now()
	price, err := n.client.Get(ctx, key).Result()
	took := time.Since(start)
	if ctx.Err() != nil {
		return
	}
	version, bad := strconv.Atoi(price)
	switch {
	case err != nil:
		l.fail(err)
		return
	case bad != nil:
		l.fail(fmt.Errorf("%s: price %q", key, price))
		return
	}
	l.reads.add(took)
	l.judge.read(key, n, start, version)
}

// writeAll changes a price now and then, by way of some node: every other time
// that of the sale's key, or else that of a popular one.
func (l *load) writeAll(ctx context.Context) {
	random := rand.New(rand.NewPCG(7, 7))
	for sleep(ctx, l.s.o.change) == nil {
		key := saleKey
		if random.IntN(2) == 0 {
			key = itemKey(random.Uint64N(uint64(min(50, l.s.o.keys))))
		}
		n := l.s.nodes[random.IntN(len(l.s.nodes))]
		version := l.judge.next(key)
		// A write that has begun is waited for, so that it is known whether it was
		// carried out.
		if err := n.client.Set(context.WithoutCancel(ctx), key, strconv.Itoa(version), 0).Err(); err != nil {
			l.fail(err)
			return
		}
		l.judge.written(key, n)
		l.writes.Add(1)
	}
}

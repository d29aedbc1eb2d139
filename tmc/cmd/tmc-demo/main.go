// Command tmc-demo plays a flash sale: several nodes of an application read
// from Redis, one key becomes very hot while prices change, and a table shows
// what the local caches make of it. By itself it starts what it needs in this
// process: miniredis, a broker that speaks Kafka's protocol, a tmc server.
//
// It ends with status 1 if a read failed, or was stale beyond the bound that the
// SDK states, if a node found the sale's key later than -hot-within, or if less
// was served locally than -local and -local-sale say.
//
// There is no etcd in it: to embed one takes its whole server, with Raft and a
// database, into the requirements of all who use this module, and doubles their
// number. -etcd takes the address of a real one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// options are the flags.
type options struct {
	mode      string
	transport string
	redis     string
	kafka     string
	etcd      string

	nodes   int
	workers int
	rate    float64
	share   float64
	keys    int
	skew    float64
	topN    int
	change  time.Duration

	off, calm, rise, sale time.Duration

	hotWithin        time.Duration
	local, localSale float64
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("tmc-demo", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.mode, "mode", "cluster", "who finds hot keys: `cluster` (a server, from the reports of all nodes) or embedded (each node by itself)")
	f.StringVar(&o.transport, "transport", "kafka", "what carries reports in cluster mode: `kafka` or redis")
	f.StringVar(&o.redis, "redis", "", "`address` of Redis, which should hold nothing else (default: miniredis in this process)")
	f.StringVar(&o.kafka, "kafka", "", "`address` of a Kafka broker (default: a fake one in this process)")
	f.StringVar(&o.etcd, "etcd", "", "`address` of etcd, to carry hot sets and invalidations (default: Redis does)")
	f.IntVar(&o.nodes, "nodes", 3, "number of nodes, each with a client, a cache and connections of its own")
	f.IntVar(&o.workers, "workers", 16, "readers of a node")
	f.Float64Var(&o.rate, "rate", 50_000, "reads a second, of all nodes")
	f.Float64Var(&o.share, "share", 0.3, "share of all reads that the sale's key rises to")
	f.IntVar(&o.keys, "keys", 10_000, "number of other keys")
	f.Float64Var(&o.skew, "skew", 1.2, "Zipf exponent of the other keys, more than 1")
	f.IntVar(&o.topN, "top", 500, "most hot keys")
	f.DurationVar(&o.change, "change", 200*time.Millisecond, "time between changes of prices")
	f.DurationVar(&o.off, "off", 3*time.Second, "how long all reads go to Redis at first")
	f.DurationVar(&o.calm, "calm", 5*time.Second, "how long before the sale")
	f.DurationVar(&o.rise, "rise", 4*time.Second, "how long the sale's key rises")
	f.DurationVar(&o.sale, "sale", 10*time.Second, "how long the sale lasts after that")
	f.DurationVar(&o.hotWithin, "hot-within", 3*time.Second, "longest `time` that a node may take to find the sale's key; 0: any")
	f.Float64Var(&o.local, "local", 0.8, "least `share` of all reads in the sale to be served locally")
	f.Float64Var(&o.localSale, "local-sale", 0.95, "least `share` of the reads of the sale's key, which is known with miniredis only")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	return o, o.check(f.Args())
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unknown argument %q", rest[0])
	case o.mode != "cluster" && o.mode != "embedded":
		return fmt.Errorf("-mode = %q: must be cluster or embedded", o.mode)
	case o.transport != "kafka" && o.transport != "redis":
		return fmt.Errorf("-transport = %q: must be kafka or redis", o.transport)
	case o.transport == "redis" && o.mode == "cluster" && o.redis == "":
		return errors.New("-transport = redis: needs -redis, as miniredis has not all of Redis Streams")
	case o.nodes < 1 || o.nodes > 100:
		return fmt.Errorf("-nodes = %d: must be 1 to 100", o.nodes)
	case o.workers < 1 || o.workers > 1000:
		return fmt.Errorf("-workers = %d: must be 1 to 1000", o.workers)
	case !(o.rate > 0 && o.rate <= 1e7):
		return fmt.Errorf("-rate = %v: must be more than 0, at most 1e7", o.rate)
	case !(o.share > 0 && o.share <= 1):
		return fmt.Errorf("-share = %v: must be more than 0, at most 1", o.share)
	case o.keys < 1 || o.keys > 1e6:
		return fmt.Errorf("-keys = %d: must be 1 to 1000000", o.keys)
	case !(o.skew > 1 && o.skew <= 10):
		return fmt.Errorf("-skew = %v: must be more than 1, at most 10", o.skew)
	case o.topN < 1 || o.topN > 10_000:
		return fmt.Errorf("-top = %d: must be 1 to 10000", o.topN)
	case o.change < time.Millisecond:
		return fmt.Errorf("-change = %v: must be at least 1ms", o.change)
	case o.off < 0 || o.calm < 0 || o.rise < 0 || o.sale < time.Second:
		return errors.New("-off, -calm, -rise: must not be negative, and -sale at least 1s")
	case o.hotWithin < 0:
		return fmt.Errorf("-hot-within = %v: must not be negative", o.hotWithin)
	case !(o.local >= 0 && o.local <= 1):
		return fmt.Errorf("-local = %v: must be 0 to 1", o.local)
	case !(o.localSale >= 0 && o.localSale <= 1):
		return fmt.Errorf("-local-sale = %v: must be 0 to 1", o.localSale)
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run plays the sale and returns the exit status: 1 if it failed or did not show
// what it must, 2 for bad arguments.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "tmc-demo:", err)
		return 2
	}
	result, err := play(ctx, o, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "tmc-demo:", err)
		return 1
	}
	result.print(stdout)
	faults := result.faults(o)
	for _, fault := range faults {
		fmt.Fprintln(stderr, "tmc-demo:", fault)
	}
	return min(len(faults), 1)
}

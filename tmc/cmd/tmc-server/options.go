package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/live"
)

// options are the command line.
type options struct {
	name, listen, prefix string

	redis, redisUser, redisPassword string
	redisDB                         int
	redisTLS                        bool

	transport string
	shards    int
	lease     time.Duration

	kafka, kafkaTopic, kafkaGroup  string
	kafkaPartitions, kafkaReplicas int
	kafkaTLS                       bool
	kafkaSession                   time.Duration

	push    string
	retain  time.Duration
	etcd    string
	etcdDir string

	config    string
	base      string
	interval  time.Duration
	configDir string

	slots, heat, maxApps, refresh int
	slot, idle                    time.Duration

	logLevel, logFormat string
	check               string
}

// parse parses the command line. Passwords come from the environment, where
// others do not see them.
func parse(args []string, getenv func(string) string, stderr io.Writer) (*options, error) {
	o := &options{redisPassword: getenv("TMC_REDIS_PASSWORD")}
	f := flag.NewFlagSet("tmc-server", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.name, "name", "", "`text` that begins the name of this server, which ends with something random (default: the host's name)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8475", "`address` of the pages and /metrics")
	f.StringVar(&o.prefix, "prefix", "tmc", "`text` that begins the names of all Redis keys")

	f.StringVar(&o.redis, "redis", "127.0.0.1:6379", "`addresses` of Redis: one, or several of a cluster, with commas")
	f.StringVar(&o.redisUser, "redis-user", "", "`name` of the Redis user; the password is $TMC_REDIS_PASSWORD")
	f.IntVar(&o.redisDB, "redis-db", 0, "`number` of the Redis database, not in a cluster")
	f.BoolVar(&o.redisTLS, "redis-tls", false, "connect to Redis by TLS")

	f.StringVar(&o.transport, "transport", "redis", "`how` reports come: redis or kafka")
	f.IntVar(&o.shards, "shards", 16, "`number` of streams, the same in all servers and SDKs (redis)")
	f.DurationVar(&o.lease, "lease", 3*time.Second, "`time` that a server that is gone keeps its shards (redis)")
	f.StringVar(&o.kafka, "kafka", "127.0.0.1:9092", "`addresses` of brokers, with commas (kafka)")
	f.StringVar(&o.kafkaTopic, "kafka-topic", "tmc-reports", "`name` of the topic (kafka)")
	f.StringVar(&o.kafkaGroup, "kafka-group", "tmc", "`name` of the consumer group (kafka)")
	f.IntVar(&o.kafkaPartitions, "kafka-partitions", 0, "`number` of partitions to create the topic with if there is none; 0: do not, -1: the brokers' default (kafka)")
	f.IntVar(&o.kafkaReplicas, "kafka-replicas", -1, "`number` of replicas to create it with; -1: the brokers' default (kafka)")
	f.BoolVar(&o.kafkaTLS, "kafka-tls", false, "connect to Kafka by TLS (kafka)")
	f.DurationVar(&o.kafkaSession, "kafka-session", 10*time.Second, "`time` that a server that is gone keeps its partitions (kafka)")

	f.StringVar(&o.push, "push", "redis", "`how` hot sets go to SDKs: redis or etcd")
	f.DurationVar(&o.retain, "retain", 10*time.Minute, "`time` that a stored hot set outlives the last push")
	f.StringVar(&o.etcd, "etcd", "http://127.0.0.1:2379", "`addresses` of etcd, with commas")
	f.StringVar(&o.etcdDir, "etcd-prefix", "/tmc", "`text` that begins the etcd keys of hot sets")

	f.StringVar(&o.config, "config", "redis", "`where` the configuration of applications is: redis, etcd or none")
	f.StringVar(&o.configDir, "config-etcd-prefix", "/tmc-config", "`text` that begins the etcd keys of configurations")
	f.DurationVar(&o.interval, "config-interval", time.Second, "`time` between looks at a configuration in Redis")
	f.StringVar(&o.base, "config-base", "", "`file` with the configuration of applications that have none")

	f.IntVar(&o.slots, "slots", 10, "`number` of slots of the window")
	f.DurationVar(&o.slot, "slot", 3*time.Second, "`length` of a slot, and the time between scans")
	f.IntVar(&o.heat, "heat", 100, "`number` of the hottest keys of an application whose heat is stored")
	f.IntVar(&o.maxApps, "max-apps", 100, "`number` of applications at a time")
	f.DurationVar(&o.idle, "idle", time.Hour, "`time` that an application is kept that sends no reports")
	f.IntVar(&o.refresh, "refresh", 10, "`number` of slots after which an unchanged hot set is pushed again")

	f.StringVar(&o.logLevel, "log-level", "info", "least `level` that is logged: debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "`format` of the log: text or json")
	f.StringVar(&o.check, "check", "", "check the configuration of an application in `file`, and end")
	if err := f.Parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			err = errors.New("see -help")
		}
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; see -help", f.Arg(0))
	}
	return o, o.validate()
}

// validate checks what nothing else does.
func (o *options) validate() error {
	for _, choice := range []struct{ flag, value, of string }{
		{"transport", o.transport, "redis kafka"},
		{"push", o.push, "redis etcd"},
		{"config", o.config, "redis etcd none"},
		{"log-level", o.logLevel, "debug info warn error"},
		{"log-format", o.logFormat, "text json"},
	} {
		found := false
		for _, word := range strings.Fields(choice.of) {
			found = found || word == choice.value
		}
		if !found {
			return fmt.Errorf("-%s = %q: must be one of: %s", choice.flag, choice.value, choice.of)
		}
	}
	switch {
	case o.kafkaPartitions < -1 || o.kafkaPartitions > 100_000:
		return fmt.Errorf("-kafka-partitions = %d: must be -1 to 100000", o.kafkaPartitions)
	case o.kafkaReplicas != -1 && (o.kafkaReplicas < 1 || o.kafkaReplicas > math.MaxInt16):
		return fmt.Errorf("-kafka-replicas = %d: must be -1 or 1 to %d", o.kafkaReplicas, math.MaxInt16)
	case o.retain.Seconds() <= float64(o.refresh)*o.slot.Seconds():
		return fmt.Errorf("-retain = %v: must be more than -refresh times -slot, or SDKs that start find no hot set", o.retain)
	}
	return nil
}

// logger returns the logger that the options ask for.
func (o *options) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	level.UnmarshalText([]byte(o.logLevel)) // it was validated
	options := &slog.HandlerOptions{Level: level}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// baseConfig returns the configuration of applications that have none.
func (o *options) baseConfig() (live.Config, error) {
	if o.base == "" {
		return live.Default(), nil
	}
	return o.read(o.base)
}

// read reads a configuration from a file.
func (o *options) read(file string) (live.Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return live.Config{}, err
	}
	c, err := live.Parse(data, live.Default(), o.slots)
	if err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// check checks a configuration and returns the exit status.
func check(o *options, stdout, stderr io.Writer) int {
	if _, err := o.read(o.check); err != nil {
		fmt.Fprintln(stderr, "tmc-server:", err)
		return 1
	}
	fmt.Fprintf(stdout, "%s: good\n", o.check)
	return 0
}

package redisstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	defaultShards        = 16
	maxShards            = 1024
	defaultMaxLen        = 10_000
	defaultMaxPublishers = 4096
)

// Options are the parameters of a [Publisher] and of a [Consumer]. The zero
// value of every field but Client selects its default.
type Options struct {
	// Client reaches the Redis that has the streams. Required. It stays the
	// caller's to close.
	Client redis.UniversalClient

	// Prefix begins the names of all keys. Default "tmc".
	Prefix string

	// Shards is the number of streams, and so the most servers that have
	// something to do, 1 to 1024. All publishers and consumers of a Prefix must
	// have the same: the first one stores it, in prefix:{tmc}:shards, and others
	// fail. Default 16.
	Shards int

	// MaxLen is about how many reports a stream keeps, at least 1. Default
	// 10,000. For publishers.
	MaxLen int64

	// Name is the server's, unique to the life of one process. Default: one
	// made up of the host's name and random digits. For consumers.
	Name string

	// Lease is how long a server that is gone keeps its shards, at least
	// 100 ms. Default 3 s. For consumers.
	Lease time.Duration

	// Batch is how many reports of a stream are read at a time, 1 to 10,000.
	// Default 100. For consumers.
	Batch int64

	// MaxPublishers is how many publishers of a shard have the number of their
	// last report remembered, at least 1. Default 4096. For consumers.
	MaxPublishers int

	// Logger is told of shards that come and go, and of failures. Default
	// [slog.Default]. For consumers.
	Logger *slog.Logger
}

// resolve fills in defaults and reports the first parameter out of range.
func (o Options) resolve() (Options, error) {
	if o.Client == nil {
		return o, errors.New("redisstream: Client = nil: is required")
	}
	if o.Prefix == "" {
		o.Prefix = "tmc"
	}
	if o.Name == "" {
		o.Name = randomName()
	}
	if o.Lease == 0 {
		o.Lease = 3 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Lease < 100*time.Millisecond || o.Lease > time.Hour {
		return o, fmt.Errorf("redisstream: Lease = %v: must be 100ms to 1h", o.Lease)
	}
	for _, n := range []struct {
		name  string
		value *int64
		def   int64
		most  int64
	}{
		{"MaxLen", &o.MaxLen, defaultMaxLen, 1 << 40},
		{"Batch", &o.Batch, 100, 10_000},
	} {
		if err := bound(n.name, n.value, n.def, n.most); err != nil {
			return o, err
		}
	}
	if err := bound("Shards", &o.Shards, defaultShards, maxShards); err != nil {
		return o, err
	}
	return o, bound("MaxPublishers", &o.MaxPublishers, defaultMaxPublishers, 1<<30)
}

// bound fills in the default of a number and reports it if it is not from 1 to
// most.
func bound[N int | int64](name string, value *N, def, most N) error {
	if *value == 0 {
		*value = def
	}
	if *value < 1 || *value > most {
		return fmt.Errorf("redisstream: %s = %d: must be 1 to %d", name, *value, most)
	}
	return nil
}

func (o *Options) key(name string) string        { return o.Prefix + ":{tmc}:" + name }
func (o *Options) stream(shard int) string       { return o.key("reports:" + strconv.Itoa(shard)) }
func (o *Options) sequencesKey(shard int) string { return o.key("sequences:" + strconv.Itoa(shard)) }
func (o *Options) shardOf(stream string) (int, bool) {
	prefix := o.key("reports:")
	if len(stream) < len(prefix) {
		return 0, false
	}
	shard, err := strconv.Atoi(stream[len(prefix):])
	return shard, err == nil && shard >= 0 && shard < o.Shards
}

// ErrShards is what errors wrap if others of the same Prefix have another
// number of Shards.
var ErrShards = errors.New("redisstream: others have another number of shards")

// agree stores the number of shards, or compares it with the one stored.
func (o *Options) agree(ctx context.Context) error {
	key := o.key("shards")
	if err := o.Client.SetNX(ctx, key, o.Shards, 0).Err(); err != nil {
		return fmt.Errorf("redisstream: storing the number of shards: %w", err)
	}
	stored, err := o.Client.Get(ctx, key).Result()
	if err != nil {
		return fmt.Errorf("redisstream: reading the number of shards: %w", err)
	}
	if stored != strconv.Itoa(o.Shards) {
		return fmt.Errorf("%w: Shards = %d, %s = %s", ErrShards, o.Shards, key, stored)
	}
	return nil
}

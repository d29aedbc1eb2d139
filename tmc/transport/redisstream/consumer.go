package redisstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/backoff"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// group is the name of the consumer group.
const group = "tmc"

// remembered is how long the numbers of a shard that nobody writes to are kept.
const remembered = 24 * time.Hour

// Consumer is a [wire.Consumer] on Redis Streams: one of a group of servers.
// All methods are safe for concurrent use, but Consume runs once at a time.
type Consumer struct {
	options Options // resolved
	busy    sync.Mutex

	// Of the call of Consume that is under way:
	membership membership
	shards     map[int]*shard // that were opened
	renewal    time.Time      // when to renew the membership
	f          func(wire.Report) error

	reports, lost, late, repeated, malformed, failures atomic.Uint64
	owned                                              atomic.Int64
}

var (
	_ wire.Consumer   = (*Consumer)(nil)
	_ transport.Meter = (*Consumer)(nil)
)

// shard is a stream that this server reads.
type shard struct {
	number    int
	sequences *sequences
	received  []string // IDs of entries that are not confirmed yet

	// behind says that there may be entries that were read by this or another
	// server and not received: they come before new ones. Should there be some
	// at another time, they are found when reclaim is due.
	behind  bool
	reclaim time.Time
}

// NewConsumer returns a consumer. It connects to nothing yet. It fails if a
// parameter is out of range.
func NewConsumer(options Options) (*Consumer, error) {
	options, err := options.resolve()
	if err != nil {
		return nil, err
	}
	return &Consumer{options: options}, nil
}

// Name returns the name of the server in the group.
func (c *Consumer) Name() string { return c.options.Name }

// Stats returns what c has done so far.
func (c *Consumer) Stats() transport.Stats {
	return transport.Stats{
		Reports:   c.reports.Load(),
		Lost:      c.lost.Load(),
		Late:      c.late.Load(),
		Repeated:  c.repeated.Load(),
		Malformed: c.malformed.Load(),
		Failures:  c.failures.Load(),
		Shards:    int(c.owned.Load()),
	}
}

// failure is an error of f, which ends Consume, as others do not.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// Consume receives reports until ctx ends; see [wire.Consumer]. It returns
// [ErrShards] if others have another number of shards.
func (c *Consumer) Consume(ctx context.Context, f func(wire.Report) error) error {
	if !c.busy.TryLock() {
		return transport.ErrBusy
	}
	defer c.busy.Unlock()
	c.membership = membership{options: &c.options}
	c.shards = make(map[int]*shard)
	c.renewal = time.Time{}
	c.f = f
	defer c.goodbye()

	wait := backoff.Backoff{Min: 20 * time.Millisecond, Max: c.options.Lease / 2}
	for agreed := false; ; {
		err := ctx.Err()
		if err == nil && !agreed {
			err = c.options.agree(ctx)
			agreed = err == nil
		} else if err == nil {
			err = c.step(ctx)
		}
		var f failure
		switch {
		case err == nil:
			wait.Reset()
			continue
		case errors.As(err, &f):
			return f.error
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrShards):
			return err
		}
		c.failures.Add(1)
		c.options.Logger.Warn("reports not received", "error", err)
		for _, s := range c.shards {
			s.behind = true // an answer may have been lost on its way
		}
		if !time.Now().Before(c.membership.until) {
			c.owned.Store(0)
		}
		if wait.Wait(ctx) != nil {
			return ctx.Err()
		}
	}
}

// step renews the membership if that is due, reads what there is, and
// confirms what was received.
func (c *Consumer) step(ctx context.Context) error {
	if now := time.Now(); !now.Before(c.renewal) {
		if err := c.membership.renew(ctx); err != nil {
			return err
		}
		c.renewal = now.Add(c.options.Lease / 3)
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	if !time.Now().Before(c.membership.until) {
		return nil // shards may be another's by now
	}
	if len(c.shards) == 0 {
		timer := time.NewTimer(time.Until(c.renewal))
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		}
	}
	return c.read(ctx)
}

// settle opens the shards that were taken over, and closes those given up.
func (c *Consumer) settle(ctx context.Context) error {
	for number := range c.shards {
		if _, ok := c.membership.owned[number]; !ok {
			delete(c.shards, number)
			c.options.Logger.Info("shard given up", "shard", number)
		}
	}
	c.owned.Store(int64(len(c.membership.owned)))
	for number, opened := range c.membership.owned {
		if !opened {
			if err := c.open(ctx, number); err != nil {
				return err
			}
			c.membership.owned[number] = true
		}
		if err := c.reclaim(ctx, c.shards[number]); err != nil {
			return err
		}
	}
	return nil
}

// open makes a shard ready to be read that others may have had, or Redis has
// forgotten who had it.
func (c *Consumer) open(ctx context.Context, number int) error {
	o := &c.options
	if err := c.createGroup(ctx, number); err != nil {
		return err
	}
	stored, err := o.Client.HGetAll(ctx, o.sequencesKey(number)).Result()
	if err != nil {
		return fmt.Errorf("redisstream: reading the numbers of shard %d: %w", number, err)
	}
	if err := c.clean(ctx, number); err != nil {
		return err
	}
	s := c.shards[number]
	if s == nil {
		s = &shard{number: number, sequences: newSequences(o.MaxPublishers)}
		c.shards[number] = s
		o.Logger.Info("shard taken over", "shard", number)
	}
	s.behind = true
	s.sequences.load(stored)
	return nil
}

// createGroup makes the group of a shard, and its stream, if there is none. It
// begins with the oldest report.
func (c *Consumer) createGroup(ctx context.Context, number int) error {
	err := c.options.Client.XGroupCreateMkStream(ctx, c.options.stream(number), group, "0").Err()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return fmt.Errorf("redisstream: making the group of shard %d: %w", number, err)
	}
	return nil
}

// reclaim receives what was read of a shard and not confirmed, here or by
// others. Those who had the shard before have lost it, so that there is no
// need to wait until they are idle. Later, a command of such a one may still
// arrive, that was long on its way, and it will not use the answer.
func (c *Consumer) reclaim(ctx context.Context, s *shard) error {
	o := &c.options
	idle, now := o.Lease, time.Now()
	switch {
	case s.behind:
		idle = 0
	case now.Before(s.reclaim):
		return nil
	}
	for start := "0-0"; ; {
		entries, next, err := o.Client.XAutoClaim(ctx, &redis.XAutoClaimArgs{
			Stream: o.stream(s.number), Group: group, Consumer: o.Name, MinIdle: idle, Start: start, Count: o.Batch,
		}).Result()
		if err != nil {
			return fmt.Errorf("redisstream: claiming reports of shard %d: %w", s.number, err)
		}
		if err := c.receive(s, entries); err != nil {
			return err
		}
		if err := c.confirm(ctx, s); err != nil {
			return err
		}
		if next == "0-0" {
			s.behind, s.reclaim = false, now.Add(o.Lease)
			return nil
		}
		start = next
	}
}

// clean removes the consumers of a shard that are gone, or are this server, and
// have nothing left: to remove others would lose that.
func (c *Consumer) clean(ctx context.Context, number int) error {
	o := &c.options
	consumers, err := o.Client.XInfoConsumers(ctx, o.stream(number), group).Result()
	if err != nil {
		return fmt.Errorf("redisstream: listing the consumers of shard %d: %w", number, err)
	}
	for _, other := range consumers {
		if other.Pending > 0 || other.Name != o.Name && other.Idle < 2*o.Lease {
			continue
		}
		if err := o.Client.XGroupDelConsumer(ctx, o.stream(number), group, other.Name).Err(); err != nil {
			return fmt.Errorf("redisstream: removing consumer %s of shard %d: %w", other.Name, number, err)
		}
	}
	return nil
}

var errLate = errors.New("redisstream: reports came after the lease had ended")

// read reads and confirms a batch of each shard, or waits for some to come. It
// does not wait beyond the renewal, so that Redis never hands reports to a
// server whose lease has ended, even to one that it cannot reach.
func (c *Consumer) read(ctx context.Context) error {
	o := &c.options
	for _, s := range c.shards {
		if err := c.confirm(ctx, s); err != nil { // what could not be confirmed before
			return err
		}
	}
	block := max(time.Until(c.renewal), time.Millisecond)
	ctx, cancel := context.WithTimeout(ctx, block+o.Lease) // if the client heeds it
	defer cancel()
	streams := make([]string, 0, 2*len(c.shards))
	for number := range c.shards {
		streams = append(streams, o.stream(number))
	}
	for range c.shards {
		streams = append(streams, ">")
	}
	read, err := o.Client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: group, Consumer: o.Name, Streams: streams, Count: o.Batch,
		Block: block,
	}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil && strings.HasPrefix(err.Error(), "NOGROUP"):
		return c.recreate(ctx)
	case err != nil:
		return fmt.Errorf("redisstream: reading reports: %w", err)
	case !time.Now().Before(c.membership.until):
		return errLate
	}
	for _, stream := range read {
		number, ok := o.shardOf(stream.Stream)
		s := c.shards[number]
		if !ok || s == nil {
			return fmt.Errorf("redisstream: got reports of %s, which were not asked for", stream.Stream)
		}
		if err := c.receive(s, stream.Messages); err != nil {
			return errors.Join(err, c.confirm(ctx, s))
		}
		if err := c.confirm(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// recreate makes the groups again that Redis has lost, as when it was started
// again. The numbers are remembered here, so that what was lost is counted.
func (c *Consumer) recreate(ctx context.Context) error {
	c.options.Logger.Warn("Redis has lost the streams of reports")
	if err := c.options.agree(ctx); err != nil {
		return err
	}
	for number := range c.shards {
		if err := c.createGroup(ctx, number); err != nil {
			return err
		}
	}
	return nil
}

// receive passes entries on, and has them confirmed later.
func (c *Consumer) receive(s *shard, entries []redis.XMessage) error {
	for _, entry := range entries {
		if err := c.entry(s, entry); err != nil {
			return failure{err}
		}
		s.received = append(s.received, entry.ID)
	}
	return nil
}

func (c *Consumer) entry(s *shard, entry redis.XMessage) error {
	text, _ := entry.Values[reportField].(string)
	publisher, _ := entry.Values[publisherField].(string)
	sequence, _ := entry.Values[sequenceField].(string)
	number, err := strconv.ParseUint(sequence, 10, 64)
	var report wire.Report
	if err == nil {
		err = report.UnmarshalBinary([]byte(text))
	}
	if err != nil || len(publisher) > wire.MaxNode {
		c.malformed.Add(1)
		c.options.Logger.Error("report not understood", "shard", s.number, "id", entry.ID, "error", err)
		return nil
	}
	if s.sequences.repeated(publisher, number) {
		c.repeated.Add(1)
		return nil
	}
	if err := c.f(report); err != nil {
		return err
	}
	c.reports.Add(1)
	lost, late := s.sequences.note(publisher, number)
	c.lost.Add(lost)
	if late {
		c.late.Add(1)
	}
	return nil
}

// confirm confirms what was received of a shard, deletes it, and stores the
// numbers, all or nothing. Once the lease has ended it stores no numbers: another
// server may have stored later ones.
func (c *Consumer) confirm(ctx context.Context, s *shard) error {
	if len(s.received) == 0 {
		return nil
	}
	o := &c.options
	var set []any
	var remove []string
	owner := time.Now().Before(c.membership.until)
	if owner {
		set, remove = s.sequences.changes()
	}
	_, err := o.Client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.XAck(ctx, o.stream(s.number), group, s.received...)
		pipe.XDel(ctx, o.stream(s.number), s.received...)
		if len(remove) > 0 {
			pipe.HDel(ctx, o.sequencesKey(s.number), remove...)
		}
		if len(set) > 0 {
			pipe.HSet(ctx, o.sequencesKey(s.number), set...)
			pipe.PExpire(ctx, o.sequencesKey(s.number), remembered)
		}
		return nil
	})
	if err != nil && !strings.HasPrefix(err.Error(), "NOGROUP") {
		return fmt.Errorf("redisstream: confirming reports of shard %d: %w", s.number, err)
	}
	s.received = s.received[:0]
	if owner {
		s.sequences.stored()
	}
	return nil
}

// goodbye confirms what was received and leaves the group.
func (c *Consumer) goodbye() {
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Lease)
	defer cancel()
	o := &c.options
	for number, s := range c.shards {
		if err := errors.Join(c.confirm(ctx, s), c.clean(ctx, number)); err != nil {
			o.Logger.Warn("shard not left in order", "shard", number, "error", err)
		}
	}
	c.shards = nil
	c.owned.Store(0)
	if err := c.membership.leave(ctx); err != nil {
		o.Logger.Warn("shards not given up", "error", err)
	}
}

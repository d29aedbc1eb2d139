package kafka

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/heavykeeper-go/heavykeeper/tmc/transport"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// batch is the most reports that are received between confirmations.
const batch = 1000

// Consumer is a [wire.Consumer] on Kafka: one of a consumer group. All methods
// are safe for concurrent use, but Consume runs once at a time.
type Consumer struct {
	options Options // resolved
	busy    sync.Mutex

	mu   sync.Mutex      // of next
	next map[int32]int64 // offset of the next record, by partition that is ours

	reports, lost, malformed, failures atomic.Uint64
}

var (
	_ wire.Consumer   = (*Consumer)(nil)
	_ transport.Meter = (*Consumer)(nil)
)

// unknown is the offset of the next record where nothing was committed.
const unknown = -1

// NewConsumer returns a consumer. It connects to nothing yet. It fails if a
// parameter is out of range.
func NewConsumer(options Options) (*Consumer, error) {
	options, err := options.resolve()
	if err != nil {
		return nil, err
	}
	return &Consumer{options: options, next: make(map[int32]int64)}, nil
}

// Stats returns what c has done so far.
func (c *Consumer) Stats() transport.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return transport.Stats{
		Reports:   c.reports.Load(),
		Lost:      c.lost.Load(),
		Malformed: c.malformed.Load(),
		Failures:  c.failures.Load(),
		Shards:    len(c.next),
	}
}

// Consume receives reports until ctx ends; see [wire.Consumer].
func (c *Consumer) Consume(ctx context.Context, f func(wire.Report) error) error {
	if !c.busy.TryLock() {
		return transport.ErrBusy
	}
	defer c.busy.Unlock()
	client, err := c.options.client(
		kgo.ConsumeTopics(c.options.Topic),
		kgo.ConsumerGroup(c.options.Group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(c.options.Session),
		kgo.HeartbeatInterval(c.options.Session/4),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(c.options.Session/4),
		kgo.BlockRebalanceOnPoll(),
		kgo.AdjustFetchOffsetsFn(c.adjust),
		kgo.OnPartitionsRevoked(c.revoked),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { c.forget(gone) }),
		kgo.AllowAutoTopicCreation(),
		kgo.WithHooks(connections{c}),
	)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for {
		fetches := client.PollRecords(ctx, batch)
		err := c.receive(client, fetches, f)
		client.AllowRebalance()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			c.commit(client)
			return err
		}
	}
}

// receive passes records on, and marks those that were received to be
// committed.
func (c *Consumer) receive(client *kgo.Client, fetches kgo.Fetches, f func(wire.Report) error) error {
	for _, err := range fetches.Errors() {
		if errors.Is(err.Err, context.Canceled) || errors.Is(err.Err, context.DeadlineExceeded) {
			continue
		}
		c.failures.Add(1)
		c.options.Logger.Warn("reports not received", "partition", err.Partition, "error", err.Err)
	}
	for record := range fetches.RecordsAll() {
		var report wire.Report
		if err := report.UnmarshalBinary(record.Value); err != nil {
			c.malformed.Add(1)
			c.options.Logger.Error("report not understood", "partition", record.Partition, "offset", record.Offset, "error", err)
		} else {
			if err := f(report); err != nil {
				return err
			}
			c.reports.Add(1)
		}
		c.advance(record)
		client.MarkCommitRecords(record)
	}
	return nil
}

// advance counts the records that are missing before one.
func (c *Consumer) advance(record *kgo.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, ours := c.next[record.Partition]
	if !ours {
		return
	}
	if next != unknown && record.Offset > next {
		c.lost.Add(uint64(record.Offset - next))
		c.options.Logger.Warn("reports lost", "partition", record.Partition, "count", record.Offset-next)
	}
	c.next[record.Partition] = record.Offset + 1
}

// adjust takes note of the offsets where partitions begin that have become
// ours, and changes none.
func (c *Consumer) adjust(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for partition, offset := range offsets[c.options.Topic] {
		at := offset.EpochOffset().Offset
		if at < 0 {
			at = unknown
		}
		c.next[partition] = at
		c.options.Logger.Info("partition taken over", "partition", partition, "offset", at)
	}
	return offsets, nil
}

func (c *Consumer) revoked(_ context.Context, client *kgo.Client, gone map[string][]int32) {
	c.commit(client)
	c.forget(gone)
}

func (c *Consumer) commit(client *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), min(c.options.Session, 2*time.Second))
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		c.failures.Add(1)
		c.options.Logger.Warn("reports not confirmed", "error", err)
	}
}

func (c *Consumer) forget(gone map[string][]int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, partition := range gone[c.options.Topic] {
		delete(c.next, partition)
		c.options.Logger.Info("partition given up", "partition", partition)
	}
}

// connections counts the attempts to connect that fail: the client tries again
// without a word.
type connections struct{ *Consumer }

var _ kgo.HookBrokerConnect = connections{}

func (c connections) OnBrokerConnect(broker kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err != nil {
		c.failures.Add(1)
		c.options.Logger.Warn("broker not reached", "broker", broker.Host, "error", err)
	}
}

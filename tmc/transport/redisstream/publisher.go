package redisstream

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc/transport"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/internal/split"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Fields of a stream's entries: the report, the publisher, and the number of
// the report among its own.
const (
	reportField    = "r"
	publisherField = "p"
	sequenceField  = "s"
)

// Publisher is a [wire.Publisher] on Redis Streams. All methods are safe for
// concurrent use; reports are published one at a time.
type Publisher struct {
	options Options // resolved
	id      string  // that no other publisher has
	closed  atomic.Bool

	turn      chan struct{} // holds one: the right to use what follows
	agreed    bool          // on the number of shards
	sequences []uint64      // of the last report, by shard
	buf       []byte
}

var _ wire.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher. It connects to nothing yet. It fails if a
// parameter is out of range.
func NewPublisher(options Options) (*Publisher, error) {
	options, err := options.resolve()
	if err != nil {
		return nil, err
	}
	p := &Publisher{
		options:   options,
		id:        randomDigits(),
		turn:      make(chan struct{}, 1),
		sequences: make([]uint64, options.Shards),
	}
	p.turn <- struct{}{}
	return p, nil
}

// Publish appends the parts of r to the streams of their shards, in one round
// trip. If it fails, some may have been; see [wire.Publisher].
func (p *Publisher) Publish(ctx context.Context, r wire.Report) error {
	if p.closed.Load() {
		return transport.ErrClosed
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.turn:
	}
	defer func() { p.turn <- struct{}{} }()
	if !p.agreed {
		if err := p.options.agree(ctx); err != nil {
			return err
		}
		p.agreed = true
	}
	pipe := p.options.Client.Pipeline()
	p.buf = p.buf[:0]
	for _, part := range split.Split(r, p.options.Shards) {
		start := len(p.buf)
		var err error
		if p.buf, err = part.Report.AppendBinary(p.buf); err != nil {
			return err
		}
		p.sequences[part.Shard]++
		pipe.XAdd(ctx, &redis.XAddArgs{
			Stream: p.options.stream(part.Shard),
			MaxLen: p.options.MaxLen,
			Approx: true,
			Values: []any{
				reportField, p.buf[start:len(p.buf):len(p.buf)],
				publisherField, p.id,
				sequenceField, strconv.FormatUint(p.sequences[part.Shard], 10),
			},
		})
	}
	if pipe.Len() == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("redisstream: publishing a report of %s: %w", r.App, err)
	}
	return nil
}

// Close has Publish fail from now on. It can be called again.
func (p *Publisher) Close() error {
	p.closed.Store(true)
	return nil
}

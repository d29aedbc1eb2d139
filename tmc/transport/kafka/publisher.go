package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/heavykeeper-go/heavykeeper/tmc/transport"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/internal/split"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// metadataAge is how old the known number of partitions may be.
const metadataAge = time.Minute

// Publisher is a [wire.Publisher] on Kafka. All methods are safe for concurrent
// use.
type Publisher struct {
	options Options // resolved
	client  *kgo.Client
	closed  atomic.Bool
}

var _ wire.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher. It fails if a parameter is out of range.
func NewPublisher(options Options) (*Publisher, error) {
	options, err := options.resolve()
	if err != nil {
		return nil, err
	}
	client, err := options.client(
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(options.Delivery),
		kgo.ProducerLinger(0), // a report is a batch
		kgo.AllowAutoTopicCreation(),
	)
	if err != nil {
		return nil, err
	}
	return &Publisher{options: options, client: client}, nil
}

// Publish produces the parts of r, and returns when all brokers that must have
// them do. If it fails, some parts may have been produced; see
// [wire.Publisher].
func (p *Publisher) Publish(ctx context.Context, r wire.Report) error {
	if p.closed.Load() {
		return transport.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.Delivery)
	defer cancel()
	n, err := p.partitions(ctx)
	if err != nil {
		return fmt.Errorf("kafka: reading the partitions of %s: %w", p.options.Topic, err)
	}
	var records []*kgo.Record
	for _, part := range split.Split(r, n) {
		value, err := part.Report.MarshalBinary()
		if err != nil {
			return err
		}
		records = append(records, &kgo.Record{
			Topic:     p.options.Topic,
			Partition: int32(part.Shard),
			Key:       []byte(r.App),
			Value:     value,
		})
	}
	if err := p.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		if errors.Is(err, kgo.ErrClientClosed) {
			return transport.ErrClosed
		}
		return fmt.Errorf("kafka: publishing a report of %s: %w", r.App, err)
	}
	return nil
}

// partitions returns the number of partitions of the topic.
func (p *Publisher) partitions(ctx context.Context) (int, error) {
	request := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(p.options.Topic)
	request.Topics = append(request.Topics, topic)
	request.AllowAutoTopicCreation = true
	response, err := p.client.RequestCachedMetadata(ctx, request, metadataAge)
	if err != nil {
		return 0, err
	}
	if len(response.Topics) != 1 {
		return 0, fmt.Errorf("got %d topics", len(response.Topics))
	}
	if err := kerr.ErrorForCode(response.Topics[0].ErrorCode); err != nil {
		return 0, err
	}
	if len(response.Topics[0].Partitions) == 0 {
		return 0, errors.New("there are none")
	}
	return len(response.Topics[0].Partitions), nil
}

// Close ends the client. Calls of Publish that are under way fail. It can be
// called again.
func (p *Publisher) Close() error {
	p.closed.Store(true)
	p.client.Close()
	return nil
}

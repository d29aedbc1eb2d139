package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Options are the parameters of a [Publisher] and of a [Consumer]. The zero
// value of every field but Seeds selects its default.
type Options struct {
	// Seeds are addresses of brokers, at least one.
	Seeds []string

	// Topic has the reports. Default "tmc-reports".
	Topic string

	// Group is the consumer group of the servers. Default "tmc".
	Group string

	// Delivery is how long publishing a report may take, at least 1 s. Default
	// 5 s. For publishers.
	Delivery time.Duration

	// Session is how long a server that is gone keeps its partitions, at least
	// 100 ms, and no less than the brokers allow. Default 10 s. For consumers.
	Session time.Duration

	// Client are further options of the client, such as those of TLS and SASL.
	Client []kgo.Opt

	// Logger is told of partitions that come and go, and of failures. Default
	// [slog.Default]. For consumers.
	Logger *slog.Logger
}

// resolve fills in defaults and reports the first parameter out of range.
func (o Options) resolve() (Options, error) {
	if len(o.Seeds) == 0 {
		return o, errors.New("kafka: Seeds = []: at least one is required")
	}
	if o.Topic == "" {
		o.Topic = "tmc-reports"
	}
	if o.Group == "" {
		o.Group = "tmc"
	}
	if o.Delivery == 0 {
		o.Delivery = 5 * time.Second
	}
	if o.Session == 0 {
		o.Session = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Delivery < time.Second || o.Delivery > time.Hour {
		return o, fmt.Errorf("kafka: Delivery = %v: must be 1s to 1h", o.Delivery)
	}
	if o.Session < 100*time.Millisecond || o.Session > time.Hour {
		return o, fmt.Errorf("kafka: Session = %v: must be 100ms to 1h", o.Session)
	}
	return o, nil
}

// client returns a client with some options beside those of o.
func (o *Options) client(opts ...kgo.Opt) (*kgo.Client, error) {
	opts = append([]kgo.Opt{kgo.SeedBrokers(o.Seeds...), kgo.ClientID("tmc")}, opts...)
	client, err := kgo.NewClient(append(opts, o.Client...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return client, nil
}

// CreateTopic creates the topic with a number of partitions and replicas, -1
// for those of the brokers' configuration. It is no error if there is one.
func CreateTopic(ctx context.Context, options Options, partitions int32, replicas int16) error {
	options, err := options.resolve()
	if err != nil {
		return err
	}
	client, err := options.client()
	if err != nil {
		return err
	}
	defer client.Close()
	request := kmsg.NewCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = options.Topic, partitions, replicas
	request.Topics = append(request.Topics, topic)
	request.TimeoutMillis = 10_000
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("kafka: creating topic %s: %w", options.Topic, err)
	}
	for _, t := range response.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("kafka: creating topic %s: %w", options.Topic, err)
		}
	}
	return nil
}

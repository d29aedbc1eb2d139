package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/backoff"
	"github.com/heavykeeper-go/heavykeeper/tmc/live/etcdkey"
	"github.com/heavykeeper-go/heavykeeper/tmc/live/rediskey"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/etcd"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/redispubsub"
	"github.com/heavykeeper-go/heavykeeper/tmc/server"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/kafka"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/redisstream"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// parts are what a server is made of.
type parts struct {
	config  server.Config
	closers []func()
}

// close closes all parts, the latest first.
func (p *parts) close() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		p.closers[i]()
	}
}

// connect makes the parts of a server. They connect by themselves, so that the
// server can start before what it needs.
func connect(o *options, logger *slog.Logger) (p *parts, err error) {
	p = &parts{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	base, err := o.baseConfig()
	if err != nil {
		return p, err
	}
	p.config = server.Config{
		Name: newName(o.name), Prefix: o.prefix, Base: &base,
		Slots: o.slots, Slot: o.slot, Heat: o.heat, MaxApps: o.maxApps, Idle: o.idle, Refresh: o.refresh,
		Logger: logger,
	}
	p.connectRedis(o, logger)
	var client *clientv3.Client
	if o.push == "etcd" || o.config == "etcd" {
		if client, err = etcd.Dial(strings.Split(o.etcd, ",")...); err != nil {
			return p, err
		}
		p.closers = append(p.closers, func() { client.Close() })
	}
	switch o.config {
	case "redis":
		p.config.Live = rediskey.Source{Client: p.config.Redis, Prefix: o.prefix, Interval: o.interval}
	case "etcd":
		p.config.Live = etcdkey.Source{Client: client, Prefix: o.configDir}
	}
	if err := p.connectPush(o, client, logger); err != nil {
		return p, err
	}
	return p, p.connectTransport(o, logger)
}

func (p *parts) connectRedis(o *options, logger *slog.Logger) {
	redis.SetLogger(quiet{logger})
	options := &redis.UniversalOptions{
		Addrs: strings.Split(o.redis, ","), Username: o.redisUser, Password: o.redisPassword, DB: o.redisDB,
		ContextTimeoutEnabled: true,
	}
	if o.redisTLS {
		options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	p.config.Redis = redis.NewUniversalClient(options)
	p.closers = append(p.closers, func() { p.config.Redis.Close() })
}

func (p *parts) connectPush(o *options, client *clientv3.Client, logger *slog.Logger) error {
	if o.push == "etcd" {
		channel, err := etcd.New(etcd.Options{Client: client, Prefix: o.etcdDir, Retain: o.retain, Logger: logger})
		if err != nil {
			return err
		}
		p.config.Channel = channel
	} else {
		channel, err := redispubsub.New(redispubsub.Options{Client: p.config.Redis, Prefix: o.prefix, Retain: o.retain, Logger: logger})
		if err != nil {
			return err
		}
		p.config.Channel = channel
	}
	p.closers = append(p.closers, func() { p.config.Channel.Close() })
	return nil
}

func (p *parts) connectTransport(o *options, logger *slog.Logger) (err error) {
	if o.transport == "redis" {
		p.config.Consumer, err = redisstream.NewConsumer(redisstream.Options{
			Client: p.config.Redis, Prefix: o.prefix, Shards: o.shards, Lease: o.lease, Name: p.config.Name, Logger: logger,
		})
		return err
	}
	options := kafka.Options{
		Seeds: strings.Split(o.kafka, ","), Topic: o.kafkaTopic, Group: o.kafkaGroup, Session: o.kafkaSession, Logger: logger,
	}
	if o.kafkaTLS {
		options.Client = append(options.Client, kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	consumer, err := kafka.NewConsumer(options)
	if err != nil {
		return err
	}
	p.config.Consumer = topicConsumer{consumer, options, int32(o.kafkaPartitions), int16(o.kafkaReplicas)}
	return nil
}

// topicConsumer creates its topic before it consumes, unless partitions is 0.
type topicConsumer struct {
	*kafka.Consumer
	options    kafka.Options
	partitions int32
	replicas   int16
}

// Consume is that of [kafka.Consumer]. While the topic cannot be created, it
// tries again.
func (c topicConsumer) Consume(ctx context.Context, f func(wire.Report) error) error {
	wait := backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for c.partitions != 0 {
		attempt, stop := context.WithTimeout(ctx, 10*time.Second)
		err := kafka.CreateTopic(attempt, c.options, c.partitions, c.replicas)
		stop()
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			c.options.Logger.Warn("topic not created", "error", err)
		}
		if err := wait.Wait(ctx); err != nil {
			return err
		}
	}
	return c.Consumer.Consume(ctx, f)
}

// newName returns a name that no other server has, nor has had: what one has
// found counts for a while after it has ended.
func newName(begin string) string {
	if begin == "" {
		begin = "server"
		if host, err := os.Hostname(); err == nil && len(host) <= 64 {
			begin = host
		}
	}
	return begin + "-" + rand.Text()[:8]
}

// quiet passes on what the Redis client says as debugging, since whatever
// fails for it says so as well.
type quiet struct{ *slog.Logger }

func (q quiet) Printf(ctx context.Context, format string, args ...any) {
	q.DebugContext(ctx, "redis client", "message", fmt.Sprintf(format, args...))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc"
	"github.com/heavykeeper-go/heavykeeper/tmc/live/rediskey"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/etcd"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/redispubsub"
	"github.com/heavykeeper-go/heavykeeper/tmc/server"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/kafka"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/redisstream"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

const (
	app     = "sale"
	saleKey = "item:sale"
	slots   = 10
	slot    = time.Second
)

func itemKey(i uint64) string { return "item:" + strconv.FormatUint(i, 10) }

// stage is what the sale is played on.
type stage struct {
	o       options
	log     *slog.Logger
	addr    string // of Redis
	mini    *miniredis.Miniredis
	saleOps atomic.Uint64 // reads of the sale's key that miniredis had
	admin   *redis.Client
	live    rediskey.Source
	kafka   kafka.Options
	nodes   []*node
	server  *server.Server
	closers []func()
	group   sync.WaitGroup
}

// node is a process of the application, near enough.
type node struct {
	client *redis.Client
	cache  *tmc.Cache
}

// close closes everything, the latest first.
func (s *stage) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	s.group.Wait()
}

func (s *stage) onClose(f func()) { s.closers = append(s.closers, f) }

// build starts all that the sale needs.
func build(ctx context.Context, o options) (s *stage, err error) {
	s = &stage{o: o, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.startRedis(ctx); err != nil {
		return s, err
	}
	if o.mode == "cluster" && o.transport == "kafka" {
		if err := s.startKafka(ctx); err != nil {
			return s, err
		}
	}
	if err := s.fill(ctx); err != nil {
		return s, err
	}
	for i := range o.nodes {
		if err := s.startNode(i); err != nil {
			return s, err
		}
	}
	if o.mode == "cluster" {
		return s, s.startServer()
	}
	return s, nil
}

func (s *stage) startRedis(ctx context.Context) error {
	if s.addr = s.o.redis; s.addr == "" {
		var err error
		if s.mini, err = miniredis.Run(); err != nil {
			return err
		}
		s.onClose(s.mini.Close)
		s.mini.Server().SetPreHook(func(_ *miniserver.Peer, name string, args ...string) bool {
			if len(args) == 1 && args[0] == saleKey && strings.EqualFold(name, "get") {
				s.saleOps.Add(1)
			}
			return false
		})
		s.addr = s.mini.Addr()
	}
	s.admin = s.dial()
	s.live = rediskey.Source{Client: s.admin, Interval: 200 * time.Millisecond}
	return s.admin.Ping(ctx).Err()
}

// dial returns a client that is closed in the end.
func (s *stage) dial() *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: s.o.workers + 10})
	s.onClose(func() { client.Close() })
	return client
}

func (s *stage) startKafka(ctx context.Context) error {
	s.kafka = kafka.Options{Seeds: []string{s.o.kafka}, Topic: "tmc-demo-reports", Logger: s.log}
	if s.o.kafka == "" {
		broker, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return err
		}
		s.onClose(broker.Close)
		s.kafka.Seeds = broker.ListenAddrs()
	}
	return kafka.CreateTopic(ctx, s.kafka, 8, 1)
}

// fill gives all keys their first value, and has everything switched off.
func (s *stage) fill(ctx context.Context) error {
	pipe := s.admin.Pipeline()
	pipe.Set(ctx, saleKey, "0", 0)
	for i := range uint64(s.o.keys) {
		pipe.Set(ctx, itemKey(i), "0", 0)
	}
	pipe.Set(ctx, s.live.Key(app), s.document(false), 0)
	_, err := pipe.Exec(ctx)
	return err
}

// threshold returns the reads a second from which a key is hot: of all nodes in
// cluster mode, of each in embedded mode. Half of the least popular of the hot
// keys, were there no sale.
func (s *stage) threshold() float64 {
	least := s.o.rate * zipfShare(s.o.skew, s.o.keys, s.o.topN) / 2
	if s.o.mode == "embedded" {
		least /= float64(s.o.nodes)
	}
	return max(least, 0.2)
}

// document returns the live configuration.
func (s *stage) document(enabled bool) string {
	return fmt.Sprintf(`{"enabled": %t, "rate": %g, "topN": %d, "cache": {"bytes": %d, "ttl": "10s"}}`,
		enabled, s.threshold(), s.o.topN, 64<<20)
}

func (s *stage) startNode(i int) error {
	n := &node{client: s.dial()}
	channel, err := s.channel(n.client)
	if err != nil {
		return err
	}
	options := tmc.Options{
		App: app, Node: fmt.Sprint("node", i), Channel: channel, Live: s.live, Logger: s.log,
		Hot: hotspot.Config[string]{Slots: slots, Slot: slot},
	}
	if s.o.mode == "cluster" {
		if options.Publisher, err = s.publisher(n.client); err != nil {
			return err
		}
	}
	if n.cache, err = tmc.Attach(n.client, options); err != nil {
		return err
	}
	s.onClose(func() { n.cache.Close() })
	s.nodes = append(s.nodes, n)
	return nil
}

func (s *stage) channel(client *redis.Client) (channel wire.Channel, err error) {
	if s.o.etcd == "" {
		channel, err = redispubsub.New(redispubsub.Options{Client: client, Logger: s.log})
	} else {
		c, e := etcd.Dial(s.o.etcd)
		if e != nil {
			return nil, e
		}
		s.onClose(func() { c.Close() })
		channel, err = etcd.New(etcd.Options{Client: c, Logger: s.log})
	}
	if err == nil {
		s.onClose(func() { channel.Close() })
	}
	return channel, err
}

func (s *stage) publisher(client *redis.Client) (p wire.Publisher, err error) {
	if s.o.transport == "kafka" {
		p, err = kafka.NewPublisher(s.kafka)
	} else {
		p, err = redisstream.NewPublisher(redisstream.Options{Client: client})
	}
	if err == nil {
		s.onClose(func() { p.Close() })
	}
	return p, err
}

func (s *stage) startServer() error {
	client := s.dial()
	channel, err := s.channel(client)
	if err != nil {
		return err
	}
	config := server.Config{
		Name: "demo", Redis: client, Channel: channel, Live: s.live,
		Slots: slots, Slot: slot, Refresh: 1, Logger: s.log,
	}
	if s.o.transport == "kafka" {
		config.Consumer, err = kafka.NewConsumer(s.kafka)
	} else {
		config.Consumer, err = redisstream.NewConsumer(redisstream.Options{Client: client, Logger: s.log})
	}
	if err != nil {
		return err
	}
	if s.server, err = server.New(config); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.server.Run(ctx) // ends with ctx
	}()
	s.onClose(func() { stop(); <-done })
	return nil
}

// await waits until the nodes serve, or not.
func (s *stage) await(ctx context.Context, serving bool) error {
	deadline := time.Now().Add(10 * time.Second)
	for _, n := range s.nodes {
		for n.cache.Stats().Serving != serving {
			if time.Now().After(deadline) {
				return errors.New("the nodes did not take up their configuration in time")
			}
			if err := sleep(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// enable switches serving on or off, for all nodes.
func (s *stage) enable(ctx context.Context, enabled bool) error {
	if err := s.admin.Set(ctx, s.live.Key(app), s.document(enabled), 0).Err(); err != nil {
		return err
	}
	return s.await(ctx, enabled)
}

// commands returns how many commands Redis has carried out.
func (s *stage) commands(ctx context.Context) (uint64, error) {
	if s.mini != nil {
		return uint64(s.mini.CommandCount()), nil
	}
	info, err := s.admin.Info(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(info, "total_commands_processed:")
	figure, _, _ := strings.Cut(rest, "\r")
	return strconv.ParseUint(figure, 10, 64)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

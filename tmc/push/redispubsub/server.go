package redispubsub

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// errMoved is why a subscription ends whose server has the application no more.
var errMoved = errors.New("redispubsub: another server has the application now")

// server returns the client of the server that events of app are published on
// and subscribed to. In a cluster any would take them, and pass them on to the
// others, but if it cannot, it says so to nobody, and tests of the
// subscription would succeed. The servers of a ring pass on nothing.
func (c *Channel) server(ctx context.Context, app string) (redis.UniversalClient, error) {
	switch client := c.options.Client.(type) {
	case *redis.ClusterClient:
		return client.MasterForKey(ctx, c.channel(app))
	case *redis.Ring:
		return client.GetShardClientForKey(c.channel(app))
	}
	return c.options.Client, nil
}

// stays returns nil if server is still that of app.
func (c *Channel) stays(ctx context.Context, app string, server redis.UniversalClient) error {
	switch c.options.Client.(type) {
	case *redis.ClusterClient, *redis.Ring:
		if now, err := c.server(ctx, app); err != nil || now != server {
			return errors.Join(errMoved, err)
		}
	}
	return nil
}

// publish publishes data to the subscribers of app.
func (c *Channel) publish(ctx context.Context, app string, data []byte) error {
	cluster, ok := c.options.Client.(*redis.ClusterClient)
	if !ok {
		return c.publishOnServer(ctx, app, data)
	}
	short, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	if c.publishOnServer(short, app, data) == nil {
		return nil
	}
	// It may be down, and its subscribers on the one that took over, of which
	// this client has yet to hear: another one passes on what it gets.
	return cluster.Publish(ctx, c.channel(app), data).Err()
}

func (c *Channel) publishOnServer(ctx context.Context, app string, data []byte) error {
	server, err := c.server(ctx, app)
	if err != nil {
		return err
	}
	return server.Publish(ctx, c.channel(app), data).Err()
}

// Package rediskey has the configuration of applications in Redis, in the
// string prefix:{app}:config of each. It is looked at once an Interval: a read
// of a key is less than what a subscription would take to be relied on.
package rediskey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Source is a [live.Source] in Redis.
type Source struct {
	Client   redis.UniversalClient // required
	Prefix   string                // begins the keys; default "tmc"
	Interval time.Duration         // between looks; default 1 s
}

var _ live.Source = Source{}

// Key returns the key of an application's document.
func (s Source) Key(app string) string {
	if s.Prefix == "" {
		s.Prefix = "tmc"
	}
	return s.Prefix + ":{" + app + "}:config"
}

// Watch calls f with the document of app and its changes; see [live.Source].
func (s Source) Watch(ctx context.Context, app string, f func([]byte), failed func(error)) error {
	if s.Client == nil {
		return errors.New("rediskey: Client = nil: is required")
	}
	if s.Interval < 0 {
		return fmt.Errorf("rediskey: Interval = %v: must not be negative", s.Interval)
	}
	if s.Interval == 0 {
		s.Interval = time.Second
	}
	if err := wire.CheckApp(app); err != nil {
		return err
	}
	ticker := time.NewTicker(s.Interval)
	defer ticker.Stop()
	var last []byte
	for first := true; ; {
		document, err := s.read(ctx, app)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed(err)
			first = true // so that it is known to be reached again
		case first || !bytes.Equal(document, last) || (document == nil) != (last == nil):
			last, first = document, false
			f(document)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// read returns a document, nil if there is none, and of one that is too large
// no more than shows that it is.
func (s Source) read(ctx context.Context, app string) ([]byte, error) {
	document, err := s.Client.GetRange(ctx, s.Key(app), 0, live.MaxSize).Bytes()
	if err != nil || len(document) > 0 {
		return document, err
	}
	document, err = s.Client.Get(ctx, s.Key(app)).Bytes() // none, or an empty one
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return document, err
}

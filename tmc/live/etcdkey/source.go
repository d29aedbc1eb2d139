// Package etcdkey has the configuration of applications in etcd, in the key
// prefix/app of each. It is watched, and read again every 30 s, so that it is
// found out if the watch is dead.
package etcdkey

import (
	"context"
	"errors"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/backoff"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

const (
	timeout = 3 * time.Second  // how long a read may take
	again   = 30 * time.Second // between reads
)

// Source is a [live.Source] in etcd.
type Source struct {
	Client *clientv3.Client // required
	Prefix string           // begins the keys; default "/tmc-config"
}

var _ live.Source = Source{}

// Key returns the key of an application's document.
func (s Source) Key(app string) string {
	if s.Prefix == "" {
		s.Prefix = "/tmc-config"
	}
	return strings.TrimRight(s.Prefix, "/") + "/" + app
}

// Watch calls f with the document of app and its changes; see [live.Source].
func (s Source) Watch(ctx context.Context, app string, f func([]byte), failed func(error)) error {
	if s.Client == nil {
		return errors.New("etcdkey: Client = nil: is required")
	}
	if err := wire.CheckApp(app); err != nil {
		return err
	}
	w := watcher{client: s.Client, key: s.Key(app), f: f}
	wait := backoff.Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second}
	for {
		err := w.session(ctx, wait.Reset)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			continue
		}
		failed(err)
		w.known = false // so that it is known to be reached again
		if wait.Wait(ctx) != nil {
			return ctx.Err()
		}
	}
}

// watcher watches a key.
type watcher struct {
	client   *clientv3.Client
	key      string
	f        func([]byte)
	known    bool
	revision int64 // of the key, 0 if there is none, if known
}

// session reads the key and watches it, until that ends or it is to be read
// again.
func (w *watcher) session(ctx context.Context, reached func()) error {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), again)
	defer cancel()
	read, stop := context.WithTimeout(ctx, timeout)
	got, err := w.client.Get(read, w.key)
	stop()
	if err != nil {
		return err
	}
	reached()
	if len(got.Kvs) > 0 {
		w.found(got.Kvs[0].Value, got.Kvs[0].ModRevision)
	} else {
		w.found(nil, 0)
	}
	for response := range w.client.Watch(ctx, w.key, clientv3.WithRev(got.Header.Revision+1)) {
		if err := response.Err(); err != nil {
			return err
		}
		for _, event := range response.Events {
			if event.Type == clientv3.EventTypePut {
				w.found(event.Kv.Value, event.Kv.ModRevision)
			} else {
				w.found(nil, 0)
			}
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("etcdkey: the watch ended")
}

// found passes on a document that is not the one before.
func (w *watcher) found(document []byte, revision int64) {
	if w.known && w.revision == revision {
		return
	}
	w.known, w.revision = true, revision
	if document == nil && revision > 0 {
		document = []byte{}
	}
	w.f(document)
}

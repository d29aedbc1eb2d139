package etcd

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Options are the parameters of a [Channel]. The zero value of every field but
// Client selects its default.
type Options struct {
	// Client reaches etcd. Required. It stays the caller's to close.
	Client *clientv3.Client

	// Prefix begins the names of all keys. Default "/tmc".
	Prefix string

	// Ping is how often a subscription is tested, at least 1 ms. Default 1 s.
	Ping time.Duration

	// Timeout is how long etcd may take to answer such a test, or to begin a
	// subscription, at least 1 ms. Default 1 s.
	Timeout time.Duration

	// Retain is how long the stored hot set outlives the last push of one, in
	// whole seconds, at least 2 s. Default 10 minutes.
	Retain time.Duration

	// MinBackoff and MaxBackoff are the least and the most time between
	// attempts to subscribe. Defaults 50 ms and 2 s.
	MinBackoff, MaxBackoff time.Duration

	// Logger is told when subscriptions come and go. Default [slog.Default].
	Logger *slog.Logger
}

// resolve fills in defaults and reports the first parameter out of range.
func (o Options) resolve() (Options, error) {
	if o.Client == nil {
		return o, errors.New("etcd: Client = nil: is required")
	}
	if o.Prefix == "" {
		o.Prefix = "/tmc"
	}
	o.Prefix = strings.TrimRight(o.Prefix, "/")
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	for _, d := range []struct {
		name      string
		value     *time.Duration
		def, most time.Duration
		least     time.Duration
	}{
		{"Ping", &o.Ping, time.Second, time.Hour, time.Millisecond},
		{"Timeout", &o.Timeout, time.Second, time.Hour, time.Millisecond},
		{"Retain", &o.Retain, 10 * time.Minute, 1000 * time.Hour, 2 * time.Second},
		{"MinBackoff", &o.MinBackoff, 50 * time.Millisecond, time.Hour, time.Millisecond},
		{"MaxBackoff", &o.MaxBackoff, 2 * time.Second, time.Hour, time.Millisecond},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < d.least || *d.value > d.most {
			return o, fmt.Errorf("etcd: %s = %v: must be %v to %v", d.name, *d.value, d.least, d.most)
		}
	}
	o.MaxBackoff = max(o.MaxBackoff, o.MinBackoff)
	return o, nil
}

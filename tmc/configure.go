package tmc

import (
	"context"
	"strings"
	"time"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
)

// settings are those of the parameters that can change while all runs.
type settings struct {
	enabled bool
	ttl     time.Duration
}

// newFollower returns what follows the live configuration of c, which is what
// the options say as far as a document does not.
func newFollower(c *Cache) (*live.Follower, error) {
	base := liveBase(c.options)
	return live.NewFollower(live.FollowerConfig{
		Source: c.options.Live, App: c.options.App, Base: &base, Slots: c.options.Hot.Slots,
		Changed: c.apply, Logger: c.log,
	})
}

// liveBase returns what options say, in the form of a live configuration.
func liveBase(o Options) live.Config {
	base := live.Default()
	h := &o.Hot
	base.Threshold, base.Rate, base.Share = h.Threshold, h.Rate, h.Share
	base.MinStay, base.Certain = live.Duration(h.MinStay), h.Certain
	if h.TopN != 0 {
		base.TopN = h.TopN
	}
	if h.Leave != 0 {
		base.Leave = h.Leave
	}
	if h.EnterAfter != 0 {
		base.EnterAfter = h.EnterAfter
	}
	for _, r := range h.Rules {
		base.Rules = append(base.Rules, live.Rule{
			Name: r.Name, Action: strings.ToLower(r.Action.String()), Match: strings.ToLower(r.Match.String()),
			Pattern: r.Pattern, Threshold: r.Threshold, Rate: r.Rate, Share: r.Share,
			Window: r.Window, TTL: live.Duration(r.TTL),
		})
	}
	base.Cache = live.Cache{Bytes: o.CacheBytes, TTL: live.Duration(o.TTL)}
	return base
}

// apply makes a valid live configuration that of c, all of it or, if there is
// an error, none. What is held locally is forgotten.
func (c *Cache) apply(config live.Config) error {
	if err := c.detector.apply(config); err != nil {
		return err
	}
	c.local.cache.SetMaximum(uint64(config.Cache.Bytes))
	c.local.maxValue.Store(min(c.options.ValueBytes, config.Cache.Bytes/16))
	c.settings.Store(&settings{enabled: config.Enabled, ttl: time.Duration(config.Cache.TTL)})
	c.update()
	return nil
}

// follow follows the live configuration until ctx ends.
func (c *Cache) follow(ctx context.Context) {
	if err := c.follower.Run(ctx); ctx.Err() == nil {
		c.log.Error("tmc: the live configuration is followed no more", "app", c.options.App, "error", err)
	}
}

// apply does nothing: servers decide what is hot.
func (r *reporter) apply(live.Config) error { return nil }

// apply makes another detector, of what has been counted already, which has
// scanned once before it is used.
func (e *embedded) apply(config live.Config) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := e.base
	next.TopN = config.TopN
	source := e.source
	if config.TopN > e.topN {
		var err error
		if source, err = newSource(next); err != nil {
			return err
		}
	}
	next, err := config.Detector(source)
	if err != nil {
		return err
	}
	next.Slot, next.Text = e.base.Slot, e.base.Text
	d, err := hotspot.New(next)
	if err != nil {
		return err
	}
	d.Scan()
	e.source, e.topN = source, max(e.topN, config.TopN)
	e.replace(d)
	return nil
}

package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Server finds the hot keys of applications, as one of a cluster. See the
// package comment. The zero value is not usable; see [New]. All methods are safe
// for concurrent use, but Run runs once.
type Server struct {
	config  Config // resolved
	meeting meeting
	started time.Time

	mu     sync.RWMutex
	apps   map[string]*application
	follow context.Context // of followers, while Run runs
	groups sync.WaitGroup  // of followers
	ran    bool

	refused, refusedCounts atomic.Uint64
	scans                  atomic.Uint64
	scanTime               atomic.Int64
	lastScan               atomic.Int64
	logged                 atomic.Int64 // when a refusal was
}

// New returns a server. It fails if a parameter is out of range.
func New(config Config) (*Server, error) {
	config, err := config.resolve()
	if err != nil {
		return nil, err
	}
	return &Server{
		config:  config,
		meeting: meeting{config.Redis, config.Prefix, config.Name, config.window()},
		apps:    make(map[string]*application),
		started: time.Now(),
	}, nil
}

// Run receives reports, scans and pushes until ctx ends, whose error it
// returns, or the Consumer fails for good, with its error. It leaves no
// goroutine behind. It can be called once.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	if s.ran {
		s.mu.Unlock()
		return errors.New("server: Run was called before")
	}
	s.ran, s.follow = true, ctx
	s.mu.Unlock()

	var group sync.WaitGroup
	group.Go(func() {
		err := s.config.Consumer.Consume(ctx, func(r wire.Report) error {
			s.observe(r, time.Now())
			return nil
		})
		cancel(fmt.Errorf("server: receiving reports: %w", err))
	})
	ticker := time.NewTicker(s.config.Slot)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			s.scan(ctx, time.Now())
		}
	}
	group.Wait()
	s.mu.Lock()
	s.follow = nil
	s.mu.Unlock()
	s.groups.Wait()
	return context.Cause(ctx)
}

// observe counts a report.
func (s *Server) observe(r wire.Report, now time.Time) {
	a := s.application(r.App, now)
	if a == nil {
		s.refused.Add(1)
		for _, c := range r.Counts {
			s.refusedCounts.Add(uint64(c.N))
		}
		return
	}
	a.observe(r, now)
}

// application returns an application, which is new if it was not known, or nil
// if there is no place for it.
func (s *Server) application(name string, now time.Time) *application {
	s.mu.RLock()
	a := s.apps[name]
	s.mu.RUnlock()
	if a != nil {
		return a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.apps[name]; a != nil {
		return a
	}
	if len(s.apps) >= s.config.MaxApps {
		if s.logged.Swap(now.Unix()) < now.Unix()-60 {
			s.config.Logger.Error("reports refused: there are MaxApps others", "app", name, "apps", len(s.apps))
		}
		return nil
	}
	name = strings.Clone(name) // it is a part of a report
	a, err := newApplication(name, *s.config.Base, &s.config)
	if err == nil {
		err = s.startFollowing(a)
	}
	if err != nil {
		s.config.Logger.Error("application refused", "app", name, "error", err)
		return nil
	}
	a.used.Store(now.UnixNano())
	s.apps[name] = a
	s.config.Logger.Info("application seen", "app", name)
	return a
}

// startFollowing follows the configuration of a, if it is live. s.mu must be
// held.
func (s *Server) startFollowing(a *application) error {
	if s.config.Live == nil || s.follow == nil {
		return nil
	}
	follower, err := live.NewFollower(live.FollowerConfig{
		Source:  s.config.Live,
		App:     a.name,
		Base:    s.config.Base,
		Slots:   s.config.Slots,
		Changed: func(c live.Config) error { return a.configure(c, s.config.Heat) },
		Logger:  s.config.Logger,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(s.follow)
	a.follow, a.stop = follower, stop
	s.groups.Go(func() { follower.Run(ctx) })
	return nil
}

// applications returns the applications in the order of their names.
func (s *Server) applications() []*application {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*application, 0, len(s.apps))
	for _, a := range s.apps {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *application) int { return strings.Compare(a.name, b.name) })
	return list
}

// parallel is how many applications are pushed at a time.
const parallel = 8

// scan scans all applications, and pushes what they have. It takes no longer
// than a slot. Those that are idle are dropped.
func (s *Server) scan(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Slot)
	defer cancel()
	start := time.Now()
	var group sync.WaitGroup
	places := make(chan struct{}, parallel)
	for _, a := range s.applications() {
		if now.Sub(time.Unix(0, a.used.Load())) > s.config.Idle {
			s.drop(a)
			continue
		}
		p := a.scan(now, s.config.Heat)
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			s.publish(ctx, a, p)
		})
	}
	group.Wait()
	s.scans.Add(1)
	s.scanTime.Store(int64(time.Since(start)))
	s.lastScan.Store(now.UnixNano())
}

// publish exchanges what this server has found of an application, and pushes
// what all have. What fails is tried again after the next scan.
func (s *Server) publish(ctx context.Context, a *application, p part) {
	log := s.config.Logger.With("app", a.name)
	var seen uint64 // version
	if latest := a.latest.Load(); latest != nil {
		seen = latest.version
	}
	o, err := s.meeting.exchange(ctx, a.name, seen, p)
	a.exchanges.Add(1)
	if err != nil {
		a.exchangeFails.Add(1)
		log.Warn("parts not exchanged", "error", err)
	}
	if o.version == 0 {
		return
	}
	elsewhere := uint64(0)
	for name, other := range o.parts {
		if name != s.config.Name {
			elsewhere += other.total
		}
	}
	a.elsewhere.Store(elsewhere)
	c := &combined{version: o.version, at: p.at, servers: o.servers}
	slices.SortFunc(c.servers, func(a, b ServerPart) int { return strings.Compare(a.Name, b.Name) })
	config := a.state.Load().config
	if config.Enabled {
		c.hot, c.heat = union(o.parts, config.TopN, s.config.Heat)
	}
	a.latest.Store(c)
	if err := s.meeting.setHeat(ctx, a.name, c); err != nil {
		a.exchangeFails.Add(1)
		log.Warn("heat not written", "error", err)
	}
	if o.pushed == digest(c.hot) {
		return
	}
	a.pushes.Add(1)
	set := wire.HotSet{App: a.name, Version: c.version, At: c.at, Keys: c.hot}
	if err := s.config.Channel.PushHot(ctx, set); err != nil {
		a.pushFails.Add(1)
		log.Warn("hot set not pushed", "error", err)
		return
	}
	log.Debug("hot set pushed", "version", c.version, "keys", len(c.hot))
	refresh := time.Duration(s.config.Refresh) * s.config.Slot
	if err := s.meeting.setPushed(ctx, a.name, c, refresh); err != nil {
		log.Warn("push not noted, it will be repeated", "error", err)
	}
}

// drop forgets an application.
func (s *Server) drop(a *application) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.stop()
	delete(s.apps, a.name)
	s.config.Logger.Info("application dropped: it was idle", "app", a.name)
}

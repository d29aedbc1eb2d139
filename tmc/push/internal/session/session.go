// Package session calls a [wire.Handler] as [wire.Channel] says it must be.
package session

import (
	"errors"
	"sync"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// ErrTimeout is why a session ends whose connection did not answer in time.
var ErrTimeout = errors.New("no answer in time")

// Session is one connection of a subscription. It makes sure that calls are
// one at a time, that there are none before Begin and none after End, that Up
// comes in pairs, and that no hot set is followed by an older one. It is safe
// for concurrent use, so that what watches the connection can end it while
// another waits for events.
type Session struct {
	h      wire.Handler
	app    string
	keeper *Keeper

	mu      sync.Mutex
	began   bool
	ended   bool
	some    bool      // a hot set was delivered,
	version uint64    // and this was its version
	fresh   time.Time // latest that was passed on
}

// Begin says that events will come from now on, and that it is as if all that
// was sent before asOf had been delivered: the handler forgets what it knew.
// stored is the hot set as it is now, nil if there is none.
func (s *Session) Begin(asOf time.Time, stored *wire.HotSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.began {
		return
	}
	s.began = true
	if s.h.Up != nil {
		s.h.Up(true)
	}
	if stored != nil {
		s.hot(*stored)
	}
	s.freshen(asOf)
	s.keeper.log.Debug("push channel up", "app", s.app)
}

// End says that the connection is down. Nothing is called any more. It tells
// whether the session had begun.
func (s *Session) End() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began && !s.ended && s.h.Up != nil {
		s.h.Up(false)
	}
	s.ended = true
	return s.began
}

// up reports whether handlers may be called. s.mu must be held.
func (s *Session) up() bool { return s.began && !s.ended }

// Deliver passes on a message. One that is not understood may have been an
// invalidation, of a newer version say, and becomes one of everything.
func (s *Session) Deliver(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.up() {
		return
	}
	message, err := s.decode(data)
	switch m := message.(type) {
	case *wire.HotSet:
		s.hot(*m)
	case *wire.Invalidation:
		s.invalidate(*m)
	default:
		s.keeper.malformed.Add(1)
		s.keeper.log.Error("push message not understood", "app", s.app, "error", err)
		s.invalidate(wire.Invalidation{App: s.app, All: true})
	}
}

var errKind = errors.New("message of no known kind, or of another application")

func (s *Session) decode(data []byte) (message any, err error) {
	switch wire.KindOf(data) {
	case wire.KindHotSet:
		set := new(wire.HotSet)
		if err := set.UnmarshalBinary(data); err != nil {
			return nil, err
		}
		if set.App == s.app {
			return set, nil
		}
	case wire.KindInvalidation:
		inv := new(wire.Invalidation)
		if err := inv.UnmarshalBinary(data); err != nil {
			return nil, err
		}
		if inv.App == s.app {
			return inv, nil
		}
	}
	return nil, errKind
}

// Stored decodes a hot set that was read from where it is stored. It returns
// nil if data is none.
func (s *Session) Stored(data []byte) *wire.HotSet {
	message, err := s.decode(data)
	if set, ok := message.(*wire.HotSet); ok {
		return set
	}
	s.keeper.malformed.Add(1)
	s.keeper.log.Error("stored hot set not understood", "app", s.app, "error", err)
	return nil
}

// hot delivers a hot set unless it is older than one before. s.mu must be held.
func (s *Session) hot(set wire.HotSet) {
	if s.some && set.Version <= s.version {
		return
	}
	s.some, s.version = true, set.Version
	if s.h.Hot != nil {
		s.h.Hot(set)
	}
}

// invalidate delivers an invalidation. s.mu must be held.
func (s *Session) invalidate(inv wire.Invalidation) {
	if s.h.Invalidate != nil {
		s.h.Invalidate(inv)
	}
}

// Fresh says that all that was sent before t has been delivered.
func (s *Session) Fresh(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up() {
		s.freshen(t)
	}
}

// freshen does what Fresh does. s.mu must be held.
func (s *Session) freshen(t time.Time) {
	if t.After(s.fresh) {
		s.fresh = t
		if s.h.Fresh != nil {
			s.h.Fresh(t)
		}
	}
}

package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/backoff"
	"github.com/heavykeeper-go/heavykeeper/tmc/push"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

func newTestKeeper() *Keeper {
	return NewKeeper(backoff.Backoff{Min: time.Second, Max: 4 * time.Second}, slog.New(slog.DiscardHandler))
}

// handler records calls.
func handler(log *[]string) wire.Handler {
	note := func(format string, args ...any) { *log = append(*log, fmt.Sprintf(format, args...)) }
	return wire.Handler{
		Hot:        func(s wire.HotSet) { note("hot %d", s.Version) },
		Invalidate: func(n wire.Invalidation) { note("invalidate %v %v", n.Keys, n.All) },
		Up:         func(up bool) { note("up %v", up) },
		Fresh:      func(at time.Time) { note("fresh %d", at.Unix()) },
	}
}

func encode(t *testing.T, m interface{ MarshalBinary() ([]byte, error) }) []byte {
	t.Helper()
	data, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestSession calls a session in all kinds of orders.
func TestSession(t *testing.T) {
	hot := func(version uint64) []byte { return encode(t, &wire.HotSet{App: "a", Version: version}) }
	inv := encode(t, &wire.Invalidation{App: "a", Node: "n", Keys: []string{"k"}})
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	stored := &wire.HotSet{App: "a", Version: 5}
	for name, test := range map[string]struct {
		calls func(s *Session)
		want  []string
	}{
		"nothing before Begin": {
			func(s *Session) { s.Deliver(inv); s.Deliver(hot(1)); s.Fresh(at(1)); s.End() },
			nil,
		},
		"nothing after End": {
			func(s *Session) {
				s.Begin(at(1), nil)
				s.End()
				s.Deliver(inv)
				s.Fresh(at(2))
				s.End()
				s.Begin(at(3), stored)
			},
			[]string{"up true", "fresh 1", "up false"},
		},
		"no Begin after End": {
			func(s *Session) { s.End(); s.Begin(at(1), stored) },
			nil,
		},
		"stored first, then newer ones only": {
			func(s *Session) {
				s.Begin(at(1), stored)
				s.Deliver(hot(4))
				s.Deliver(hot(5))
				s.Deliver(hot(7))
				s.Deliver(hot(6))
			},
			[]string{"up true", "hot 5", "fresh 1", "hot 7"},
		},
		"version 0": {
			func(s *Session) { s.Begin(at(1), &wire.HotSet{}); s.Deliver(hot(0)); s.Deliver(hot(1)) },
			[]string{"up true", "hot 0", "fresh 1", "hot 1"},
		},
		"Fresh does not go back": {
			func(s *Session) { s.Begin(at(5), nil); s.Fresh(at(4)); s.Fresh(at(5)); s.Fresh(at(6)) },
			[]string{"up true", "fresh 5", "fresh 6"},
		},
		"what is not understood invalidates all": {
			func(s *Session) {
				s.Begin(at(1), nil)
				s.Deliver(inv)
				s.Deliver([]byte("x"))
				s.Deliver(nil)
				s.Deliver(inv)
			},
			[]string{"up true", "fresh 1", "invalidate [k] false", "invalidate [] true", "invalidate [] true", "invalidate [k] false"},
		},
	} {
		var log []string
		s := &Session{h: handler(&log), app: "a", keeper: newTestKeeper()}
		test.calls(s)
		if !slices.Equal(log, test.want) {
			t.Errorf("%s: got calls %q, want %q", name, log, test.want)
		}
		// None of them is needed.
		test.calls(&Session{app: "a", keeper: newTestKeeper()})
	}
}

func TestStored(t *testing.T) {
	s := &Session{app: "a", keeper: newTestKeeper()}
	if set := s.Stored(encode(t, &wire.HotSet{App: "a", Version: 3})); set == nil || set.Version != 3 {
		t.Errorf("got %v, want version 3", set)
	}
	for name, data := range map[string][]byte{
		"nothing":        nil,
		"another app's":  encode(t, &wire.HotSet{App: "b"}),
		"no hot set":     encode(t, &wire.Invalidation{App: "a", Node: "n"}),
		"another's inv.": encode(t, &wire.Invalidation{App: "b", Node: "n"}),
	} {
		if set := s.Stored(data); set != nil {
			t.Errorf("%s: got %v, want nil", name, set)
		}
	}
	if got := s.keeper.Stats().Malformed; got != 4 {
		t.Errorf("Malformed = %d, want 4", got)
	}
}

// TestKeep has sessions that end, after and before they began: the waits
// between them grow, and begin anew after one that began.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestKeeper()
		ctx, cancel := context.WithCancel(t.Context())
		var log []string
		var starts []time.Duration
		start := time.Now()
		err := k.Keep(ctx, "a", handler(&log), func(ctx context.Context, s *Session) error {
			starts = append(starts, time.Since(start))
			switch n := len(starts); {
			case n == 3 || n == 7:
				s.Begin(time.Unix(int64(n), 0), nil)
			case n == 8:
				cancel()
				<-ctx.Done()
				return ctx.Err()
			}
			return errors.New("down")
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want context.Canceled", err)
		}
		for i, most := range []time.Duration{1, 2, 1, 2, 4, 4, 1} { // seconds, at least half
			if wait := starts[i+1] - starts[i]; wait > most*time.Second || wait < most*time.Second/2 {
				t.Errorf("wait %d: got %v, want %v s at most and half at least", i, wait, int(most))
			}
		}
		want := []string{"up true", "fresh 3", "up false", "up true", "fresh 7", "up false"}
		if !slices.Equal(log, want) {
			t.Errorf("got calls %q, want %q", log, want)
		}
		if got := k.Stats().Losses; got != 2 {
			t.Errorf("Losses = %d, want 2", got)
		}
	})
}

// TestKeeperCloses closes while a session waits for its context.
func TestKeeperCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTestKeeper()
		done := make(chan error, 1)
		var log []string
		go func() {
			done <- k.Keep(t.Context(), "a", handler(&log), func(ctx context.Context, s *Session) error {
				s.Begin(time.Unix(1, 0), nil)
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		synctest.Wait()
		k.Close()
		if err := <-done; !errors.Is(err, push.ErrClosed) {
			t.Errorf("got error %v, want ErrClosed", err)
		}
		if want := []string{"up true", "fresh 1", "up false"}; !slices.Equal(log, want) {
			t.Errorf("got calls %q, want %q", log, want)
		}
		if k.Stats().Losses != 0 {
			t.Error("Close counts as a loss")
		}
		k.Close()
		if err := k.Keep(t.Context(), "a", wire.Handler{}, nil); !errors.Is(err, push.ErrClosed) {
			t.Errorf("Keep after Close: got error %v, want ErrClosed", err)
		}
	})
}

package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Source has the documents of applications. It is safe for concurrent use.
type Source interface {
	// Watch calls f with the document of app as it is, nil if there is none,
	// and again when it has changed, from one goroutine at a time, until ctx
	// ends, whose error it returns. While the source cannot be reached it calls
	// failed with the reason, and tries again.
	Watch(ctx context.Context, app string, f func(document []byte), failed func(error)) error
}

// FollowerConfig holds the parameters of a [Follower]. The zero value of every
// field but Source and App selects its default.
type FollowerConfig struct {
	// Source has the document. Required.
	Source Source

	// App is the application whose document it is. Required.
	App string

	// Base is what a document leaves out, and what holds if there is none. It
	// must be valid. Default: [Default].
	Base *Config

	// Slots is the number of slots of the window, at least 2. Default 10.
	Slots int

	// Changed, if not nil, is called with each configuration that differs from
	// the one before, from one goroutine at a time. If it returns an error, the
	// configuration is rejected, and the last one kept.
	Changed func(Config) error

	// Logger is told of changes, and of documents that are rejected. Default
	// [slog.Default].
	Logger *slog.Logger
}

// Follower follows the configuration of an application. See [NewFollower]. All
// methods are safe for concurrent use.
type Follower struct {
	config  FollowerConfig // resolved
	current atomic.Pointer[Config]
	mu      sync.Mutex // of status
	status  Status
}

// Status tells how a [Follower] is doing.
type Status struct {
	// Document tells that there is a document and the configuration is what it
	// says, as opposed to the one before or Base.
	Document bool

	// Applied and Rejected count the documents, removals included.
	Applied, Rejected uint64

	// Changed is when the configuration was applied.
	Changed time.Time

	// Problem is what is wrong with the document as it is now, "" if nothing.
	Problem string

	// Unreachable is why the source cannot be reached, "" if it can.
	Unreachable string
}

// NewFollower returns a follower, whose configuration is Base until Run has
// read the document. It fails if a parameter is out of range.
func NewFollower(config FollowerConfig) (*Follower, error) {
	if config.Source == nil {
		return nil, errors.New("live: Source = nil: is required")
	}
	if err := wire.CheckApp(config.App); err != nil {
		return nil, err
	}
	if config.Slots == 0 {
		config.Slots = 10
	}
	if config.Slots < 2 {
		return nil, fmt.Errorf("live: Slots = %d: must be at least 2", config.Slots)
	}
	if config.Base == nil {
		base := Default()
		config.Base = &base
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if err := config.Base.Validate(config.Slots); err != nil {
		return nil, fmt.Errorf("live: Base: %w", err)
	}
	f := &Follower{config: config}
	base := *config.Base
	f.current.Store(&base)
	return f, nil
}

// Config returns the configuration as it is. Its slices must not be changed.
func (f *Follower) Config() Config { return *f.current.Load() }

// Status returns how f is doing.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// Run follows the document until ctx ends, whose error it returns.
func (f *Follower) Run(ctx context.Context) error {
	return f.config.Source.Watch(ctx, f.config.App, f.apply, f.failed)
}

// apply takes on a document, or keeps the configuration if that cannot be.
func (f *Follower) apply(document []byte) {
	log := f.config.Logger.With("app", f.config.App)
	next, err := *f.config.Base, error(nil)
	if document != nil {
		next, err = Parse(document, *f.config.Base, f.config.Slots)
	}
	if err == nil && f.config.Changed != nil && !reflect.DeepEqual(next, f.Config()) {
		err = f.config.Changed(next)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Unreachable = ""
	if err != nil {
		f.status.Rejected++
		f.status.Problem = err.Error()
		log.Error("configuration rejected, the last one stays", "error", err)
		return
	}
	f.current.Store(&next)
	f.status.Document, f.status.Problem, f.status.Changed = document != nil, "", time.Now()
	f.status.Applied++
	log.Info("configuration applied", "document", document != nil)
}

func (f *Follower) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Unreachable = err.Error()
}

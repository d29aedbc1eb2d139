package tmc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
	"github.com/heavykeeper-go/heavykeeper/window"
)

// detector says which keys are hot. There is one kind for each mode.
type detector interface {
	observe(key string) bool // counts a read and says whether key is hot
	hot(key string) bool
	ttl(key string) time.Duration // of a copy, as the rule of key says; 0: none
	len() int                     // hot keys
	setHot(s wire.HotSet)         // as the servers say
	apply(config live.Config) error
	run(ctx context.Context, group *sync.WaitGroup)
}

func newDetector(c *Cache) (detector, error) {
	if c.options.Publisher != nil {
		return newReporter(c.options), nil
	}
	return newEmbedded(c.options.Hot)
}

// embedded finds the hot keys of this process.
type embedded struct {
	atomic.Pointer[hotspot.Detector[string]]
	changed chan struct{} // the detector is another

	mu     sync.Mutex // held while that is made
	base   hotspot.Config[string]
	source hotspot.Source[string]
	topN   int // that source is made for
}

// defaultTopN is that of package hotspot, which is not told.
const defaultTopN = 100

func newEmbedded(config hotspot.Config[string]) (*embedded, error) {
	e := &embedded{base: config, changed: make(chan struct{}, 1)}
	if e.topN = config.TopN; e.topN == 0 {
		e.topN = defaultTopN
	}
	// With a bad Slots or TopN there is no source, and hotspot says why.
	source, err := newSource(hotspot.Config[string]{TopN: e.topN, Slots: config.Slots, Slot: config.Slot})
	if err == nil {
		e.source, config.Source, config.Slots = source, source, 0
	}
	d, err := hotspot.New(config)
	if err != nil {
		return nil, fmt.Errorf("tmc: Hot: %w", err)
	}
	e.Store(d)
	return e, nil
}

// newSource returns a window for config, as package hotspot makes it.
func newSource(config hotspot.Config[string]) (hotspot.Source[string], error) {
	return window.New(window.Config[string]{K: 2 * config.TopN, Slots: config.Slots, Slot: config.Slot})
}

func (e *embedded) observe(key string) bool { return e.Load().Observe(key) }
func (e *embedded) hot(key string) bool     { return e.Load().Hot(key) }
func (e *embedded) len() int                { return e.Load().Set().Len() }
func (e *embedded) setHot(wire.HotSet)      {}

func (e *embedded) ttl(key string) time.Duration {
	hot, _ := e.Load().Set().Find(key)
	return hot.TTL
}

// replace makes d the detector. e.mu must be held.
func (e *embedded) replace(d *hotspot.Detector[string]) {
	e.Store(d)
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

func (e *embedded) run(ctx context.Context, group *sync.WaitGroup) {
	group.Go(func() {
		for ctx.Err() == nil {
			e.scan(ctx)
		}
	})
}

// scan has the detector of now scan, until there is another or ctx ends.
func (e *embedded) scan(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		select {
		case <-ctx.Done():
		case <-e.changed:
			cancel()
		}
	})
	_ = e.Load().Run(ctx, nil)
}

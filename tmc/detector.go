package tmc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// detector says which keys are hot. There is one kind for each mode.
type detector interface {
	observe(key string) bool // counts a read and says whether key is hot
	hot(key string) bool
	ttl(key string) time.Duration // how long a copy may be served; 0: as Options says
	len() int                     // hot keys
	setHot(s wire.HotSet)         // as the servers say
	run(ctx context.Context, group *sync.WaitGroup)
}

func newDetector(c *Cache) (detector, error) {
	if c.options.Publisher != nil {
		return newReporter(c.options), nil
	}
	d, err := hotspot.New(c.options.Hot)
	if err != nil {
		return nil, fmt.Errorf("tmc: Hot: %w", err)
	}
	return newEmbedded(d), nil
}

// embedded finds the hot keys of this process.
type embedded struct {
	atomic.Pointer[hotspot.Detector[string]]
	changed chan struct{} // the detector is another
}

func newEmbedded(d *hotspot.Detector[string]) *embedded {
	e := &embedded{changed: make(chan struct{}, 1)}
	e.Store(d)
	return e
}

func (e *embedded) observe(key string) bool { return e.Load().Observe(key) }
func (e *embedded) hot(key string) bool     { return e.Load().Hot(key) }
func (e *embedded) len() int                { return e.Load().Set().Len() }
func (e *embedded) setHot(wire.HotSet)      {}

func (e *embedded) ttl(key string) time.Duration {
	hot, _ := e.Load().Set().Find(key)
	return hot.TTL
}

// replace makes d the detector.
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

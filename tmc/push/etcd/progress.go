package etcd

import (
	"context"
	"sync"
)

// progress is the revision up to which events have been delivered. One
// goroutine may wait for it at a time.
type progress struct {
	mu       sync.Mutex
	revision int64
	moved    chan struct{} // holds one if revision has grown since wait looked
}

func newProgress(revision int64) *progress {
	return &progress{revision: revision, moved: make(chan struct{}, 1)}
}

// reach says that all events up to a revision have been delivered.
func (p *progress) reach(revision int64) {
	p.mu.Lock()
	p.revision = max(p.revision, revision)
	p.mu.Unlock()
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

// wait waits until a revision is reached, or returns ctx's error.
func (p *progress) wait(ctx context.Context, revision int64) error {
	for {
		p.mu.Lock()
		reached := p.revision >= revision
		p.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.moved:
		}
	}
}

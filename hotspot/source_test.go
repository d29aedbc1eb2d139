package hotspot

import (
	"sync"

	"github.com/heavykeeper-go/heavykeeper"
)

// exactSource is a Source that can do no more than it must, and knows nothing
// from above.
type exactSource struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func (s *exactSource) Add(key string) { s.AddN(key, 1) }

func (s *exactSource) AddN(key string, n uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[string]uint64)
	}
	s.counts[key] += uint64(n)
}

func (s *exactSource) Estimate(key string) heavykeeper.Estimate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return heavykeeper.Estimate{Count: s.counts[key], Lower: s.counts[key], Upper: unbounded}
}

func (s *exactSource) Top(int) []heavykeeper.Item[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []heavykeeper.Item[string]
	for key, n := range s.counts {
		items = append(items, heavykeeper.Item[string]{Key: key, Estimate: heavykeeper.Estimate{Count: n, Lower: n, Upper: unbounded}})
	}
	return items
}

// fadingSource fades, but does not say by how much.
type fadingSource struct {
	exactSource
	fades int
}

func (s *fadingSource) Fade() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fades++
	for key := range s.counts {
		s.counts[key] /= 2
	}
}

// looseSource knows some estimates and counts nothing.
type looseSource struct {
	exactSource
	known map[string]heavykeeper.Estimate
}

func (s *looseSource) Top(int) []heavykeeper.Item[string] {
	var items []heavykeeper.Item[string]
	for key, e := range s.known {
		items = append(items, heavykeeper.Item[string]{Key: key, Estimate: e})
	}
	return items
}

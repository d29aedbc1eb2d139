package heavykeeper

import (
	"iter"
	"sync"
)

// HeavyKeeper finds the K heaviest keys of a stream. It is safe for concurrent
// use.
type HeavyKeeper[K comparable] struct {
	mu     sync.Mutex
	sketch *Sketch[K]
}

var _ iter.Seq[int]

package wire

import (
	"fmt"
	"math"
	"time"
)

// MaxSize is the largest number of bytes that a message may encode to.
const MaxSize = 16 << 20

// MaxApp is the largest number of bytes in the name of an application.
const MaxApp = 128

// MaxNode is the largest number of bytes in the name of a node.
const MaxNode = 256

// MaxKey is the largest number of bytes in a key of a report. It bounds the
// memory of servers, which keep the keys that are read most. Transports leave
// longer ones out, and count their occurrences as Dropped.
const MaxKey = 1024

// Report is a batch of counts that an SDK added up before it sent them.
type Report struct {
	App  string    // application that the keys are of; see CheckApp
	Node string    // node that counted, unique to the life of one process
	At   time.Time // when it counted, on the clock of Node

	// Dropped is the number of occurrences that Node counted and could not
	// report, since the report before this one.
	Dropped uint64

	// Counts should have each key once. A count of 0 counts nothing. Keys have
	// at most MaxKey bytes.
	Counts []Count
}

// Count says that a key occurred N times.
type Count struct {
	Key string
	N   uint32
}

// HotSet is the whole hot set of an application, which replaces the one before.
type HotSet struct {
	App     string
	Version uint64 // grows with each set of an application
	At      time.Time
	Keys    []HotKey // hottest first
}

// HotKey is a hot key as the servers see it.
type HotKey struct {
	Key   string
	Count uint64        // occurrences in the window
	Rate  float64       // occurrences per second
	TTL   time.Duration // how long a local cache may keep the value; 0: its default
}

// Invalidation says that keys were written, so that no local cache may keep
// their values.
type Invalidation struct {
	App  string
	Node string   // node that wrote
	Seq  uint64   // number of the invalidation among those of Node
	Keys []string // keys that were written
	All  bool     // every key may have been
}

// CheckApp returns an error if app cannot be the name of an application: it
// must have 1 to MaxApp bytes, which are letters, digits or one of -_.: so
// that it can be part of a Redis key, of an etcd key and of a URL.
func CheckApp(app string) error {
	if app == "" || len(app) > MaxApp {
		return fmt.Errorf("wire: App = %.40q: must have 1 to %d bytes, not %d", app, MaxApp, len(app))
	}
	for i := range len(app) {
		switch c := app[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == ':':
		default:
			return fmt.Errorf("wire: App = %q: must have no %q", app, c)
		}
	}
	return nil
}

// checkNode returns an error if node cannot be the name of a node.
func checkNode(node string) error {
	if node == "" || len(node) > MaxNode {
		return fmt.Errorf("wire: Node = %.40q: must have 1 to %d bytes, not %d", node, MaxNode, len(node))
	}
	return nil
}

func (r *Report) check() error {
	if err := CheckApp(r.App); err != nil {
		return err
	}
	for i := range r.Counts {
		if n := len(r.Counts[i].Key); n > MaxKey {
			return fmt.Errorf("wire: Counts[%d].Key = %.40q: must have at most %d bytes, not %d", i, r.Counts[i].Key, MaxKey, n)
		}
	}
	return checkNode(r.Node)
}

func (s *HotSet) check() error {
	for i := range s.Keys {
		if rate := s.Keys[i].Rate; !(rate >= 0) || math.IsInf(rate, 1) {
			return fmt.Errorf("wire: Keys[%d].Rate = %v: must be a number, not negative", i, rate)
		}
		if ttl := s.Keys[i].TTL; ttl < 0 {
			return fmt.Errorf("wire: Keys[%d].TTL = %v: must not be negative", i, ttl)
		}
	}
	return CheckApp(s.App)
}

func (n *Invalidation) check() error {
	if err := CheckApp(n.App); err != nil {
		return err
	}
	return checkNode(n.Node)
}

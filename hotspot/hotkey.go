package hotspot

import (
	"time"

	"github.com/heavykeeper-go/heavykeeper"
)

// HotKey is a key of the hot set, as the scan found it that published the set.
type HotKey[K comparable] struct {
	Key K

	// Estimate is what the Source knows of the key's occurrences in the whole
	// window.
	heavykeeper.Estimate

	// Rank is the key's place among all that are ranked, from 1 on: by
	// descending Count. It is 0 if nothing was counted.
	Rank int

	// Rate is the key's number of occurrences a second of the time measured.
	// Share is the key's share of everything that was counted, 0 to 1. Both
	// are of the slots that the key's rule says; see Rule.Window.
	Rate, Share float64

	// Certain tells that Lower reaches the thresholds, so that the key
	// certainly does. Otherwise it may not, or does no more.
	Certain bool

	// Allowed tells that a rule has the key always hot.
	Allowed bool

	// Since is the time of the scan at which the key became hot. It is zero
	// for a key that was allowed before the first scan.
	Since time.Time

	// TTL is that of the key's rule, 0 if it has none.
	TTL time.Duration

	// Rule is the name of the rule that matches the key, if any.
	Rule string
}

// Change is the outcome of a scan. Its slices are the receiver's to keep, and
// in the order of rank.
type Change[K comparable] struct {
	// At is the time of the scan.
	At time.Time

	// Entered are the keys that the scan before did not have, Left those that
	// it had and this one has not, with what is known of them now. Hot are all
	// keys that are hot now, those that entered and those that stay.
	Entered, Left, Hot []HotKey[K]

	// Possible are up to TopN keys that are not hot but whose Upper reaches
	// the thresholds, so that they may be, or whose scans in a row are too few.
	Possible []HotKey[K]

	// Total is the number of occurrences of all keys in the window, 0 if the
	// Source does not tell, and Span the time that it has measured.
	Total uint64
	Span  time.Duration
}

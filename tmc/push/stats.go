package push

import "errors"

// ErrClosed is returned by the methods of a channel that was closed.
var ErrClosed = errors.New("push: the channel is closed")

// Stats tells what a channel has done since it was new.
type Stats struct {
	// Losses is the number of times that a subscription was up and went down,
	// other than by its context or Close.
	Losses uint64

	// Malformed is the number of messages that could not be understood. Each
	// was treated as an invalidation of everything.
	Malformed uint64
}

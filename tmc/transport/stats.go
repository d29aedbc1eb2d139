package transport

import "errors"

// ErrBusy is returned by Consume if another call of it is under way.
var ErrBusy = errors.New("transport: the consumer is consuming already")

// ErrClosed is returned by Publish after Close.
var ErrClosed = errors.New("transport: the publisher is closed")

// Stats tells what a consumer has done since it was new.
type Stats struct {
	// Reports is the number of reports received: parts of those that were
	// published, one for each shard that keys fell into.
	Reports uint64

	// Lost is the number of reports, in the same sense, that were published
	// and are gone: trimmed before any server read them, or gone with a server
	// of the transport. Redis Streams count in it also those for which Publish
	// failed, which the SDK counts as well.
	Lost uint64

	// Late is the number of reports that came after they had been counted as
	// lost. What is lost in the end is Lost less Late.
	Late uint64

	// Repeated is the number of reports that came again and were not counted
	// again.
	Repeated uint64

	// Malformed is the number of messages that could not be understood, and
	// were left out.
	Malformed uint64

	// Failures is the number of times that the transport could not be reached.
	Failures uint64

	// Shards is the number of shards that this server reads now.
	Shards int
}

// Meter is what consumers of this package are beside [wire.Consumer].
type Meter interface {
	Stats() Stats
}

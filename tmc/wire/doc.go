// Package wire holds what the parts of tmc say to one another: the messages,
// their encoding, and the two interfaces that carry them.
//
// SDKs send a [Report] of how often keys were read to the servers, through a
// [Publisher] and a [Consumer]. The servers send each application its [HotSet],
// and SDKs tell each other of writes by an [Invalidation], through a [Channel].
//
// # Encoding
//
// A message is a kind, a version, its fields in the order of the struct, and
// nothing after that. Numbers are varints, strings and lists have their length
// before them, a time is seconds since 1970 and nanoseconds. A string may hold
// any bytes, as a Redis key may. Decoding allocates in proportion to the data,
// whatever the data says of lengths, and leaves the receiver as it was if it
// fails. A version that this package does not know is an error; fields are not
// skipped.
package wire

package wire

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

var (
	_ encoding.BinaryAppender    = (*Report)(nil)
	_ encoding.BinaryMarshaler   = (*Report)(nil)
	_ encoding.BinaryUnmarshaler = (*Report)(nil)
	_ encoding.BinaryAppender    = (*HotSet)(nil)
	_ encoding.BinaryMarshaler   = (*HotSet)(nil)
	_ encoding.BinaryUnmarshaler = (*HotSet)(nil)
	_ encoding.BinaryAppender    = (*Invalidation)(nil)
	_ encoding.BinaryMarshaler   = (*Invalidation)(nil)
	_ encoding.BinaryUnmarshaler = (*Invalidation)(nil)
)

// ErrFormat is returned, wrapped, for data that is not an encoding of the
// message, or of a version that is not known.
var ErrFormat = errors.New("wire: malformed message")

// ErrSize is returned, wrapped, for a message that would encode to more than
// MaxSize bytes, and for data of more.
var ErrSize = errors.New("wire: message too large")

// Kind tells the messages apart. It is the first byte of each.
type Kind byte

// The kinds of messages.
const (
	KindReport       Kind = 'R'
	KindHotSet       Kind = 'H'
	KindInvalidation Kind = 'I'
)

// version is the version of the encoding, the second byte of a message.
const version = 1

// KindOf returns the kind of message that data says it holds, 0 if none.
func KindOf(data []byte) Kind {
	if len(data) == 0 {
		return 0
	}
	switch kind := Kind(data[0]); kind {
	case KindReport, KindHotSet, KindInvalidation:
		return kind
	}
	return 0
}

// AppendBinary appends the encoding of r to dst. It fails, and returns dst, if
// a name or a key is out of range or the encoding too large.
func (r *Report) AppendBinary(dst []byte) ([]byte, error) {
	if err := r.check(); err != nil {
		return dst, err
	}
	b := start(dst, KindReport)
	b = appendString(b, r.App)
	b = appendString(b, r.Node)
	b = appendTime(b, r.At)
	b = binary.AppendUvarint(b, r.Dropped)
	b = binary.AppendUvarint(b, uint64(len(r.Counts)))
	for i := range r.Counts {
		b = appendString(b, r.Counts[i].Key)
		b = binary.AppendUvarint(b, uint64(r.Counts[i].N))
	}
	return bounded(dst, b)
}

// MarshalBinary returns the encoding of r.
func (r *Report) MarshalBinary() ([]byte, error) { return r.AppendBinary(nil) }

// UnmarshalBinary makes r the report that data encodes. Its strings share one
// copy of data.
func (r *Report) UnmarshalBinary(data []byte) error {
	d := newDecoder(data, KindReport)
	next := Report{App: d.string(), Node: d.string(), At: d.time(), Dropped: d.uvarint()}
	if n := d.length(2); n > 0 {
		next.Counts = make([]Count, n)
		for i := range next.Counts {
			next.Counts[i] = Count{Key: d.string(), N: d.uint32()}
		}
	}
	if err := d.end(next.check); err != nil {
		return err
	}
	*r = next
	return nil
}

// AppendBinary appends the encoding of s to dst. It fails, and returns dst, if
// a field is out of range or the encoding too large.
func (s *HotSet) AppendBinary(dst []byte) ([]byte, error) {
	if err := s.check(); err != nil {
		return dst, err
	}
	b := start(dst, KindHotSet)
	b = appendString(b, s.App)
	b = binary.AppendUvarint(b, s.Version)
	b = appendTime(b, s.At)
	b = binary.AppendUvarint(b, uint64(len(s.Keys)))
	for i := range s.Keys {
		k := &s.Keys[i]
		b = appendString(b, k.Key)
		b = binary.AppendUvarint(b, k.Count)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(k.Rate))
		b = binary.AppendUvarint(b, uint64(k.TTL))
	}
	return bounded(dst, b)
}

// MarshalBinary returns the encoding of s.
func (s *HotSet) MarshalBinary() ([]byte, error) { return s.AppendBinary(nil) }

// UnmarshalBinary makes s the hot set that data encodes. Its strings share one
// copy of data.
func (s *HotSet) UnmarshalBinary(data []byte) error {
	d := newDecoder(data, KindHotSet)
	next := HotSet{App: d.string(), Version: d.uvarint(), At: d.time()}
	if n := d.length(11); n > 0 {
		next.Keys = make([]HotKey, n)
		for i := range next.Keys {
			next.Keys[i] = HotKey{Key: d.string(), Count: d.uvarint(), Rate: d.float64(), TTL: d.duration()}
		}
	}
	if err := d.end(next.check); err != nil {
		return err
	}
	*s = next
	return nil
}

// AppendBinary appends the encoding of n to dst. It fails, and returns dst, if
// a name is out of range or the encoding too large: an invalidation of All
// never is.
func (n *Invalidation) AppendBinary(dst []byte) ([]byte, error) {
	if err := n.check(); err != nil {
		return dst, err
	}
	b := start(dst, KindInvalidation)
	b = appendString(b, n.App)
	b = appendString(b, n.Node)
	b = binary.AppendUvarint(b, n.Seq)
	b = binary.AppendUvarint(b, uint64(len(n.Keys)))
	for _, key := range n.Keys {
		b = appendString(b, key)
	}
	if n.All {
		return bounded(dst, append(b, 1))
	}
	return bounded(dst, append(b, 0))
}

// MarshalBinary returns the encoding of n.
func (n *Invalidation) MarshalBinary() ([]byte, error) { return n.AppendBinary(nil) }

// UnmarshalBinary makes n the invalidation that data encodes. Its strings
// share one copy of data.
func (n *Invalidation) UnmarshalBinary(data []byte) error {
	d := newDecoder(data, KindInvalidation)
	next := Invalidation{App: d.string(), Node: d.string(), Seq: d.uvarint()}
	if n := d.length(1); n > 0 {
		next.Keys = make([]string, n)
		for i := range next.Keys {
			next.Keys[i] = d.string()
		}
	}
	next.All = d.bool()
	if err := d.end(next.check); err != nil {
		return err
	}
	*n = next
	return nil
}

func start(dst []byte, kind Kind) []byte { return append(dst, byte(kind), version) }

func bounded(dst, b []byte) ([]byte, error) {
	if n := len(b) - len(dst); n > MaxSize {
		return dst, fmt.Errorf("%w: %d bytes, at most %d", ErrSize, n, MaxSize)
	}
	return b, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTime appends an instant without its location, for which UnixNano would
// not do: it cannot hold the zero time.
func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

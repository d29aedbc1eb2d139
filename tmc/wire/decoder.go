package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// decoder reads the fields of a message. After the first error, which it
// keeps, it reads zeros.
type decoder struct {
	data []byte // all of the message
	text string // the same bytes, which decoded strings are parts of
	at   int    // next byte to read
	err  error
}

func newDecoder(data []byte, kind Kind) *decoder {
	d := &decoder{data: data, at: 2}
	switch {
	case len(data) > MaxSize:
		d.err = fmt.Errorf("%w: %d bytes, at most %d", ErrSize, len(data), MaxSize)
	case len(data) < 2:
		d.at = 0
		d.fail("%d bytes", len(data))
	case data[0] != byte(kind):
		d.fail("kind %q, not %q", data[0], byte(kind))
	case data[1] != version:
		d.fail("version %d, not %d", data[1], version)
	default:
		d.text = string(data)
	}
	return d
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
	}
}

// end returns the first error: of reading, of bytes left over, or of check.
func (d *decoder) end(check func() error) error {
	if d.err == nil && d.at != len(d.data) {
		d.fail("%d bytes after its end", len(d.data)-d.at)
	}
	if d.err != nil {
		return d.err
	}
	if err := check(); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil
}

func (d *decoder) uvarint() uint64 {
	if d.err != nil {
		return 0
	}
	x, n := binary.Uvarint(d.data[d.at:])
	if n <= 0 {
		d.fail("no number at byte %d", d.at)
		return 0
	}
	d.at += n
	return x
}

func (d *decoder) uint32() uint32 {
	x := d.uvarint()
	if x > math.MaxUint32 {
		d.fail("count %d before byte %d", x, d.at)
		return 0
	}
	return uint32(x)
}

// length reads the length of a list whose elements take size bytes at least,
// so that no list is made that the rest of the data could not fill.
func (d *decoder) length(size int) int {
	n := d.uvarint()
	if left := len(d.data) - d.at; d.err == nil && n > uint64(left/size) {
		d.fail("%d elements in %d bytes", n, left)
		return 0
	}
	return int(n)
}

func (d *decoder) string() string {
	n := d.length(1)
	if d.err != nil {
		return ""
	}
	d.at += n
	return d.text[d.at-n : d.at]
}

func (d *decoder) time() time.Time {
	if d.err != nil {
		return time.Time{}
	}
	seconds, n := binary.Varint(d.data[d.at:])
	if n <= 0 {
		d.fail("no time at byte %d", d.at)
		return time.Time{}
	}
	d.at += n
	nanoseconds := d.uvarint()
	if nanoseconds >= uint64(time.Second) {
		d.fail("%d nanoseconds before byte %d", nanoseconds, d.at)
		return time.Time{}
	}
	return time.Unix(seconds, int64(nanoseconds)).UTC()
}

func (d *decoder) duration() time.Duration {
	x := d.uvarint()
	if x > math.MaxInt64 {
		d.fail("duration %d before byte %d", x, d.at)
		return 0
	}
	return time.Duration(x)
}

func (d *decoder) float64() float64 {
	if d.err != nil {
		return 0
	}
	if len(d.data)-d.at < 8 {
		d.fail("no float at byte %d", d.at)
		return 0
	}
	d.at += 8
	return math.Float64frombits(binary.LittleEndian.Uint64(d.data[d.at-8:]))
}

func (d *decoder) bool() bool {
	x := d.uvarint()
	if x > 1 {
		d.fail("flag %d before byte %d", x, d.at)
	}
	return x == 1
}

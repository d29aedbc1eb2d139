package heavykeeper

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"
)

// codec turns keys into bytes and back. The forms are part of the encoding.
type codec[K comparable] struct {
	form byte
	size byte // of an integer: 1, 2, 4 or 8
	kind reflect.Kind
}

const (
	stringForm  = 1
	integerForm = 2
	binaryForm  = 3
)

// newCodec returns the codec for K: strings and integers as they are, other
// types through their own encoding.BinaryAppender or BinaryMarshaler. hash is
// Config.Hash: types whose default goes by a seed of the process need one, or
// what is saved today could not be read after the next start.
func newCodec[K comparable](hash func(K) uint64) (codec[K], error) {
	t := reflect.TypeFor[K]()
	c := codec[K]{kind: t.Kind()}
	switch t.Kind() {
	case reflect.String:
		c.form = stringForm
		return c, nil
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		c.form, c.size = integerForm, 8 // on 32-bit machines too
		return c, nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		c.form, c.size = integerForm, byte(t.Size())
		return c, nil
	}
	var key K
	_, appends := any(&key).(encoding.BinaryAppender)
	_, marshals := any(&key).(encoding.BinaryMarshaler)
	_, unmarshals := any(&key).(encoding.BinaryUnmarshaler)
	if !appends && !marshals || !unmarshals {
		return c, fmt.Errorf("%w: %v", ErrKeyType, t)
	}
	if hash == nil {
		return c, fmt.Errorf("%w: %v hashes with a seed of the process: give a Config.Hash", ErrKeyType, t)
	}
	c.form = binaryForm
	return c, nil
}

// append appends the bytes of key to dst.
func (c codec[K]) append(dst []byte, key K) ([]byte, error) {
	switch p := unsafe.Pointer(&key); c.form {
	case stringForm:
		return append(dst, *(*string)(p)...), nil
	case integerForm:
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], c.load(p))
		return append(dst, word[:c.size]...), nil
	}
	return appendBinary(dst, key)
}

// appendBinary is append for a key with an encoding of its own. By itself, for
// here key escapes.
func appendBinary[K comparable](dst []byte, key K) ([]byte, error) {
	if a, ok := any(&key).(encoding.BinaryAppender); ok {
		return a.AppendBinary(dst)
	}
	data, err := any(&key).(encoding.BinaryMarshaler).MarshalBinary()
	return append(dst, data...), err
}

// load reads the integer at p, extended to 64 bits by its sign.
func (c codec[K]) load(p unsafe.Pointer) uint64 {
	switch c.kind {
	case reflect.Int:
		return uint64(*(*int)(p))
	case reflect.Uint, reflect.Uintptr:
		return uint64(*(*uint)(p))
	}
	switch c.size {
	case 1:
		return load[uint8](p)
	case 2:
		return load[uint16](p)
	case 4:
		return load[uint32](p)
	}
	return load[uint64](p)
}

// decode returns the key with the given bytes, of which it retains none.
func (c codec[K]) decode(data []byte) (key K, err error) {
	switch p := unsafe.Pointer(&key); c.form {
	case stringForm:
		*(*string)(p) = string(data)
		return key, nil
	case integerForm:
		if len(data) != int(c.size) {
			return key, fmt.Errorf("%w: an integer key of %d bytes, not %d", ErrFormat, len(data), c.size)
		}
		var word [8]byte
		copy(word[:], data)
		x := binary.LittleEndian.Uint64(word[:])
		if c.store(p, x); c.size == 8 && c.load(p) != x {
			return key, fmt.Errorf("%w: key %d does not fit into this machine's int", ErrMismatch, int64(x))
		}
		return key, nil
	}
	return decodeBinary[K](data)
}

// decodeBinary is decode for a key with an encoding of its own.
func decodeBinary[K comparable](data []byte) (key K, err error) {
	if err := any(&key).(encoding.BinaryUnmarshaler).UnmarshalBinary(bytes.Clone(data)); err != nil {
		return key, fmt.Errorf("%w: key: %w", ErrFormat, err)
	}
	return key, nil
}

// store writes the integer at p.
func (c codec[K]) store(p unsafe.Pointer, x uint64) {
	switch c.kind {
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		*(*uint)(p) = uint(x)
		return
	}
	switch c.size {
	case 1:
		*(*uint8)(p) = uint8(x)
	case 2:
		*(*uint16)(p) = uint16(x)
	case 4:
		*(*uint32)(p) = uint32(x)
	case 8:
		*(*uint64)(p) = x
	}
}

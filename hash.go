package heavykeeper

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/exp/constraints"
)

// keyKind says how the bits of a key are read.
type keyKind uint8

const (
	kindOther keyKind = iota // through fn
	kindString
	kind8
	kind16
	kind32
	kindInt32 // an int of 32 bits, hashed as one of 64
	kind64
)

// processSeed keys the default hash of types that are neither strings nor
// integers: one a process, so that its sketches can merge.
var processSeed = maphash.MakeSeed()

// keys knows how to hash, order, copy and check keys of type K. A switch on
// kind, rather than a function value alone, lets the compiler inline the
// common types: BenchmarkHash shows what the indirect call costs.
type keys[K comparable] struct {
	kind keyKind
	seed uint64
	fn   func(K) uint64 // kindOther: the default for K, or Config.Hash

	order   reflect.Kind
	strings []uintptr // offsets of the strings that a K holds
	strict  bool      // a K holds interfaces, and may not be comparable after all
}

// newKeys returns the keys of a resolved configuration.
func newKeys[K comparable](c Config[K]) keys[K] {
	t := reflect.TypeFor[K]()
	k := keys[K]{seed: mix(c.Seed), fn: c.Hash, order: t.Kind()}
	k.strings = appendStrings(nil, t, 0)
	k.strict = holdsInterface(t)
	if k.fn != nil {
		return k
	}
	switch t.Kind() {
	case reflect.String:
		k.kind = kindString
	case reflect.Int8, reflect.Uint8:
		k.kind = kind8
	case reflect.Int16, reflect.Uint16:
		k.kind = kind16
	case reflect.Int32, reflect.Uint32:
		k.kind = kind32
	case reflect.Int64, reflect.Uint64:
		k.kind = kind64
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		k.kind = kind64
		if t.Size() == 4 {
			k.kind = kind32
			if t.Kind() == reflect.Int {
				k.kind = kindInt32
			}
		}
	default:
		k.fn = KeyedHash[K](processSeed)
	}
	return k
}

// hash returns the 64 bits that a key's place in the index, its fingerprint
// and its cells are derived from.
func (h *keys[K]) hash(key K) uint64 {
	if h.kind == kind64 {
		return h.hash64(key)
	}
	return h.hashOther(key)
}

// hash64 is hash for keys of 64 bits, small enough to be inlined.
func (h *keys[K]) hash64(key K) uint64 { return mixEnd(h.mix64(key)) }

// mix64 is hash64 but for mixEnd.
func (h *keys[K]) mix64(key K) uint64 {
	return mixStart(*(*uint64)(unsafe.Pointer(&key)) ^ h.seed)
}

func (h *keys[K]) hashOther(key K) uint64 {
	var x uint64
	switch p := unsafe.Pointer(&key); h.kind {
	case kindString:
		x = xxhash.Sum64String(*(*string)(p))
	case kind32:
		x = load[uint32](p)
	case kindInt32:
		x = uint64(*(*int32)(p))
	case kind16:
		x = load[uint16](p)
	case kind8:
		x = load[uint8](p)
	default:
		x = h.fn(key)
	}
	return mix(x ^ h.seed)
}

// hashAll sets dst[i] to the hash of each batch[i].
func (h *keys[K]) hashAll(dst []uint64, batch []K) {
	if h.kind == kind64 {
		for i, key := range batch {
			dst[i] = h.hash64(key)
		}
		return
	}
	for i, key := range batch {
		dst[i] = h.hashOther(key)
	}
}

// load reads the integer at p.
func load[T constraints.Unsigned](p unsafe.Pointer) uint64 { return uint64(*(*T)(p)) }

// mix is a bijection in which every bit of x moves every bit of the result:
// the finalizer of splitmix64 with the constants of David Stafford's "Mix13".
func mix(x uint64) uint64 { return mixEnd(mixStart(x)) }

func mixStart(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	return x * 0x94d049bb133111eb
}

// mixEnd leaves the upper 31 bits as they are.
func mixEnd(x uint64) uint64 { return x ^ x>>31 }

// valid reports whether a key can be counted: it equals itself, and comparing
// it does not panic.
func (h *keys[K]) valid(key K) bool {
	return (!h.strict || isComparable(key)) && key == key
}

// isComparable reports whether the interfaces in key hold comparable values.
func isComparable[K comparable](key K) bool {
	return reflect.ValueOf(&key).Elem().Comparable() // key escapes
}

// clone returns a key equal to key that shares no string with it. Strings
// behind interfaces and pointers are not copied.
func (h *keys[K]) clone(key K) K {
	for _, at := range h.strings {
		s := (*string)(unsafe.Add(unsafe.Pointer(&key), at))
		*s = strings.Clone(*s)
	}
	return key
}

// stringBytes returns the memory that the strings of a cloned key take, in the
// eight-byte steps of the allocator's small sizes.
func (h *keys[K]) stringBytes(key K) int {
	n := 0
	for _, at := range h.strings {
		n += (len(*(*string)(unsafe.Add(unsafe.Pointer(&key), at))) + 7) &^ 7
	}
	return n
}

// compare orders keys: strings and numbers by value, other types by hash and,
// where that ties, by their printed form.
func (h *keys[K]) compare(a, b K) int {
	x, y := unsafe.Pointer(&a), unsafe.Pointer(&b)
	switch h.order {
	case reflect.String:
		return compareAs[string](x, y)
	case reflect.Int:
		return compareAs[int](x, y)
	case reflect.Int8:
		return compareAs[int8](x, y)
	case reflect.Int16:
		return compareAs[int16](x, y)
	case reflect.Int32:
		return compareAs[int32](x, y)
	case reflect.Int64:
		return compareAs[int64](x, y)
	case reflect.Uint, reflect.Uintptr:
		return compareAs[uint](x, y)
	case reflect.Uint8:
		return compareAs[uint8](x, y)
	case reflect.Uint16:
		return compareAs[uint16](x, y)
	case reflect.Uint32:
		return compareAs[uint32](x, y)
	case reflect.Uint64:
		return compareAs[uint64](x, y)
	case reflect.Float32:
		return compareAs[float32](x, y)
	case reflect.Float64:
		return compareAs[float64](x, y)
	}
	if c := cmp.Compare(h.hash(a), h.hash(b)); c != 0 || a == b {
		return c
	}
	return cmp.Compare(fmt.Sprintf("%#v", a), fmt.Sprintf("%#v", b))
}

// quoted returns a key for an error's text: keys that strangers choose may be
// long, or look like something else.
func quoted[K any](key K) string {
	const most = 64
	text := fmt.Sprint(key)
	if len(text) > most {
		return fmt.Sprintf("%q...", text[:most])
	}
	return fmt.Sprintf("%q", text)
}

func compareAs[T cmp.Ordered](a, b unsafe.Pointer) int {
	return cmp.Compare(*(*T)(a), *(*T)(b))
}

// appendStrings appends to dst the offsets of the strings that a value of type
// t at offset at holds itself.
func appendStrings(dst []uintptr, t reflect.Type, at uintptr) []uintptr {
	switch t.Kind() {
	case reflect.String:
		dst = append(dst, at)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			dst = appendStrings(dst, f.Type, at+f.Offset)
		}
	case reflect.Array:
		for i := range t.Len() {
			dst = appendStrings(dst, t.Elem(), at+uintptr(i)*t.Elem().Size())
		}
	}
	return dst
}

// holdsInterface reports whether a value of type t holds an interface itself.
func holdsInterface(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsInterface(t.Field(i).Type) {
				return true
			}
		}
	case reflect.Array:
		return t.Len() > 0 && holdsInterface(t.Elem())
	}
	return false
}

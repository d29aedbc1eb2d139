package hotspot

import (
	"hash/maphash"
	"reflect"

	"github.com/heavykeeper-go/heavykeeper"
)

// keys knows how to hash and order keys of type K.
//
// Its hash is not that of the Source: the runtime's takes half the time of it,
// and its seed is secret, so that nobody can choose keys that share a place in
// an index, or a verdict.
type keys[K comparable] struct {
	seed   maphash.Seed
	strict bool                   // a K holds interfaces, and may not be comparable after all
	order  *heavykeeper.Sketch[K] // counts nothing
}

func newKeys[K comparable]() (keys[K], error) {
	order, err := heavykeeper.NewSketch(heavykeeper.Config[K]{K: 1, Rows: 1, Width: 1})
	return keys[K]{seed: maphash.MakeSeed(), strict: holdsInterface(reflect.TypeFor[K]()), order: order}, err
}

// hash returns the hash of key, and anything for one that cannot be compared.
func (k *keys[K]) hash(key K) uint64 {
	if k.strict && !k.order.Valid(key) {
		return 0
	}
	return maphash.Comparable(k.seed, key)
}

// rank sorts items by descending count and then ascending key.
func (k *keys[K]) rank(items []heavykeeper.Item[K]) []heavykeeper.Item[K] {
	return k.order.Rank(items, -1)
}

// holdsInterface reports whether values of type t hold interfaces.
func holdsInterface(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array:
		return holdsInterface(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsInterface(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

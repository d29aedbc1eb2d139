package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// part is what one server has found of an application.
type part struct {
	at      time.Time
	total   uint64        // occurrences of all keys in the window
	allowed int           // how many of hot a rule has hot always
	hot     []wire.HotKey // keys that are hot, those that are allowed first
	heat    []wire.HotKey // the hottest keys, hot or not; Key and Count only
}

// maxHeat is the most keys whose heat is stored: so many of the longest that
// reports can have fit in a message. All that can be hot always fit.
const maxHeat = live.MaxTopN

// encode returns the form in which a part is stored: the total, how many are
// allowed, the length of the hot set, that, and the heat as another.
func (p part) encode(app string) ([]byte, error) {
	hot, err := (&wire.HotSet{App: app, At: p.at, Keys: p.hot}).MarshalBinary()
	if err != nil {
		return nil, err
	}
	data := binary.AppendUvarint(nil, p.total)
	data = binary.AppendUvarint(data, uint64(p.allowed))
	data = binary.AppendUvarint(data, uint64(len(hot)))
	return (&wire.HotSet{App: app, At: p.at, Keys: p.heat}).AppendBinary(append(data, hot...))
}

var errPart = errors.New("server: malformed part")

func decodePart(data []byte) (part, error) {
	var numbers [3]uint64 // the total, how many are allowed, and the length
	for i := range numbers {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			return part{}, errPart
		}
		numbers[i], data = n, data[size:]
	}
	total, allowed, n := numbers[0], numbers[1], numbers[2]
	if n > uint64(len(data)) {
		return part{}, errPart
	}
	var hot, heat wire.HotSet
	if err := hot.UnmarshalBinary(data[:n]); err != nil {
		return part{}, fmt.Errorf("%w: %w", errPart, err)
	}
	if err := heat.UnmarshalBinary(data[n:]); err != nil {
		return part{}, fmt.Errorf("%w: %w", errPart, err)
	}
	if allowed > uint64(len(hot.Keys)) {
		return part{}, errPart
	}
	return part{at: hot.At, total: total, allowed: int(allowed), hot: hot.Keys, heat: heat.Keys}, nil
}

// combined is what all servers have found of an application.
type combined struct {
	version uint64
	at      time.Time
	hot     []wire.HotKey
	heat    []wire.HotKey
	servers []ServerPart
}

// union returns the hot keys and the heat of all parts, at most topN and most
// of them: the hottest, but those that are allowed first. Counts of a key that
// several parts have are added. All servers come to the same.
func union(parts map[string]part, topN, most int) (hot, heat []wire.HotKey) {
	first := make(map[string]bool)
	for _, p := range parts {
		for _, k := range p.hot[:p.allowed] {
			first[k.Key] = true
		}
	}
	compare := func(a, b wire.HotKey) int {
		switch {
		case a.Count > b.Count:
			return -1
		case a.Count < b.Count:
			return 1
		}
		return strings.Compare(a.Key, b.Key)
	}
	hots, heats := make(map[string]wire.HotKey), make(map[string]wire.HotKey)
	for _, p := range parts {
		merge(hots, p.hot)
		merge(heats, p.heat)
	}
	hot = slices.SortedFunc(maps.Values(hots), func(a, b wire.HotKey) int {
		if first[a.Key] != first[b.Key] {
			if first[a.Key] {
				return -1
			}
			return 1
		}
		return compare(a, b)
	})
	hot = hot[:min(len(hot), topN)]
	slices.SortFunc(hot, compare)
	heat = slices.SortedFunc(maps.Values(heats), compare)
	return hot, heat[:min(len(heat), most)]
}

func merge(into map[string]wire.HotKey, keys []wire.HotKey) {
	for _, k := range keys {
		sum := into[k.Key]
		sum.Key = k.Key
		sum.Count += min(k.Count, ^uint64(0)-sum.Count)
		sum.Rate += k.Rate
		sum.TTL = max(sum.TTL, k.TTL)
		into[k.Key] = sum
	}
}

// digest returns a text that differs between hot sets that have other keys, or
// other times to live. Counts, and so ranks, do not matter: they change always.
func digest(hot []wire.HotKey) string {
	d := xxhash.New()
	sorted := slices.SortedFunc(slices.Values(hot), func(a, b wire.HotKey) int { return strings.Compare(a.Key, b.Key) })
	var number [8]byte
	for _, k := range sorted {
		binary.LittleEndian.PutUint64(number[:], uint64(len(k.Key)))
		d.Write(number[:])
		d.WriteString(k.Key)
		binary.LittleEndian.PutUint64(number[:], uint64(k.TTL))
		d.Write(number[:])
	}
	return fmt.Sprintf("%d-%016x", len(hot), d.Sum64())
}

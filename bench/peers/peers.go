// Package peers compares the library with other Go libraries for the heaviest
// keys, on equal streams of string keys and in equal memory. It is a module of
// its own, so that nobody else downloads them.
//
//	go -C bench/peers test -v -run Accuracy
//	go -C bench/peers test -bench Update -benchtime 5000000x
//
// The first logs precision and error. The second times one update of each, in
// one pass over five million events from empty; since a benchmark's -count
// repeats it before the next begins, a run to compare by is many such commands
// in a row, summarised by benchstat.
package peers

import (
	"math"

	"github.com/go-kratos/aegis/hotkey"
	"github.com/go-kratos/aegis/topk"
	boom "github.com/tylertreat/BoomFilters"

	"github.com/heavykeeper-go/heavykeeper/bench/measure"
)

// rows of all sketches here, the number that hotkey has built in.
const rows = 4

// Aegis is the HeavyKeeper of github.com/go-kratos/aegis.
//
// What changes its results: every row is updated, so that a key takes a cell in
// all of them; the fingerprint is the very hash that places a key in row 0,
// which leaves that row few bits to tell keys apart; any key whose cell counts
// at least the smallest listed count enters the list with that count, so that a
// fingerprint collision lists a rare key as a heavy one; and a listed key whose
// cells have decayed below that count keeps an old one. Each update that gets
// as far as the list scans it: O(K).
type Aegis struct{ keeper topk.Topk }

// NewAegis returns an Aegis in about so many bytes.
func NewAegis(bytes, k int) Aegis {
	const node = 24 + 8 // bytes: a node and the pointer to it
	width := (bytes - k*node) / (8 * rows)
	return Aegis{topk.NewHeavyKeeper(uint32(k), uint32(width), rows, 1/1.08, 0)}
}

// Add counts one occurrence of key.
func (a Aegis) Add(key string) { a.keeper.Add(key, 1) }

// Top returns the listed keys.
func (a Aegis) Top() []measure.Item[string] { return items(a.keeper.List()) }

func items(list []topk.Item) []measure.Item[string] {
	out := make([]measure.Item[string], len(list))
	for i, item := range list {
		out[i] = measure.Item[string]{Key: item.Key, Count: uint64(item.Count)}
	}
	return out
}

// Hotkey is the hot-key detector of github.com/go-kratos/aegis: its HeavyKeeper
// behind a mutex. It chooses its own width, 1024 times the integer part of
// ln K, and so its memory.
type Hotkey struct{ keeper *hotkey.HotKeyWithCache }

// NewHotkey returns a Hotkey for k keys.
func NewHotkey(k int) (Hotkey, error) {
	keeper, err := hotkey.NewHotkey(&hotkey.Option{HotKeyCnt: k})
	return Hotkey{keeper}, err
}

// Add counts one occurrence of key.
func (h Hotkey) Add(key string) { h.keeper.Add(key, 1) }

// Top returns the listed keys.
func (h Hotkey) Top() []measure.Item[string] { return items(h.keeper.List()) }

// Boom is the Count-Min sketch with heap of github.com/tylertreat/BoomFilters.
//
// What changes its results: counters have 64 bits, so that equal memory holds
// half of them; rows are places a + i*b of one 64-bit FNV hash, modulo the
// width, so that keys which collide in a and b collide in all rows; a key enters
// the list on a tie. It keeps the caller's slice rather than a copy: Add here
// makes one, which is timed, because reusing the slice would rewrite the list.
// Each update that gets as far as the list scans it: O(K).
type Boom struct{ top *boom.TopK }

// NewBoom returns a Boom in about so many bytes.
func NewBoom(bytes, k int) Boom {
	const element = 32 + 8 + 8 // bytes: an element, the pointer to it, and its key's text
	width := (bytes - k*element) / (8 * rows)
	// The inverse of what its constructor makes of the two arguments.
	return Boom{boom.NewTopK(math.E/(float64(width)-0.5), math.Exp(-rows+0.5), uint(k))}
}

// Add counts one occurrence of key.
func (b Boom) Add(key string) { b.top.Add([]byte(key)) }

// Top returns the listed keys, heaviest first.
func (b Boom) Top() []measure.Item[string] {
	elements := b.top.Elements()
	out := make([]measure.Item[string], len(elements))
	for i, e := range elements {
		out[len(out)-1-i] = measure.Item[string]{Key: string(e.Data), Count: e.Freq}
	}
	return out
}

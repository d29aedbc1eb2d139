package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/heavykeeper-go/heavykeeper/bench/baseline"
	"github.com/heavykeeper-go/heavykeeper/bench/measure"
	"github.com/heavykeeper-go/heavykeeper/bench/peers"
)

// library is another library's counter, or this one's, of string keys.
type library interface {
	Add(key string)
	Top() []measure.Item[string]
}

type own struct {
	baseline.Sketch[string]
	k int
}

func (o own) Top() []measure.Item[string] { return o.Sketch.Top(o.k) }

// peersSection compares libraries on string keys.
func peersSection(l *lab) (string, error) {
	const k = 100
	const hotkeyBytes = 4*4096*8 + 32*k
	t := table{header: []string{"library", "memory", "stream", "precision", "ARE", "ns/update"}}
	l.progress.begin("other libraries", 14)
	for _, skew := range []float64{0.8, 1.2} {
		w := l.zipf(skew)
		keys := words(w.keys)
		truth := measure.Count(keys, nil)
		for _, bytes := range []int{24 << 10, hotkeyBytes} {
			libraries, err := l.libraries(bytes, k, bytes == hotkeyBytes)
			if err != nil {
				return "", err
			}
			for _, lib := range libraries {
				started := time.Now()
				for _, key := range keys {
					lib.Add(key)
				}
				ns := float64(time.Since(started).Nanoseconds()) / float64(len(keys))
				a := truth.Of(lib.Top(), k)
				t.add(lib.name, fmt.Sprintf("%d KB", bytes>>10), w.name, share(a.Precision), small(a.ARE), fmt.Sprintf("%.0f", ns))
				l.progress.step()
			}
		}
	}
	return "## Other Go libraries\n\n" + peersNote + t.String(), nil
}

type named struct {
	name string
	library
}

func (l *lab) libraries(bytes, k int, withHotkey bool) ([]named, error) {
	s, err := baseline.NewSketch(baseline.Config[string]{Bytes: bytes, K: k, Seed: l.seed})
	if err != nil {
		return nil, err
	}
	libraries := []named{
		{"this one, Sketch", own{s, k}},
		{"go-kratos/aegis topk", peers.NewAegis(bytes, k)},
		{"tylertreat/BoomFilters TopK", peers.NewBoom(bytes, k)},
	}
	if withHotkey {
		h, err := peers.NewHotkey(k)
		if err != nil {
			return nil, err
		}
		libraries = append(libraries, named{"go-kratos/aegis hotkey", h})
	}
	return libraries, nil
}

// words returns keys in decimal. Equal keys share a string.
func words(keys []uint64) []string {
	known := map[uint64]string{}
	out := make([]string, len(keys))
	for i, key := range keys {
		text, ok := known[key]
		if !ok {
			text = strconv.FormatUint(key, 10)
			known[key] = text
		}
		out[i] = text
	}
	return out
}

const peersNote = `String keys, K = 100, one pass each. Memory is what grows with the size, as
above, less the keys' own text; aegis takes 9 KB more for a random source, a
channel and a table. Its hotkey chooses its own size, so the others get as much.
What is known of these libraries and changes their results is said in package
bench/peers. Not here, because no version of them could be downloaded:
segmentio/topk, migotom/heavykeeper, axiomhq/topkapi, dgryski/go-topk,
keilerkonzept/topk, apache/datasketches-go.

`

package wire

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// message is what all messages have in common.
type message interface {
	encoding.BinaryAppender
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// blank returns an empty message of a kind, nil of none.
func blank(kind Kind) message {
	switch kind {
	case KindReport:
		return new(Report)
	case KindHotSet:
		return new(HotSet)
	case KindInvalidation:
		return new(Invalidation)
	}
	return nil
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)

// good are messages that have to survive a round trip.
var good = map[string]message{
	"report": &Report{App: "shop", Node: "a-1", At: noon, Dropped: 7, Counts: []Count{
		{"item:1", 1}, {"", 0}, {"\x00", math.MaxUint32}, {"a\x00b", 2}, {"\xff\xfe", 3}}},
	"report without counts":   &Report{App: "shop", Node: "a-1", Dropped: math.MaxUint64},
	"report before 1970":      &Report{App: "s", Node: "n", At: time.Date(1, 2, 3, 4, 5, 6, 7, time.UTC)},
	"report of a large key":   &Report{App: "s", Node: "n", Counts: []Count{{strings.Repeat("k", MaxKey), 1}}},
	"written large key":       &Invalidation{App: "s", Node: "n", Keys: []string{strings.Repeat("k", 1<<20)}},
	"longest names":           &Report{App: strings.Repeat("a", MaxApp), Node: strings.Repeat("n", MaxNode)},
	"hot set":                 &HotSet{App: "shop", Version: 9, At: noon, Keys: []HotKey{{"item:1", 900, 30.5, time.Minute}, {Key: "", Count: math.MaxUint64, Rate: math.MaxFloat64, TTL: math.MaxInt64}}},
	"empty hot set":           &HotSet{App: "shop", Version: math.MaxUint64, At: noon},
	"invalidation":            &Invalidation{App: "shop", Node: "b", Seq: 12, Keys: []string{"item:1", "", "\xff"}},
	"invalidation of all":     &Invalidation{App: "A-z_0.9:", Node: "b", Seq: math.MaxUint64, All: true},
	"invalidation of nothing": &Invalidation{App: "x", Node: "\x00"},
}

func TestRoundTrip(t *testing.T) {
	for name, m := range good {
		data, err := m.MarshalBinary()
		if err != nil {
			t.Errorf("%s: MarshalBinary: %v", name, err)
			continue
		}
		again := blank(KindOf(data))
		if err := again.UnmarshalBinary(data); err != nil {
			t.Errorf("%s: UnmarshalBinary: %v", name, err)
		} else if !reflect.DeepEqual(again, m) {
			t.Errorf("%s: got %+v, want %+v", name, again, m)
		}
		appended, err := m.AppendBinary([]byte("before"))
		if err != nil || string(appended) != "before"+string(data) {
			t.Errorf("%s: AppendBinary differs from MarshalBinary, or failed: %v", name, err)
		}
	}
}

func TestDecodedKeepsNothingOfData(t *testing.T) {
	want := good["report"].(*Report)
	data, err := want.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := got.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if !reflect.DeepEqual(&got, want) {
		t.Errorf("after data was overwritten: got %+v, want %+v", got, want)
	}
}

func TestEncodingRefuses(t *testing.T) {
	ok := HotKey{Key: "k", Rate: 1}
	for name, m := range map[string]message{
		`App = ""`:           &Report{Node: "n"},
		`no '/'`:             &Report{App: "a/b", Node: "n"},
		`no '{'`:             &HotSet{App: "a{b}"},
		`no 'ÿ'`:             &Invalidation{App: "a\xff", Node: "n"},
		`1 to 128 bytes`:     &HotSet{App: strings.Repeat("a", MaxApp+1)},
		`Node = ""`:          &Report{App: "a"},
		`1 to 256 bytes`:     &Invalidation{App: "a", Node: strings.Repeat("n", MaxNode+1)},
		"Keys[1].Rate = NaN": &HotSet{App: "a", Keys: []HotKey{ok, {Rate: math.NaN()}}},
		"Keys[0].Rate = -1":  &HotSet{App: "a", Keys: []HotKey{{Rate: -1}, ok}},
		"Rate = +Inf":        &HotSet{App: "a", Keys: []HotKey{{Rate: math.Inf(1)}}},
		"Keys[0].TTL = -1ns": &HotSet{App: "a", Keys: []HotKey{{TTL: -1}}},
		"Counts[1].Key = ":   &Report{App: "a", Node: "n", Counts: []Count{{"k", 1}, {strings.Repeat("k", MaxKey+1), 1}}},
		"message too large":  &Invalidation{App: "a", Node: "n", Keys: []string{strings.Repeat("k", MaxSize)}},
	} {
		data, err := m.AppendBinary([]byte("before"))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got error %v, want one that says so", name, err)
		}
		if string(data) != "before" {
			t.Errorf("%s: got %d bytes with an error, want what was there before", name, len(data))
		}
	}
}

// bad are bytes that are no message, by what is wrong.
func bad() map[string][]byte {
	huge := binary.AppendUvarint(nil, math.MaxUint64)
	report := func(tail ...byte) []byte { return append([]byte("R\x01\x01a\x01n\x00\x00"), tail...) }
	set := func(tail ...byte) []byte { return append([]byte("H\x01\x01a\x01\x00\x00"), tail...) }
	inv := func(tail ...byte) []byte { return append([]byte("I\x01\x01a\x01n\x01"), tail...) }
	return map[string][]byte{
		"nothing":                  {},
		"one byte":                 []byte("R"),
		"no such kind":             []byte("X\x01"),
		"version 0":                []byte("R\x00\x01a\x01n\x00\x00\x00\x00"),
		"version 2":                []byte("R\x02\x01a\x01n\x00\x00\x00\x00"),
		"no app":                   []byte("R\x01\x00\x01n\x00\x00\x00\x00"),
		"no node":                  []byte("R\x01\x01a\x00\x00\x00\x00\x00"),
		"bad app":                  []byte("R\x01\x01/\x01n\x00\x00\x00\x00"),
		"app beyond the end":       []byte("R\x01\x7fa"),
		"endless number":           append([]byte("R\x01"), bytes.Repeat([]byte{0x80}, 20)...),
		"string of 2^64-1 bytes":   append([]byte("R\x01"), huge...),
		"10^9 nanoseconds":         append([]byte("R\x01\x01a\x01n\x00"), binary.AppendUvarint(nil, 1e9)...),
		"2^64-1 counts":            report(append([]byte{0}, huge...)...),
		"more counts than bytes":   report(0, 3, 0, 0, 0, 0),
		"count of 2^32":            report(append([]byte{0, 1, 0}, binary.AppendUvarint(nil, 1<<32)...)...),
		"bytes after a report":     report(0, 0, 0),
		"key of 1025 bytes":        report(append([]byte{0, 1, 0x81, 8}, make([]byte, 1026)...)...),
		"report cut short":         report(0),
		"2^64-1 hot keys":          set(huge...),
		"rate cut short":           set(1, 1, 'k', 1, 0, 0, 0, 0, 0, 0, 0),
		"rate of NaN":              append(set(1, 1, 'k', 1), append(binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN())), 0)...),
		"TTL of 2^63":              append(set(1, 1, 'k', 1, 0, 0, 0, 0, 0, 0, 0, 0), binary.AppendUvarint(nil, 1<<63)...),
		"2^64-1 keys":              inv(huge...),
		"flag of 2":                inv(0, 2),
		"no flag":                  inv(0),
		"bytes after invalidation": inv(0, 0, 0),
		"too large":                make([]byte, MaxSize+1),
	}
}

func TestDecodingRefuses(t *testing.T) {
	for name, data := range bad() {
		for _, kind := range []Kind{KindReport, KindHotSet, KindInvalidation} {
			m, before := blank(kind), good[map[Kind]string{'R': "report", 'H': "hot set", 'I': "invalidation"}[kind]]
			reflect.ValueOf(m).Elem().Set(reflect.ValueOf(before).Elem())
			if err := m.UnmarshalBinary(data); !errors.Is(err, ErrFormat) && !errors.Is(err, ErrSize) {
				t.Errorf("%s as %c: got error %v, want ErrFormat or ErrSize", name, kind, err)
			}
			if !reflect.DeepEqual(m, before) {
				t.Errorf("%s as %c: changed the receiver to %+v", name, kind, m)
			}
		}
	}
}

// TestCutShort decodes each beginning of each good message: none is one.
func TestCutShort(t *testing.T) {
	for name, m := range good {
		data, err := m.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		for n := range min(len(data), 500) {
			if err := blank(KindOf(data)).UnmarshalBinary(data[:n]); !errors.Is(err, ErrFormat) {
				t.Fatalf("%s, the first %d of %d bytes: got error %v, want ErrFormat", name, n, len(data), err)
			}
		}
	}
}

// TestDecodingAllocates checks that a small message cannot ask for much.
func TestDecodingAllocates(t *testing.T) {
	data := append([]byte("R\x01\x01a\x01n\x00\x00\x00"), binary.AppendUvarint(nil, 1<<40)...)
	var r Report
	if n := testing.AllocsPerRun(100, func() { r.UnmarshalBinary(data) }); n > 12 {
		t.Errorf("a report that says it has 2^40 counts: got %v allocations", n)
	}
	data, err := (&Report{App: "a", Node: "n", Counts: make([]Count, 1000)}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	// The text, the counts and the decoder; not one for each key.
	if n := testing.AllocsPerRun(100, func() { r.UnmarshalBinary(data) }); n > 6 {
		t.Errorf("a report of 1000 counts: got %v allocations, want at most 6", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range good {
		if data, err := m.MarshalBinary(); err == nil && len(data) < 1000 {
			f.Add(data)
		}
	}
	for _, data := range bad() {
		if len(data) < 1000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := blank(KindOf(data))
		if m == nil {
			return
		}
		if err := m.UnmarshalBinary(data); err != nil {
			if !reflect.DeepEqual(m, blank(KindOf(data))) {
				t.Fatalf("failed with %v and changed the receiver to %+v", err, m)
			}
			return
		}
		// What decodes is in range, so it encodes, and to the same message.
		again, err := m.MarshalBinary()
		if err != nil {
			t.Fatalf("decoded %+v, which does not encode: %v", m, err)
		}
		if len(again) > len(data) {
			t.Fatalf("encoded to %d bytes what was decoded from %d", len(again), len(data))
		}
		second := blank(KindOf(again))
		if err := second.UnmarshalBinary(again); err != nil || !reflect.DeepEqual(second, m) {
			t.Fatalf("second round: got %+v and error %v, want %+v", second, err, m)
		}
	})
}

func BenchmarkReport(b *testing.B) {
	r := Report{App: "shop", Node: "node-1", At: noon, Counts: make([]Count, 100)}
	for i := range r.Counts {
		r.Counts[i] = Count{"item:" + strings.Repeat("x", i%10), uint32(i)}
	}
	data, err := r.MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("op=encode", func(b *testing.B) {
		b.ReportAllocs()
		buf := data
		for b.Loop() {
			if buf, err = r.AppendBinary(buf[:0]); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(buf))/100, "bytes/count")
	})
	b.Run("op=decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := r.UnmarshalBinary(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

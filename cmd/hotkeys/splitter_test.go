package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// split returns the keys and the time of a line under some flags.
func split(t *testing.T, line string, args ...string) (keys []string, stamp string, ok bool) {
	o, err := parse(args)
	require.NoError(t, err)
	s, err := newSplitter(o)
	require.NoError(t, err)
	for range 2 { // nothing is left of the first time
		var found [][]byte
		var at []byte
		found, at, ok = s.split(nil, []byte(line))
		keys, stamp = nil, string(at)
		for _, key := range found {
			keys = append(keys, string(key))
		}
	}
	return keys, stamp, ok
}

const clfLine = `10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /a b HTTP/1.1" 200 203`

func TestSplit(t *testing.T) {
	none := []string(nil)
	for _, test := range []struct {
		name  string
		args  string // with | between them
		line  string
		keys  []string
		stamp string
		ok    bool
	}{
		{"line", "", " a  b ", []string{" a  b "}, "", true},
		{"empty line", "", "", []string{""}, "", true},
		{"field", "-f|7", clfLine, []string{"/a"}, "", true},
		{"last field", "-f|-1", clfLine, []string{"203"}, "", true},
		{"runs of blanks", "-f|2", "\t a \t b ", []string{"b"}, "", true},
		{"no such field", "-f|3", "a b ", none, "", false},
		{"no such field from the end", "-f|-3", "a b", none, "", false},
		{"separator", "-f|2|-d|,", "a,,c", []string{""}, "", true},
		{"last after separator", "-f|-1|-d|,", "a,", []string{""}, "", true},
		{"long separator", "-f|-2|-d|::", "a::b::c", []string{"b"}, "", true},
		{"all", "-all", " a b\tc ", []string{"a", "b", "c"}, "", true},
		{"all of nothing", "-all", "  ", none, "", true},
		{"all separated", "-all|-d|,", "a,,b,", []string{"a", "", "b", ""}, "", true},
		{"time of fields", "-f|1|-window|1m|-time|4|-layout|clf", clfLine, []string{"10.0.0.1"}, "[17/May/2015:10:05:03 +0000]", true},
		{"time with two blanks", "-f|-1|-window|1m|-time|1|-layout|syslog", "May  7 10:05:03 x", []string{"x"}, "May  7 10:05:03", true},
		{"time cut short", "-f|1|-window|1m|-time|4|-layout|clf", "a - - [17/May/2015:10:05:03", none, "", false},
		{"time separated", "-window|1m|-time|2|-d|,|-f|1|-layout|2006,01", "a,2026,07,b", []string{"a"}, "2026,07", true},
		{"group", `-re|"\w+ (\S+)`, clfLine, []string{"/a"}, "", true},
		{"named group", `-re|(\S+) (?P<key>\S+)`, "a b", []string{"b"}, "", true},
		{"whole match", `-re|\d+`, "a12b3", []string{"12"}, "", true},
		{"no match", `-re|x`, "a", none, "", false},
		{"group without match", `-re|a|-re|a|(b)`, "a", none, "", false},
		{"empty match", `-re|x*`, "a", []string{""}, "", true},
		{"all matches", `-re|\d+|-all`, "a12b3", []string{"12", "3"}, "", true},
		{"all of no match", `-re|\d+|-all`, "a", none, "", false},
		{"named time", `-re|(?P<at>\S+) (\S+)|-window|1m|-time|at`, "t a", []string{"a"}, "t", true},
		{"numbered time", `-re|(\S+) (\S+)|-window|1m|-time|2`, "a t", []string{"a"}, "t", true},
		{"json", "-json|a.b", `{"x":{"b":1},"a":{"b":"k"}}`, []string{"k"}, "", true},
		{"json time", "-json|a|-window|1m|-time|at", `{"at":"t","a":"k"}`, []string{"k"}, "t", true},
		{"json without time", "-json|a|-window|1m|-time|at", `{"a":"k"}`, none, "", false},
		{"monitor", "-monitor", `1.5 [0 127.0.0.1:1] "get" "k"`, []string{"k"}, "", true},
		{"monitor time", "-monitor|-window|1m|-time|1", `1.5 [0 127.0.0.1:1] "get" "k"`, []string{"k"}, "1.5", true},
		{"no monitor", "-monitor", `1.5 get k`, none, "", false},
		{"answer of monitor", "-monitor", `OK`, none, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := strings.Split(test.args, "|")
			if test.name == "group without match" {
				args = []string{"-re", "a|(b)"}
			}
			if test.args == "" {
				args = nil
			}
			keys, stamp, ok := split(t, test.line, args...)
			require.Equal(t, test.keys, keys)
			require.Equal(t, test.ok, ok)
			if ok {
				require.Equal(t, test.stamp, stamp)
			}
		})
	}
}

// FuzzFields compares fields with those of package bytes.
func FuzzFields(f *testing.F) {
	f.Add([]byte(" a b\t\tc "), []byte(","))
	f.Add([]byte("a,,b,"), []byte(","))
	f.Add([]byte("aaaa"), []byte("aa"))
	f.Fuzz(func(t *testing.T, line, separator []byte) {
		check := func(f fields, want [][]byte) {
			if f.all = true; len(want) > 100 {
				return
			}
			got, _, _ := f.split(nil, line)
			require.Equal(t, len(want), len(got))
			for i := range want {
				require.Equal(t, string(want[i]), string(got[i]))
				start, end, ok := f.find(line, i+1)
				require.True(t, ok)
				require.Equal(t, string(want[i]), string(line[start:end]))
				if len(separator) > 1 && len(f.separator) > 0 {
					continue // which may overlap itself, from the end
				}
				start, end, ok = f.find(line, i-len(want))
				require.True(t, ok)
				require.Equal(t, string(want[i]), string(line[start:end]))
			}
			for _, n := range []int{len(want) + 1, -len(want) - 1} {
				if len(separator) > 1 && len(f.separator) > 0 && n < 0 {
					continue
				}
				_, _, ok := f.find(line, n)
				require.False(t, ok, "%d", n)
			}
		}
		check(fields{}, bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' }))
		if len(separator) > 0 {
			check(fields{separator: separator}, bytes.Split(line, separator))
		}
	})
}

func TestJSONPath(t *testing.T) {
	for _, test := range []struct {
		path, text, want string
		ok               bool
	}{
		{"a", `{"a":"k"}`, "k", true},
		{"a", ` { "b" : [ 1, {"a": 2} ], "a" : "k" } `, "k", true},
		{"a", `{"a":""}`, "", true},
		{"a", `{"a":12.5e3}`, "12.5e3", true},
		{"a", `{"a":true}`, "true", true},
		{"a", `{"a":null}`, "", false},
		{"a", `{"a":[1, "x"]}`, `[1, "x"]`, true},
		{"a", `{"a":{"b":1}}`, `{"b":1}`, true},
		{"a", `{"a":nul}`, "", false},
		{"a", `{"a":"1"`, "1", true},
		{"a", `{"a":"1`, "", false},
		{"a", `{"a":`, "", false},
		{"a", `{"a"}`, "", false},
		{"a", `{"b":"a"}`, "", false},
		{"a", `{"b":{"a":1}}`, "", false},
		{"a", `"a"`, "", false},
		{"a", `a`, "", false},
		{"a", ``, "", false},
		{"a", `{"a":[1,}`, "", false},
		{"a", `{"a":"\u00e9\n\"\\"}`, "é\n\"\\", true},
		{"a", `{"a":"\q"}`, "", false},
		{"a", `{"a":"x` + "\t" + `"}`, "", false},
		{"a", `{"\u0061":"k"}`, "k", true},
		{"a", `{"b\"":1,"a":"k"}`, "k", true},
		{"a", `{"a":1,"a":2}`, "1", true},
		{"a.b.c", `{"a":{"b":{"c":"k"}}}`, "k", true},
		{"a.b", `{"a":{},"b":1}`, "", false},
		{"a.1", `{"a":["x","k"]}`, "k", true},
		{"a.2", `{"a":["x","k"]}`, "", false},
		{"a.-1", `{"a":["x","k"]}`, "", false},
		{"a.x", `{"a":["x","k"]}`, "", false},
		{"a.1", `{"a":{"1":"k"}}`, "k", true},
		{"0.a", `[{"a":"k"}]`, "k", true},
		{`a\.b`, `{"a.b":"k"}`, "k", true},
		{`a\\b`, `{"a\\b":"k"}`, "k", true},
	} {
		path, err := parsePath(test.path)
		require.NoError(t, err)
		got, ok := path.find([]byte(test.text))
		require.Equal(t, test.ok, ok, "%s in %s", test.path, test.text)
		if ok {
			require.Equal(t, test.want, string(got), "%s in %s", test.path, test.text)
		}
	}
}

// decodePath finds what jsonPath does with encoding/json.
func decodePath(text []byte, path jsonPath) (value string, ok bool) {
	if len(path) == 0 {
		var s string
		switch text = bytes.TrimSpace(text); {
		case string(text) == "null":
			return "", false
		case json.Unmarshal(text, &s) == nil:
			return s, true
		}
		return string(text), true
	}
	d := json.NewDecoder(bytes.NewReader(text))
	open, err := d.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return "", false
	}
	for i := 0; d.More(); i++ {
		name := strconv.Itoa(i)
		if open == json.Delim('{') {
			token, err := d.Token()
			if err != nil {
				return "", false
			}
			name = token.(string)
		} else if path[0] == "+"+name || path[0] == "0"+name {
			return "", false // an index in another form; not worth a model
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return "", false
		}
		if name == path[0] {
			return decodePath(value, path[1:])
		}
	}
	return "", false
}

// FuzzJSON compares values with those that encoding/json finds. Text that is
// not JSON must do no harm.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,"k\n",null,{"c":2}]},"d":true}`), "a.b.1")
	f.Add([]byte(`{"a":{"b":[1,"k\n",null,{"c":2}]},"d":true}`), "a.b.3.c")
	f.Add([]byte(`[ [ ] , "\u0061" ]`), "1")
	f.Add([]byte(`{"a\u0062":"}"}`), "ab")
	f.Fuzz(func(t *testing.T, text []byte, at string) {
		path, err := parsePath(at)
		if err != nil {
			return
		}
		got, ok := path.find(text)
		if !json.Valid(text) || !utf8.Valid(text) || !utf8.ValidString(at) {
			return
		}
		for _, name := range path {
			if strings.HasPrefix(name, "0") && name != "0" {
				return // 01 is an index to us
			}
		}
		want, wantOK := decodePath(text, path)
		require.Equal(t, wantOK, ok)
		if ok {
			require.Equal(t, want, string(got))
		}
	})
}

func TestMonitor(t *testing.T) {
	for _, test := range []struct {
		command string
		want    []string
	}{
		{`"GET" "k"`, []string{"k"}},
		{`"set" "k" "v"`, []string{"k"}},
		{`"ping"`, nil},
		{`"subscribe" "channel"`, nil},
		{`"mget" "a" "b"`, []string{"a", "b"}},
		{`"mset" "a" "1" "b" "2"`, []string{"a", "b"}},
		{`"blpop" "a" "b" "0"`, []string{"a", "b"}},
		{`"rename" "a" "b"`, []string{"a", "b"}},
		{`"bitop" "and" "a" "b"`, []string{"a", "b"}},
		{`"object" "encoding" "k"`, []string{"k"}},
		{`"object" "help"`, nil},
		{`"eval" "return 1" "2" "a" "b" "c"`, []string{"a", "b"}},
		{`"eval" "return 1" "0" "c"`, nil},
		{`"eval" "return 1" "99" "c"`, []string{"c"}},
		{`"eval" "return 1" "-1" "c"`, nil},
		{`"eval" "return 1"`, nil},
		{`"zunionstore" "z" "2" "a" "b" "weights" "1" "2"`, []string{"z", "a", "b"}},
		{`"lmpop" "1" "a" "left"`, []string{"a"}},
		{`"XREADGROUP" "group" "g" "c" "STREAMS" "a" "b" ">" ">"`, []string{"a", "b"}},
		{`"xread" "block" "0"`, nil},
		{`"module.command" "k" "v"`, []string{"k"}},
		{`"a.command.with.a.name.too.long" "k"`, []string{"k"}},
		{`"get" ""`, []string{""}},
		{`"get" "a \"b\" \\ \n\r\t\a\b\x00\xff\xZZ"`, []string{"a \"b\" \\ \n\r\t\a\b\x00\xffxZZ"}},
		{`"get" "not finis`, nil},
		{`"get"`, nil},
	} {
		got, _, ok := split(t, `1339518083.107412 [0 127.0.0.1:60866] `+test.command, "-monitor")
		require.True(t, ok, test.command)
		require.Equal(t, test.want, got, test.command)
	}
	for _, client := range []string{"[15 lua]", "[0 unix:/tmp/redis.sock]", "[0 [::1]:60866]"} {
		got, _, ok := split(t, "1.5 "+client+` "get" "] \"k\""`, "-monitor")
		require.True(t, ok, client)
		require.Equal(t, []string{`] "k"`}, got, client)
	}
	for _, line := range []string{"", "x", `"get" "k"`, `[0 lua] `, `1.5 [0 lua] "get`, `1.5 ] "get" "k"`} {
		_, _, ok := split(t, line, "-monitor")
		require.False(t, ok, "%q", line)
	}
}

// FuzzMonitor requires that no line does harm, and that what is written as
// MONITOR writes it is read back.
func FuzzMonitor(f *testing.F) {
	f.Add("a \"b\"\x00\n", []byte(`1.5 [0 lua] "xread" "streams" "a" "b" "c"`))
	f.Add("\\x", []byte(`1.5 [0 lua] "eval" "" "1`))
	f.Fuzz(func(t *testing.T, key string, line []byte) {
		m := &monitor{}
		m.split(nil, line)
		text := []byte(`1.5 [0 lua] "get" "`)
		for i := range len(key) {
			switch c := key[i]; {
			case c == '"' || c == '\\':
				text = append(text, '\\', c)
			case c == '\n':
				text = append(text, `\n`...)
			case c < ' ' || c > '~':
				text = append(text, `\x`...)
				text = append(text, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			default:
				text = append(text, c)
			}
		}
		got, _, ok := m.split(nil, append(text, '"'))
		require.True(t, ok)
		require.Equal(t, [][]byte{[]byte(key)}, append([][]byte{}, got...))
	})
}

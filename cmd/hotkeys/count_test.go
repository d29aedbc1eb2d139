package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	z.Close()
	return b.String()
}

// makeLog returns a log in the common format: Zipf-like paths, addresses of
// which one is a tenth, a second and a bit between lines.
func makeLog(lines int) string {
	r := rand.New(rand.NewPCG(1, 2))
	paths := rand.NewZipf(r, 1.1, 1, 1<<20)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var b strings.Builder
	for range lines {
		host := r.IntN(1 << 16)
		if r.IntN(10) == 0 {
			host = 7
		}
		at = at.Add(time.Duration(r.IntN(2000)) * time.Millisecond)
		fmt.Fprintf(&b, "10.0.%d.%d - - [%s] \"GET /page/%d HTTP/1.1\" 200 %d\n",
			host>>8, host&0xff, at.Format("02/Jan/2006:15:04:05 -0700"), paths.Uint64(), r.IntN(1e5))
	}
	return b.String()
}

// exactCounts counts the n-th blank-separated field of each line.
func exactCounts(text string, n int) map[string]uint64 {
	counts := map[string]uint64{}
	for line := range strings.Lines(text) {
		counts[strings.Fields(line)[n-1]]++
	}
	return counts
}

// heaviest returns the k heaviest keys in order.
func heaviest(counts map[string]uint64, k int) []string {
	var keys []string
	for key := range counts {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if counts[a] != counts[b] {
			return int(counts[b]) - int(counts[a])
		}
		return strings.Compare(a, b)
	})
	return keys[:min(k, len(keys))]
}

// Scripts: what the command says for some arguments, input and files.
func TestScripts(t *testing.T) {
	inFolder(t, map[string]string{
		"log":     "b\na\nb\n",
		"more":    "a\nc\na", // without an end
		"log.gz":  gzipped("b\n"),
		"packed":  gzipped("a\n") + gzipped("a\n"),
		"cut.gz":  gzipped("a\nb\nc")[:28],
		"bad.gz":  "\x1f\x8bxxxxxxxxxxxx",
		"-x":      "x\n",
		"crlf":    "a\r\na\nb\r",
		"fields":  "a,1\nb,2\na,3\nnone\n",
		"unsafe":  "\x1b[2Jred\n\xff\nback\\slash\n\u009b5m\nspa ce\né\n",
		"json":    `{"a":{"b":"k"}}` + "\n" + `{"a":{"b":"k"}}` + "\n" + `{"a":1}` + "\n",
		"monitor": "OK\n" + `1.0 [0 127.0.0.1:1] "mget" "a" "b"` + "\n" + `2.0 [0 127.0.0.1:1] "ping"` + "\n" + `3.0 [0 lua] "GET" "a"` + "\n",
		"empty":   "",
		"words":   "to be or not to be\n",
	})
	require.NoError(t, os.Mkdir("folder", 0o777))
	for _, test := range []struct {
		args, stdin    string
		stdout, stderr string // of which stderr need only contain that
		status         int
	}{
		{args: "", stdin: "a\n", stdout: "COUNT  ERROR    SHARE  KEY\n    1      0  100.00%  a\n"},
		{args: "", stdin: "", stdout: ""},
		{args: "empty", stdout: ""},
		{args: "-o csv", stdin: "", stdout: "rank,key,count,lower,upper,share\n"},
		{args: "-o json", stdin: "", stdout: `{"lines":0,"total":0,"exact":true,"keys":[]}` + "\n"},
		{args: "-o csv -window 30s -time 1", stdin: "", stdout: "time,rank,key,count,lower,upper,rate_per_second\n"},
		{args: "-o csv -window 30s", stdin: "", stdout: "time,rank,key,count,lower,upper,rate_per_second\n"},
		{args: "-o json -window 30s -time 1", stdin: "", stdout: `{"lines":0,"keys":[]}` + "\n"},
		{args: "-window 30s -time 1", stdin: "", stdout: ""},
		{args: "-o csv log", stdout: "rank,key,count,lower,upper,share\n1,b,2,2,2,0.666667\n2,a,1,1,1,0.333333\n"},
		{args: "log more -o csv -k 1", stdout: "rank,key,count,lower,upper,share\n1,a,3,3,3,0.5\n"},
		{args: "-o csv -k 1 - more", stdin: "c\nc", stdout: "rank,key,count,lower,upper,share\n1,c,3,3,3,0.6\n"},
		{args: "-o csv -k 1 log.gz packed", stdout: "rank,key,count,lower,upper,share\n1,a,2,2,2,0.666667\n"},
		{args: "-o csv -k 1", stdin: gzipped("z\nz\n"), stdout: "rank,key,count,lower,upper,share\n1,z,2,2,2,1\n"},
		{args: "-o csv -k 1 -- -x", stdout: "rank,key,count,lower,upper,share\n1,x,1,1,1,1\n"},
		{args: "-o csv crlf", stdout: "rank,key,count,lower,upper,share\n1,a,2,2,2,0.666667\n2,b,1,1,1,0.333333\n"},
		{args: "-o csv -d , -f 1 fields -k 1", stdout: "rank,key,count,lower,upper,share\n1,a,2,2,2,0.5\n"},
		{args: "-o csv -d , -f 2 -k 1 fields", stdout: "rank,key,count,lower,upper,share\n1,1,1,1,1,0.333333\n",
			stderr: "hotkeys: lines of 4 without a key, or a time, where it should be: 1\n"},
		{args: "-o csv -d , -f 2 -k 1 fields -q", stdout: "rank,key,count,lower,upper,share\n1,1,1,1,1,0.333333\n"},
		{args: "-o csv -json a.b json", stdout: "rank,key,count,lower,upper,share\n1,k,2,2,2,1\n", stderr: "lines of 3 without a key, or a time, where it should be: 1\n"},
		{args: "-o csv -monitor monitor", stdout: "rank,key,count,lower,upper,share\n1,a,2,2,2,0.666667\n2,b,1,1,1,0.333333\n"},
		{args: "-o csv -re ^(.)e -q json monitor words", stdout: "rank,key,count,lower,upper,share\n"},
		{args: "-o csv -all -k 2 words", stdout: "rank,key,count,lower,upper,share\n1,be,2,2,2,0.333333\n2,to,2,2,2,0.333333\n"},
		{args: "-o csv -all -re o. -k 1 words", stdout: "rank,key,count,lower,upper,share\n1,o ,2,2,2,0.5\n"},
		{args: "-o csv nothing log -k 1", stdout: "rank,key,count,lower,upper,share\n1,b,2,2,2,0.666667\n",
			stderr: "hotkeys: open nothing: no such file", status: 1},
		{args: "-o csv folder log -k 1", stdout: "rank,key,count,lower,upper,share\n1,b,2,2,2,0.666667\n",
			stderr: "hotkeys: read folder: is a directory", status: 1},
		{args: "-o csv -k 1 bad.gz log", stdout: "rank,key,count,lower,upper,share\n1,b,2,2,2,0.666667\n",
			stderr: "hotkeys: bad.gz: gzip", status: 1},
		{args: "-o csv cut.gz", stdout: "rank,key,count,lower,upper,share\n1,a,1,1,1,0.5\n2,b,1,1,1,0.5\n",
			stderr: "hotkeys: cut.gz: unexpected EOF", status: 1},
		{args: "unsafe", stdout: "COUNT  ERROR   SHARE  KEY\n" +
			"    1      0  16.67%  \\x1b[2Jred\n    1      0  16.67%  back\\\\slash\n    1      0  16.67%  spa ce\n" +
			"    1      0  16.67%  \\u009b5m\n    1      0  16.67%  é\n    1      0  16.67%  \\xff\n"},
		{args: "unsafe -o csv", stdout: "rank,key,count,lower,upper,share\n1,\x1b[2Jred,1,1,1,0.166667\n2,back\\slash,1,1,1,0.166667\n" +
			"3,spa ce,1,1,1,0.166667\n4,\u009b5m,1,1,1,0.166667\n5,é,1,1,1,0.166667\n6,\xff,1,1,1,0.166667\n"},
		{args: "-load nothing log", stderr: "hotkeys: open nothing", status: 1},
		{args: "-load log log", stderr: "hotkeys: log: heavykeeper: bad encoding", status: 1},
		{args: "merge nothing", stderr: "hotkeys: open nothing", status: 1},
		{args: "log -save no/such/folder", stdout: "COUNT  ERROR   SHARE  KEY\n    2      0  66.67%  b\n    1      0  33.33%  a\n",
			stderr: "no/such/folder", status: 1},
	} {
		t.Run(test.args, func(t *testing.T) {
			got := run(test.stdin, strings.Fields(test.args)...)
			require.Equal(t, test.stdout, got.stdout, got.stderr)
			require.Contains(t, got.stderr, test.stderr)
			require.Equal(t, test.stderr == "", got.stderr == "", got.stderr)
			require.Equal(t, test.status, got.status)
		})
	}
}

// The 50 hottest keys of a stream of many are those of an exact count, in all
// formats, and the bounds hold.
func TestAgainstExactCount(t *testing.T) {
	lines, k := 200_000, 50
	if testing.Short() {
		lines = 20_000
	}
	text := makeLog(lines)
	inFolder(t, map[string]string{"log": text})
	for _, n := range []int{1, 7} {
		exact := exactCounts(text, n)
		require.Greater(t, len(exact), 3*leastTracked)
		flags := []string{"-k", strconv.Itoa(k), "-f", strconv.Itoa(n), "log"}

		got := run("", append(flags, "-o", "csv")...)
		require.Equal(t, 0, got.status)
		rows, err := csv.NewReader(strings.NewReader(got.stdout)).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, k+1)
		right := 0
		top := heaviest(exact, k)
		for _, row := range rows[1:] {
			lower, _ := strconv.ParseUint(row[3], 10, 64)
			upper, _ := strconv.ParseUint(row[4], 10, 64)
			require.LessOrEqual(t, lower, exact[row[1]], row)
			require.GreaterOrEqual(t, upper, exact[row[1]], row)
			if exact[row[1]] >= exact[top[k-1]] {
				right++
			}
		}
		if n == 7 { // all but one of the addresses are equally frequent
			require.Equal(t, k, right)
		}
		require.Equal(t, top[0], rows[1][1])

		got = run("", append(flags, "-o", "json")...)
		var object jsonFrame
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &object))
		require.Len(t, object.Keys, k)
		require.Equal(t, uint64(lines), object.Lines)
		require.Equal(t, uint64(lines), *object.Total)
		require.False(t, *object.Exact)
		table := strings.Split(run("", flags...).stdout, "\n")
		for i, row := range rows[1:] {
			require.Equal(t, row[1], object.Keys[i].Key)
			require.Equal(t, row[2], fmt.Sprint(object.Keys[i].Count))
			fields := strings.Fields(table[i+1])
			require.Equal(t, row[1], fields[3])
			require.Equal(t, row[2], strings.ReplaceAll(fields[0], ",", ""))
		}
	}
}

// A line of just the length that is read is not cut, whatever its end.
func TestLongestLine(t *testing.T) {
	line := strings.Repeat("x", maxLine-2) + " a"
	for _, end := range []string{"\n", "\r\n", "\r", ""} {
		got := run(line+end, "-f", "-1", "-o", "csv")
		require.Equal(t, result{stdout: "rank,key,count,lower,upper,share\n1,a,1,1,1,1\n"}, got, "%q", end)
	}
}

// Keys that are far too long are cut, and lines are, and a message says so.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", maxLine+1)
	got := run(long+" a\n"+long+"\nb a\n", "-f", "1", "-o", "csv")
	require.Equal(t, fmt.Sprintf("rank,key,count,lower,upper,share\n1,%s,2,2,2,0.666667\n2,b,1,1,1,0.333333\n",
		long[:maxKey]), got.stdout)
	require.Equal(t, "hotkeys: lines of more than 262144 bytes, of which the rest was not looked at: 2\n"+
		"hotkeys: keys of more than 4096 bytes, which were cut: 2\n", got.stderr)
}

// Memory does not depend on the number of keys or the length of lines.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	const redis = `1339518083.107412 [0 127.0.0.1:60866] "MGET" "page:1" "page:2"`
	for _, test := range []struct {
		args []string
		line string
	}{
		{nil, clfLine},
		{[]string{"-f", "7"}, clfLine},
		{[]string{"-f", "-1", "-d", " "}, clfLine},
		{[]string{"-all"}, clfLine},
		{[]string{"-window", "1h", "-f", "1", "-time", "4", "-layout", "[02/Jan/2006:15:04:05 -0700]"}, clfLine},
		{[]string{"-monitor"}, redis},
		{[]string{"-window", "1h", "-monitor", "-time", "1"}, redis},
	} {
		o, err := parse(test.args)
		require.NoError(t, err)
		o.every = time.Hour
		tally, err := newTally(o)
		require.NoError(t, err)
		r, err := newReader(o, newInput(nil, nil), tally)
		require.NoError(t, err)
		line := []byte(test.line)
		allocations := testing.AllocsPerRun(1000, func() {
			require.NoError(t, r.line(t.Context(), line))
		})
		require.Zero(t, allocations, "%q", test.args)
		require.NotZero(t, r.counted, "%q", test.args)
	}
}

func TestSaveLoadMerge(t *testing.T) {
	text := makeLog(20_000)
	half := strings.Index(text[len(text)/2:], "\n") + 1 + len(text)/2
	inFolder(t, map[string]string{"all": text, "1": text[:half], "2": text[half:]})
	ok := func(args ...string) string {
		got := run("", args...)
		require.Equal(t, 0, got.status, got.stderr)
		require.Empty(t, got.stderr)
		return got.stdout
	}
	ok("-f", "7", "-save", "a", "1")
	ok("-f", "7", "-save", "b", "2", "-k", "1000")
	went := ok("-f", "7", "-load", "a", "2", "-save", "c")
	whole := ok("-f", "7", "all")
	require.Equal(t, whole, went, "to go on is as if it had never stopped")
	require.Equal(t, whole, ok("merge", "c"))
	require.Equal(t, whole, ok("merge", "a", "b", "-save", "d"))
	require.Equal(t, whole, ok("merge", "b", "a"))
	require.Equal(t, ok("merge", "a", "b", "-o", "csv", "-k", "500"), ok("merge", "-o", "csv", "-k", "500", "d"))

	info, err := os.Stat("a")
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(600_000), "the manual says how large")
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, entries, 7, "no temporary file is left")

	// A sketch is replaced as a whole or not at all.
	before, err := os.ReadFile("a")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir("folder", 0o777))
	require.Equal(t, 1, run("", "-save", "folder", "1").status)
	ok("-f", "7", "-save", "a", "1")
	after, err := os.ReadFile("a")
	require.NoError(t, err)
	require.Equal(t, before, after, "the same input, the same sketch")

	for _, flags := range [][]string{{"-seed", "1"}, {"-k", "1001"}} {
		ok(append(flags, "-f", "7", "-save", "e", "2")...)
		got := run("", "merge", "a", "e", "-save", "f")
		require.Equal(t, 1, got.status)
		require.Empty(t, got.stdout)
		require.Contains(t, got.stderr, "hotkeys: a and e: heavykeeper: cannot merge: ")
		require.NoFileExists(t, "f")
	}
	require.NoError(t, os.WriteFile("g", before[:len(before)-1], 0o666))
	require.Contains(t, run("", "merge", "a", "g").stderr, "hotkeys: g: heavykeeper: bad encoding")
}

func TestSafe(t *testing.T) {
	for key, want := range map[string]string{
		"":                        "",
		"plain key":               "plain key",
		"tab\tbell\a\x00\x7f":     `tab\tbell\a\x00\x7f`,
		"\x1b]0;title\a":          `\x1b]0;title\a`,
		"\u202egnp.exe":           `\u202egnp.exe`,
		"\xe2\x82":                `\xe2\x82`,
		`C:\x`:                    `C:\\x`,
		`"quotes"`:                `"quotes"`,
		"\U000e0001tag 日本 \ufffd": "\\U000e0001tag 日本 \ufffd",
	} {
		require.Equal(t, want, safe(key))
	}
}

// What is printed as JSON is what was meant, and safe to print.
func TestJSONIsSafe(t *testing.T) {
	key := "<\x1b\u009b\u202e\x7f\U000e0001\"\\é>"
	got := run(key+"\n\xff\n", "-o", "json").stdout
	require.Equal(t, strings.TrimSuffix(safe(got), `\n`), strings.ReplaceAll(strings.TrimSuffix(got, "\n"), `\`, `\\`))
	var object jsonFrame
	require.NoError(t, json.Unmarshal([]byte(got), &object))
	require.Equal(t, key, object.Keys[0].Key)
	require.Empty(t, object.Keys[0].Bytes)
	require.Equal(t, "/w==", object.Keys[1].Bytes)
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	columns := 80
	p := progress{
		out: &out, total: 2e9, started: time.Unix(0, 0),
		terminal: func() (size, bool) { return size{columns, 24}, true },
	}
	p.clear()
	require.Empty(t, out.String(), "nothing to clear")
	p.draw(5e8, time.Unix(10, 0))
	require.Equal(t, "\r[========                         ]  25%  500 MB of 2.0 GB  50.0 MB/s  30s left\x1b[K", out.String())
	for columns = range 100 {
		for _, read := range []int64{0, 1, 2e9, 3e9} {
			out.Reset()
			p.draw(read, time.Unix(10, 0))
			require.LessOrEqual(t, out.Len(), max(columns-1, 0)+len("\r"+clearLine), out.String())
		}
	}
	out.Reset()
	p.clear()
	require.Equal(t, "\r\x1b[K", out.String())
}

func TestInputSize(t *testing.T) {
	inFolder(t, map[string]string{"a": "12345", "b": "123"})
	stdin, err := os.Open("a")
	require.NoError(t, err)
	defer stdin.Close()
	_, err = stdin.Seek(1, 0)
	require.NoError(t, err)
	for _, test := range []struct {
		names []string
		want  int64
	}{
		{nil, 4}, {[]string{"a", "b"}, 8}, {[]string{"-", "b", "nothing"}, 7}, {[]string{"a", "."}, 0}, {[]string{"nothing"}, 0},
	} {
		n, known := newInput(test.names, stdin).size()
		require.Equal(t, test.want > 0, known, test.names)
		if known {
			require.Equal(t, test.want, n, test.names)
		}
	}
	_, known := newInput(nil, strings.NewReader("x")).size()
	require.False(t, known)
}

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkCount reports how much input the command reads in a second, from
// memory, with one processor: that takes -cpu 1.
func BenchmarkCount(b *testing.B) {
	log := makeLog(100_000)
	var object, redis strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		key := r.Uint64N(1 + r.Uint64N(1<<20))
		fmt.Fprintf(&object, `{"time":"2026-01-01T00:00:00Z","level":"info","request":{"method":"GET","path":"/page/%d"},"status":200}`+"\n", key)
		fmt.Fprintf(&redis, `1339518083.107412 [0 127.0.0.1:60866] "GET" "page:%d"`+"\n", key)
	}
	for _, test := range []struct{ name, args, input string }{
		{"line", "", log},
		{"field=1", "-f 1", log},
		{"field=7", "-f 7", log},
		{"field=-1", "-f -1", log},
		{"field=7,separator", "-d=\x20 -f 7", log},
		{"all-fields", "-all", log},
		{"regexp", `-re "\w+.(\S+)`, log},
		{"json", "-json request.path", object.String()},
		{"monitor", "-monitor", redis.String()},
		{"gzip,field=7", "-f 7", gzipped(log)},
		{"window,field=7", "-f 7 -window 30s", log},
		{"replay,field=7", "-f 7 -window 1h -every 1000h -time 4 -layout clf", log},
	} {
		args := strings.Fields(test.args)
		if test.name == "field=7,separator" {
			args[0] = "-d= "
		}
		b.Run(test.name, func(b *testing.B) {
			b.SetBytes(int64(len(test.input)))
			if strings.HasPrefix(test.name, "gzip") {
				b.SetBytes(int64(len(log)))
			}
			var got result
			for b.Loop() {
				got = run(test.input, append(args, "-k", "3", "-q")...)
			}
			if got.status != 0 || got.stdout == "" {
				b.Fatalf("got %+v", got)
			}
		})
	}
}

// BenchmarkBeside compares the command with what one would type without it. Both
// find the ten most frequent paths of a log that cut has split, or not.
func BenchmarkBeside(b *testing.B) {
	log := makeLog(500_000)
	file := filepath.Join(b.TempDir(), "access.log")
	if err := os.WriteFile(file, []byte(log), 0o666); err != nil {
		b.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, test := range []struct{ name, script string }{
		{"of=hotkeys/key=field", `"$0" -f 7 <"$1"`},
		{"of=sort-uniq/key=field", `cut -d" " -f7 "$1" | sort | uniq -c | sort -rn | head`},
		{"of=awk/key=field", `awk '{n[$7]++} END {for (k in n) print n[k], k}' "$1" | sort -rn | head`},
		{"of=hotkeys/key=line", `"$0" <"$1"`},
		{"of=sort-uniq/key=line", `sort "$1" | uniq -c | sort -rn | head`},
	} {
		b.Run(test.name, func(b *testing.B) {
			if _, err := exec.LookPath("sort"); err != nil {
				b.Skip(err)
			}
			b.SetBytes(int64(len(log)))
			var got []byte
			for b.Loop() {
				c := exec.Command("sh", "-c", test.script, self, file)
				c.Env = append(os.Environ(), asCommand+"=1", "LC_ALL=C")
				if got, err = c.Output(); err != nil {
					b.Fatal(err)
				}
			}
			if bytes.Count(got, []byte("\n")) < 10 {
				b.Fatalf("got %s", got)
			}
		})
	}
}

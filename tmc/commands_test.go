package tmc

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
)

// split makes arguments of a line as go-redis does of a call.
func split(line string) []any {
	var args []any
	for _, word := range strings.Fields(line) {
		args = append(args, word)
	}
	return args
}

func TestWritten(t *testing.T) {
	for _, test := range []struct {
		line   string
		effect effect
		keys   string
	}{
		{"get a", passes, ""},
		{"GET a", passes, ""},
		{"mget a b", passes, ""},
		{"set a 1 ex 10", writes, "a"},
		{"SET a 1", writes, "a"},
		{"getex a ex 1", writes, "a"},
		{"getdel a", writes, "a"},
		{"expire a 10", writes, "a"},
		{"persist a", writes, "a"},
		{"hset h f v g w", writes, "h"},
		{"hgetex h ex 10 fields 1 f", writes, "h"},
		{"mset a 1 b 2", writes, "a b"},
		{"msetnx a 1 b 2 c 3", writes, "a b c"},
		{"msetex 2 a 1 b 2 ex 10", writes, "a b"},
		{"del a b c", writes, "a b c"},
		{"unlink a", writes, "a"},
		{"rename a b", writes, "a b"},
		{"copy a b replace", writes, "b"},
		{"smove a b member", writes, "a b"},
		{"lmove a b left right", writes, "a b"},
		{"blmove a b left right 0", blocks, "a b"},
		{"blpop a b 0", blocks, "a b"},
		{"bzpopmin a b c 1.5", blocks, "a b c"},
		{"lmpop 2 a b left count 10", writes, "a b"},
		{"blmpop 0 2 a b left", blocks, "a b"},
		{"zmpop 1 a min", writes, "a"},
		{"lmpop 3 a b", flushes, ""},
		{"lmpop -1 a b", flushes, ""},
		{"lmpop x a b", flushes, ""},
		{"lmpop 9223372036854775807 a b", flushes, ""},
		{"bitop and d a b", writes, "d"},
		{"sort a", writes, ""},
		{"sort a by x* get # limit 0 3 store d", writes, "d"},
		{"georadius g 1 2 3 km storedist d", writes, "d"},
		{"zunionstore d 2 a b", writes, "d"},
		{"sinterstore d a b", writes, "d"},
		{"geosearchstore d g fromlonlat 1 2 byradius 1 km", writes, "d"},
		{"eval script 2 a b arg", writes, "a b"},
		{"evalsha 0123 1 a", writes, "a"},
		{"eval script 0 arg", writes, ""},
		{"eval_ro script 1 a", passes, ""},
		{"fcall f 1 a x", writes, "a"},
		{"xreadgroup group g c count 1 streams s t > >", blocks, "s t"},
		{"xgroup create s g $", writes, "s"},
		{"migrate h 1 a 0 10", writes, "a 0 10"},
		{"flushall", flushes, ""},
		{"FLUSHDB ASYNC", flushes, ""},
		{"swapdb 0 1", flushes, ""},
		{"exec", flushes, ""},
		{"select 1", moves, ""},
		{"multi", moves, ""},
		{"watch a", passes, ""},
		{"publish c m", passes, ""},
		{"json.set a $ 1", writes, "a"},
		{"json.mset a $ 1 b $ 2", writes, "a b"},
		{"brandnew a 1 b", writes, "a 1 b"},
		{"brandnew", flushes, ""},
		{"", flushes, ""},
		{"ft.dropindex i dd", flushes, ""},
		{"brandnew a " + strings.Repeat("x", maxUnknown), flushes, "a"},
		{"set", writes, ""},
		{"rename a", writes, "a"},
		{"eval script", flushes, ""},
		{"migrate h 1 a", flushes, ""},
	} {
		args := split(test.line)
		keys, effect := written(nameOf(args), args, nil)
		if got := strings.Join(keys, " "); got != test.keys || effect != test.effect {
			t.Errorf("%.60s: got effect %d, keys %q; want %d, %q", test.line, effect, got, test.effect, test.keys)
		}
	}
}

func TestWrittenTypes(t *testing.T) {
	name := "p"
	for _, test := range []struct {
		arg  any
		want string
	}{
		{"a", "a"}, {[]byte("a\x00b"), "a\x00b"}, {&name, "p"}, {nil, ""},
		{7, "7"}, {int64(-7), "-7"}, {uint64(1<<64 - 1), "18446744073709551615"},
	} {
		if got, ok := text(test.arg); !ok || got != test.want {
			t.Errorf("text(%T): got %q, %t; want %q", test.arg, got, ok, test.want)
		}
	}
	set, flush := "SET", "FLUSHALL"
	for _, test := range []struct {
		args   []any
		effect effect
		keys   string
	}{
		{[]any{&set, "a", 1}, writes, "a"},
		{[]any{[]byte("SET"), []byte("a"), 1}, writes, "a"},
		{[]any{&flush}, flushes, ""},
		{[]any{redis.BitCount{}, "a"}, flushes, ""},
		{[]any{(*string)(nil), "a"}, flushes, ""},
	} {
		if keys, effect := written(nameOf(test.args), test.args, nil); effect != test.effect || strings.Join(keys, " ") != test.keys {
			t.Errorf("name of type %T: got effect %d, keys %q; want %d, %q", test.args[0], effect, keys, test.effect, test.keys)
		}
	}
	for _, arg := range []any{1.5, true, (*string)(nil), struct{}{}} {
		if keys, effect := written("set", []any{"set", arg, 1}, nil); effect != flushes {
			t.Errorf("set %T: got effect %d, keys %q; want %d", arg, effect, keys, flushes)
		}
	}
}

// TestCommandsOfRedis compares the table with what the Redis that is installed
// says of its own commands.
func TestCommandsOfRedis(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip(err)
	}
	ctx := t.Context()
	client := testserver.Redis(t).Client()
	infos, err := client.Command(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, info := range infos {
		c, known := commands[name]
		if !known {
			t.Errorf("%s: is not in the table", name)
			continue
		}
		write := slices.Contains(info.Flags, "write")
		switch {
		case write && c.effect == passes:
			t.Errorf("%s: is a write, and passes", name)
		case slices.Contains(info.Flags, "readonly") && c.effect != passes:
			t.Errorf("%s: is read-only, and has effect %d", name, c.effect)
		case write && slices.Contains(info.Flags, "blocking") && c.effect != blocks:
			t.Errorf("%s: is blocking, and has effect %d", name, c.effect)
		}
	}
}

// TestKeysOfRedis compares written with COMMAND GETKEYSANDFLAGS.
func TestKeysOfRedis(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip(err)
	}
	ctx := t.Context()
	client := testserver.Redis(t).Client()
	for _, line := range []string{
		"set a 1", "getex a ex 1", "mset a 1 b 2", "del a b c", "rename a b", "copy a b", "smove a b m", "lmove a b left right",
		"blpop a b 0", "bzpopmax a b 0", "lmpop 2 a b left", "blmpop 0 2 a b left", "zmpop 1 a min", "bzmpop 0 1 a min",
		"bitop and d a b", "sort a store d", "georadius g 1 2 3 km storedist d", "zunionstore d 2 a b", "zrangestore d a 0 1",
		"sinterstore d a b", "geosearchstore d g fromlonlat 1 2 byradius 1 km", "xadd s * f v", "xgroup create s g $",
		"xreadgroup group g c streams s t > >", "pfmerge d a b", "restore a 0 x", "hset h f v", "eval x 2 a b c",
		"migrate h 1 a 0 10", "migrate h 1 a 0 10 copy", "linsert l before a b", "setrange a 0 b",
	} {
		args := split(line)
		reply, err := client.Do(ctx, append([]any{"command", "getkeysandflags"}, args...)...).Slice()
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		keys, _ := written(nameOf(args), args, nil)
		for _, each := range reply {
			pair := each.([]any)
			flags := fmt.Sprint(pair[1])
			if writes := strings.Contains(flags, "RW") || strings.Contains(flags, "OW") || strings.Contains(flags, "RM"); writes && !slices.Contains(keys, pair[0].(string)) {
				t.Errorf("%s: got keys %q; want %q too, which has flags %s", line, keys, pair[0], flags)
			}
		}
	}
}

package main

import (
	"bytes"
	"strconv"
)

// monitor finds the keys of the commands that redis-cli MONITOR shows:
//
//	1339518083.107412 [0 127.0.0.1:60866] "mget" "a" "b"
type monitor struct {
	stamps  fields // of the time alone
	command redisCommand
}

func (m *monitor) split(keys [][]byte, line []byte) (_ [][]byte, stamp []byte, ok bool) {
	if string(line) == "OK" { // the answer to MONITOR itself
		return keys, nil, true
	}
	if m.stamps.time != 0 {
		if stamp, ok = m.stamps.stamp(line); !ok {
			return keys, nil, false
		}
	}
	// The client is an address or a word, and neither has brackets and a quote.
	client := bytes.Index(line, []byte(`] "`))
	if client < 0 || bytes.IndexByte(line[:client], '[') < 0 {
		return keys, nil, false
	}
	m.command.read(line[client+2:])
	return m.command.appendKeys(keys), stamp, len(m.command.arguments) > 0
}

// redisCommand is the words of a command. They share one buffer.
type redisCommand struct {
	arguments [][]byte
	buffer    []byte
}

// read takes the words of a command as MONITOR writes them: in quotes, with
// the escapes of sdscatrepr. It stops at the first that is not complete.
func (c *redisCommand) read(text []byte) {
	c.arguments = c.arguments[:0]
	c.buffer = append(c.buffer[:0], text...) // unescaped in place: never longer
	in, out := 0, 0
	for in < len(c.buffer) && c.buffer[in] == '"' {
		start := out
		in++
		for in < len(c.buffer) && c.buffer[in] != '"' {
			b, n := unescape(c.buffer[in:])
			c.buffer[out] = b
			in, out = in+n, out+1
		}
		if in >= len(c.buffer) {
			return
		}
		c.arguments = append(c.arguments, c.buffer[start:out])
		if in++; in < len(c.buffer) && c.buffer[in] == ' ' {
			in++
		}
	}
}

// unescape returns the byte that text begins with and how long it is there.
func unescape(text []byte) (b byte, n int) {
	if text[0] != '\\' || len(text) < 2 {
		return text[0], 1
	}
	switch text[1] {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'a':
		return '\a', 2
	case 'b':
		return '\b', 2
	case 'x':
		if len(text) >= 4 {
			if x, err := strconv.ParseUint(string(text[2:4]), 16, 8); err == nil {
				return byte(x), 4
			}
		}
	}
	return text[1], 2
}

// keyRange says which words of a command are keys, in the manner of Redis's
// COMMAND: from first to last, every step-th. Word 0 is the command; a last
// word below 0 counts from the end.
type keyRange struct {
	first, last, step int
	count             int // the word that says how many keys follow it, if not 0
}

// keyRanges of the commands whose only key is not the first word after them.
// None is known of a first word 0.
var keyRanges = map[string]keyRange{}

func init() {
	for _, group := range []struct {
		keys  keyRange
		names string
	}{
		{keyRange{}, "acl asking auth bgrewriteaof bgsave client cluster command config dbsize debug discard echo exec " +
			"failover flushall flushdb function hello info keys lastsave latency lolwut module monitor multi ping " +
			"psubscribe psync publish pubsub punsubscribe quit randomkey readonly readwrite replconf replicaof reset role " +
			"save scan script select shutdown slaveof slowlog spublish ssubscribe subscribe sunsubscribe swapdb sync time " +
			"unsubscribe unwatch wait waitaof"},
		{keyRange{first: 1, last: -1, step: 1}, "del exists mget pfcount pfmerge sdiff sdiffstore sinter sinterstore " +
			"sunion sunionstore touch unlink watch"},
		{keyRange{first: 1, last: -1, step: 2}, "mset msetnx"},
		{keyRange{first: 1, last: -2, step: 1}, "blpop brpop bzpopmax bzpopmin"},
		{keyRange{first: 1, last: 2, step: 1}, "blmove brpoplpush copy geosearchstore lcs lmove rename renamenx " +
			"rpoplpush smove zrangestore"},
		{keyRange{first: 2, last: -1, step: 1}, "bitop"},
		{keyRange{first: 2, last: 2, step: 1}, "memory object xgroup xinfo"},
		{keyRange{first: 3, last: 3, step: 1}, "migrate"},
		{keyRange{count: 1}, "lmpop sintercard zdiff zinter zintercard zmpop zunion"},
		{keyRange{count: 2}, "blmpop bzmpop eval eval_ro evalsha evalsha_ro fcall fcall_ro"},
		{keyRange{first: 1, last: 1, step: 1, count: 2}, "zdiffstore zinterstore zunionstore"},
	} {
		for _, name := range bytes.Fields([]byte(group.names)) {
			keyRanges[string(name)] = group.keys
		}
	}
}

// appendKeys appends the keys that the command has.
func (c *redisCommand) appendKeys(keys [][]byte) [][]byte {
	if len(c.arguments) == 0 {
		return keys
	}
	var lower [16]byte
	name := lower[:0]
	if len(c.arguments[0]) <= len(lower) {
		for _, b := range c.arguments[0] {
			if b >= 'A' && b <= 'Z' {
				b += 'a' - 'A'
			}
			name = append(name, b)
		}
	}
	if string(name) == "xread" || string(name) == "xreadgroup" {
		return c.appendStreams(keys)
	}
	r, ok := keyRanges[string(name)]
	if !ok {
		r = keyRange{first: 1, last: 1, step: 1}
	}
	if r.first > 0 {
		last := r.last
		if last < 0 {
			last += len(c.arguments)
		}
		for i := r.first; i <= min(last, len(c.arguments)-1); i += r.step {
			keys = append(keys, c.arguments[i])
		}
	}
	if r.count > 0 && r.count < len(c.arguments) {
		n, err := strconv.ParseUint(string(c.arguments[r.count]), 10, 31)
		rest := c.arguments[r.count+1:]
		if err == nil {
			keys = append(keys, rest[:min(int(n), len(rest))]...)
		}
	}
	return keys
}

// appendStreams appends the keys of XREAD and XREADGROUP: the first half of what
// follows the word STREAMS, the other half being positions.
func (c *redisCommand) appendStreams(keys [][]byte) [][]byte {
	for i, word := range c.arguments {
		if bytes.EqualFold(word, []byte("streams")) {
			rest := c.arguments[i+1:]
			return append(keys, rest[:len(rest)/2]...)
		}
	}
	return keys
}

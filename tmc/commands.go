package tmc

import (
	"strconv"
	"strings"
)

// effect is what a command does to keys, as far as copies of them matter.
type effect uint8

const (
	// passes: the command changes no key. It may read some.
	passes effect = iota

	// writes: the command may change the keys that written finds.
	writes

	// blocks: as writes, after a wait that may be long.
	blocks

	// flushes: the command may change any key.
	flushes

	// moves: the command changes what later commands of its connection mean:
	// their database, user, protocol, or when they are carried out.
	moves
)

// command is what is known of a Redis command.
type command struct {
	effect effect

	// The arguments first, first + step, ... up to last are the keys that the
	// command writes. The name is argument 0; last < 0 counts from the end,
	// -1 being the last argument. This is how COMMAND of Redis says it.
	first, last, step int

	// find does the same for commands whose arguments say where keys are.
	find func(args []any) span
}

// span is a range of arguments: first, first + step, ..., up to last.
type span struct {
	first, last, step int
	ok                bool // false: the arguments make no sense
}

var nothing = span{first: 1, last: 0, step: 1, ok: true}

// commands are the commands of Redis 8 and its modules. One that is not among
// them is taken to write whatever key an argument names: see written.
var commands = makeCommands()

func makeCommands() map[string]command {
	m := make(map[string]command, 512)
	list := func(c command, names string) {
		for name := range strings.FieldsSeq(names) {
			m[name] = c
		}
	}
	key := command{effect: writes, first: 1, last: 1, step: 1}
	list(command{effect: passes}, readers)
	list(command{effect: passes}, services)
	list(command{effect: moves}, "auth hello multi reset select quit monitor subscribe psubscribe ssubscribe")
	// DEBUG and MODULE may change anything, and so may a change of
	// primary. EXEC carries out what was sent before, by whatever means. An index
	// can be dropped with the hashes that it is of.
	list(command{effect: flushes}, "flushall flushdb swapdb replicaof slaveof failover debug exec module psync sync")
	list(command{effect: flushes}, "ft.dropindex ft.drop ft._dropindexifx ft._dropifx")
	list(key, keyWriters)
	list(key, moduleWriters)
	list(command{effect: writes, first: 1, last: 2, step: 1}, "rename renamenx smove lmove rpoplpush")
	list(command{effect: blocks, first: 1, last: 2, step: 1}, "blmove brpoplpush")
	list(command{effect: blocks, first: 1, last: -2, step: 1}, "blpop brpop bzpopmax bzpopmin")
	list(command{effect: writes, first: 1, last: -1, step: 1}, "del unlink delex")
	list(command{effect: writes, first: 1, last: -1, step: 2}, "mset msetnx")
	list(command{effect: writes, first: 1, last: -1, step: 3}, "json.mset ts.madd")
	list(command{effect: writes, first: 2, last: 2, step: 1}, "copy bitop pfdebug xgroup himport")
	list(command{effect: writes, find: numbered(1, 1)}, "lmpop zmpop")
	list(command{effect: writes, find: numbered(1, 2)}, "msetex")
	list(command{effect: blocks, find: numbered(2, 1)}, "blmpop bzmpop")
	list(command{effect: writes, find: numbered(2, 1)}, "eval evalsha fcall")
	list(command{effect: writes, find: stored}, "sort georadius georadiusbymember")
	list(command{effect: blocks, find: streams}, "xreadgroup")
	list(command{effect: writes, find: migrated}, "migrate")
	return m
}

const (
	// readers change no value: PFCOUNT and OBJECT included, which change how
	// one is held.
	readers = `dbsize keys lolwut randomkey scan eval_ro evalsha_ro fcall_ro
		sintercard zdiff zinter zintercard zunion sunioncard sdiffcard xread exists mget pfcount sdiff
		sinter sunion touch bitcount bitfield_ro bitpos digest dump expiretime geodist geohash geopos
		georadius_ro georadiusbymember_ro geosearch get getbit getrange hexists hget hgetall
		hkeys hlen hmget hrandfield hscan hstrlen hvals hexpiretime hpexpiretime hpttl httl
		lindex llen lpos lrange pexpiretime pttl scard sismember smembers smismember
		srandmember sscan strlen substr ttl type xlen xpending xrange xrevrange xinfo zcard zcount
		zlexcount zmscore zrandmember zrange zrangebylex zrangebyscore zrank zrevrange
		zrevrangebylex zrevrangebyscore zrevrank zscan zscore sort_ro lcs object memory
		vcard vdim vemb vgetattr vinfo vismember vlinks vrandmember vrange vsim
		json.get json.mget json.arrindex json.arrlen json.objkeys json.objlen json.resp json.strlen
		json.type json.debug bf.exists bf.mexists bf.info bf.card bf.scandump cf.exists cf.mexists cf.count
		cf.info cf.scandump cms.query cms.info topk.query topk.count topk.list topk.info
		tdigest.min tdigest.max tdigest.quantile tdigest.cdf tdigest.rank tdigest.revrank
		tdigest.byrank tdigest.byrevrank tdigest.trimmed_mean tdigest.info ts.get ts.info ts.range ts.revrange
		ts.mget ts.mrange ts.mrevrange ts.queryindex
		ft.search ft.aggregate ft.info ft.explain ft.profile ft.tagvals ft.sugget ft.suglen ft._list`

	// services are about the server, the connection or messages, not keys.
	services = `acl asking function bgrewriteaof bgsave client cluster command config discard echo info
		lastsave latency pfselftest ping psubscribe publish spublish pubsub punsubscribe sunsubscribe
		unsubscribe readonly readwrite replconf role save script shutdown slowlog time unwatch
		wait waitaof watch hotkeys`

	// keyWriters write their first argument.
	keyWriters = `append bitfield decr decrby expire expireat geoadd getdel getex getset hdel
		hincrby hincrbyfloat hmset hset hsetnx hsetex hgetex hgetdel hexpire hexpireat hpexpire
		hpexpireat hpersist incr incrby incrbyfloat increx linsert lpop lpush lpushx lrem lset ltrim move persist
		pexpire pexpireat pfadd pfmerge psetex restore restore-asking rpop rpush rpushx sadd
		sdiffstore set setbit setex setnx setrange sinterstore spop srem sunionstore xack xackdel xadd
		xautoclaim xclaim xdel xdelex xsetid xtrim xcfgset zadd zdiffstore zincrby zinterstore zpopmax
		zpopmin zrangestore zrem zremrangebylex zremrangebyrank zremrangebyscore zunionstore
		geosearchstore vadd vrem vsetattr`

	moduleWriters = `json.set json.merge json.del json.forget json.clear json.numincrby
		json.nummultby json.numpowby json.strappend json.toggle json.arrappend json.arrinsert json.arrpop json.arrtrim
		bf.reserve bf.add bf.madd bf.insert bf.loadchunk cf.reserve cf.add cf.addnx cf.insert
		cf.insertnx cf.del cf.loadchunk cms.initbydim cms.initbyprob cms.incrby cms.merge
		topk.reserve topk.add topk.incrby tdigest.create tdigest.reset tdigest.add tdigest.merge
		ts.create ts.alter ts.add ts.incrby ts.decrby ts.del ts.createrule ts.deleterule`
)

// numbered finds keys behind a number of them, which is argument at; each is
// followed by step - 1 others.
func numbered(at, step int) func([]any) span {
	return func(args []any) span {
		if at >= len(args) {
			return span{}
		}
		n, ok := number(args[at])
		if !ok || n < 0 || n > (len(args)-at-1)/step {
			return span{}
		}
		return span{first: at + 1, last: at + n*step, step: step, ok: true}
	}
}

// stored finds the key of the option STORE or STOREDIST.
func stored(args []any) span {
	s := nothing
	for i := 2; i+1 < len(args); i++ {
		switch word(args[i]) {
		case "store", "storedist":
			// A key of this name may be an argument before it, so the last counts,
			// and one too many is no harm.
			if !s.ok || s.last < s.first {
				s = span{first: i + 1, last: i + 1, step: 1, ok: true}
			}
			s.last = i + 1
		}
	}
	return s
}

// streams finds the keys of XREADGROUP, which changes what groups have read.
func streams(args []any) span {
	for i := 4; i < len(args); i++ {
		if word(args[i]) == "streams" {
			return span{first: i + 1, last: i + (len(args)-i-1)/2, step: 1, ok: true}
		}
	}
	return span{}
}

// migrated finds the keys that MIGRATE takes away. The keys may be its last
// arguments; options before them are taken for keys too, which is no harm.
func migrated(args []any) span {
	if len(args) < 6 {
		return span{}
	}
	return span{first: 3, last: len(args) - 1, step: 1, ok: true}
}

// maxUnknown is the number of bytes that the arguments of an unknown command
// may have, if each is to be taken for a key.
const maxUnknown = 4096

// written appends to keys those that the command may write, and returns what
// it does. If it cannot tell which keys these are, it returns flushes. The
// strings share memory with args.
func written(name string, args []any, keys []string) ([]string, effect) {
	c, known := commands[name]
	switch {
	case !known:
		return writtenByUnknown(name, args, keys)
	case c.effect == passes || c.effect == flushes || c.effect == moves:
		return keys, c.effect
	}
	s := span{first: c.first, last: c.last, step: c.step, ok: true}
	if c.find != nil {
		s = c.find(args)
	} else if s.last < 0 {
		s.last += len(args)
	}
	if !s.ok {
		// Redis will not understand it either, but if it does, this is safe.
		return keys, flushes
	}
	for i := s.first; i <= min(s.last, len(args)-1); i += s.step {
		key, ok := text(args[i])
		if !ok {
			return keys, flushes
		}
		keys = append(keys, key)
	}
	return keys, c.effect
}

// writtenByUnknown takes every argument for a key: a command of a module, or
// of a Redis to come, can write a key only that it is told of, if it keeps to
// the rules for clusters. One without a name that can be told, or without
// arguments, may be FLUSHALL, by a name that it was given by rename-command.
func writtenByUnknown(name string, args []any, keys []string) ([]string, effect) {
	if name == "" || len(args) == 1 {
		return keys, flushes
	}
	size := 0
	for _, arg := range args[1:] {
		key, ok := text(arg)
		if size += len(key); !ok || size > maxUnknown {
			return keys, flushes
		}
		keys = append(keys, key)
	}
	return keys, writes
}

// text returns an argument as go-redis sends it; ok is false if that takes
// more than a look at it.
func text(arg any) (s string, ok bool) {
	switch v := arg.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	case nil:
		return "", true
	case *string:
		if v != nil {
			return *v, true
		}
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int32:
		return strconv.FormatInt(int64(v), 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case uint32:
		return strconv.FormatUint(uint64(v), 10), true
	case uint:
		return strconv.FormatUint(uint64(v), 10), true
	}
	return "", false
}

// word returns an argument in lower case, "" if it is not a text.
func word(arg any) string {
	switch v := arg.(type) {
	case string:
		return strings.ToLower(v)
	case []byte:
		return strings.ToLower(string(v))
	}
	return ""
}

// number returns an argument that is a number of things.
func number(arg any) (n int, ok bool) {
	s, ok := text(arg)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

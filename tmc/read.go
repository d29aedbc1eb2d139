package tmc

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// want is a read of one copy: of all of a string or a hash, or of a field.
type want struct {
	cmd   redis.Cmder
	place place
	lease lease
}

// wanted returns what cmd reads; ok is false if it is not a read of kind k whose
// reply can be made here, or of a key that is not hot.
func (c *Cache) wanted(cmd redis.Cmder, k kind) (w want, ok bool) {
	args := cmd.Args()
	w = want{cmd: cmd, place: place{kind: k}}
	if w.place.key, ok = text(args[1]); !ok {
		return w, false
	}
	if k == field {
		if w.place.field, ok = text(args[2]); !ok {
			return w, false
		}
	}
	if !c.observe(w.place.key) {
		return w, false
	}
	switch cmd.(type) {
	case *redis.StringCmd:
		ok = k != fields
	case *redis.Cmd:
		ok = k != fields // of HGETALL it depends on the protocol what is in it
	case *redis.MapStringStringCmd:
		ok = k == fields
	default:
		ok = false
	}
	if !ok {
		c.counts.misses.add(1)
	}
	return w, ok
}

// read carries out GET, HGET or HGETALL.
func (c *Cache) read(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook, k kind) error {
	w, ok := c.wanted(cmd, k)
	if !ok {
		return next(ctx, cmd)
	}
	if found, ok := c.find(w.place); ok {
		return serve(cmd, w.place, found)
	}
	w.lease = c.local.lease(w.place.key)
	err := next(ctx, cmd)
	if !w.lease.valid() || err != nil && !isNil(err) {
		return err
	}
	copied, ok := c.copyOf(w.place, cmd, err)
	if !ok {
		return err
	}
	until := forever
	if !copied.absent && !c.options.IgnoreExpiry {
		asked := c.local.now()
		ttl := redis.NewIntCmd(ctx, "pttl", w.place.key)
		if next(ctx, ttl) != nil {
			c.counts.unkept.add(1)
			return err
		}
		until = expiry(asked, ttl.Val())
	}
	c.keep(w, copied, until)
	return err
}

// expiry returns the time at which a key expires, on the clock of local, if
// PTTL, sent at the time asked, has answered ms.
func expiry(asked time.Duration, ms int64) time.Duration {
	switch {
	case ms == -1:
		return forever
	case ms < 0:
		return 0 // has expired since it was read
	}
	if ms > int64(maxTTL/time.Millisecond) {
		return forever // no copy lives so long
	}
	return asked + time.Duration(ms)*time.Millisecond
}

// find returns the copy at p, or for a field what the copy of its whole hash
// says of it.
func (c *Cache) find(p place) (*copied, bool) {
	found, ok := c.local.get(p)
	if !ok && p.kind == field {
		if found, ok = c.local.get(place{key: p.key, kind: fields}); ok {
			if _, has := found.fields[p.field]; !has && !c.options.Absent {
				ok = false
			}
		}
	}
	if ok {
		c.counts.hits.add(1)
	} else {
		c.counts.misses.add(1)
	}
	return found, ok
}

// serve makes the reply to a read from a copy, and returns the error that Redis
// would have.
func serve(cmd redis.Cmder, p place, c *copied) error {
	value, some := c.text, !c.absent
	if p.kind == field && c.fields != nil {
		value, some = c.fields[p.field]
	}
	switch cmd := cmd.(type) {
	case *redis.StringCmd:
		if some {
			// Its method Bytes gives the caller the memory of the string.
			cmd.SetVal(strings.Clone(value))
		}
	case *redis.Cmd:
		if some {
			cmd.SetVal(value)
		}
	case *redis.MapStringStringCmd:
		reply := maps.Clone(c.fields)
		if reply == nil {
			reply = map[string]string{}
		}
		cmd.SetVal(reply)
		some = true // an empty hash is no error
	}
	if !some {
		cmd.SetErr(redis.Nil)
		return redis.Nil
	}
	cmd.SetErr(nil)
	return nil
}

// copyOf makes a copy of the reply to a read; ok is false if none is to be kept.
// err is nil or redis.Nil.
func (c *Cache) copyOf(p place, cmd redis.Cmder, err error) (made copied, ok bool) {
	if err != nil {
		return copied{absent: true}, c.options.Absent
	}
	switch cmd := cmd.(type) {
	case *redis.StringCmd:
		made.text = strings.Clone(cmd.Val())
	case *redis.Cmd:
		value, ok := cmd.Val().(string)
		if !ok {
			return made, false
		}
		made.text = strings.Clone(value)
	case *redis.MapStringStringCmd:
		if len(cmd.Val()) == 0 {
			return copied{absent: true}, c.options.Absent
		}
		made.fields = maps.Clone(cmd.Val())
	}
	return made, true
}

// keep keeps a copy that was read under w's lease.
func (c *Cache) keep(w want, made copied, until time.Duration) {
	ttl := c.settings.Load().ttl
	if hot := c.detector.ttl(w.place.key); hot > 0 {
		ttl = min(hot, maxTTL)
	}
	w.place.key = strings.Clone(w.place.key)
	w.place.field = strings.Clone(w.place.field)
	if c.local.put(w.place, made, w.lease, ttl, until) {
		c.counts.kept.add(1)
	} else {
		c.counts.unkept.add(1)
	}
}

// mget carries out MGET. What copies there are of hot keys is served, and Redis
// is asked for the others.
func (c *Cache) mget(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	m, ok := c.newMulti(cmd)
	if !ok {
		return next(ctx, cmd)
	}
	asked := m.rest(ctx)
	if asked != nil {
		if err := next(ctx, asked); err != nil {
			if asked != cmd {
				cmd.SetErr(err)
			}
			return err
		}
		if !m.fill(asked) {
			return nil
		}
		wants, made := m.toKeep()
		c.keepAll(ctx, wants, made)
	}
	if asked != cmd {
		m.serve()
	}
	return nil
}

// multi is an MGET that is under way.
type multi struct {
	cmd    redis.Cmder
	wants  []want
	values []any // the reply, as far as it is known
	known  []bool
}

// newMulti returns what is known of the reply to cmd; ok is false if nothing
// in it is hot.
func (c *Cache) newMulti(cmd redis.Cmder) (m *multi, ok bool) {
	args := cmd.Args()
	switch cmd.(type) {
	case *redis.SliceCmd, *redis.Cmd:
	default:
		return nil, false
	}
	for i, arg := range args[1:] {
		key, isText := text(arg)
		if !isText {
			return nil, false
		}
		if !c.observe(key) {
			continue
		}
		if m == nil {
			n := len(args) - 1
			m = &multi{cmd: cmd, wants: make([]want, n), values: make([]any, n), known: make([]bool, n)}
		}
		w := want{cmd: cmd, place: place{key: key, kind: whole}}
		if found, ok := c.find(w.place); ok {
			m.known[i] = true
			if !found.absent {
				m.values[i] = found.text
			}
			continue
		}
		w.lease = c.local.lease(key)
		m.wants[i] = w
	}
	return m, m != nil
}

// rest returns the command that asks for what is not known: that of the caller
// if nothing is, nil if everything is.
func (m *multi) rest(ctx context.Context) redis.Cmder {
	args := []any{"mget"}
	for i, known := range m.known {
		if !known {
			args = append(args, m.cmd.Args()[i+1])
		}
	}
	switch len(args) - 1 {
	case 0:
		return nil
	case len(m.known):
		return m.cmd
	}
	return redis.NewSliceCmd(ctx, args...)
}

// fill puts the reply to asked in its places. It reports whether it could.
func (m *multi) fill(asked redis.Cmder) bool {
	var reply []any
	switch cmd := asked.(type) {
	case *redis.SliceCmd:
		reply = cmd.Val()
	case *redis.Cmd:
		reply, _ = cmd.Val().([]any)
	}
	for i, known := range m.known {
		if known {
			continue
		}
		if len(reply) == 0 {
			return false
		}
		m.values[i] = reply[0]
		reply = reply[1:]
	}
	return true
}

// toKeep returns what copies can be made of: the wants, and their values.
func (m *multi) toKeep() (wants []want, made []copied) {
	for i, w := range m.wants {
		if m.known[i] || !w.lease.valid() {
			continue
		}
		// Of a key that is no string MGET says the same as of one that is absent.
		if value, ok := m.values[i].(string); ok {
			wants, made = append(wants, w), append(made, copied{text: strings.Clone(value)})
		}
	}
	return wants, made
}

// serve makes the reply.
func (m *multi) serve() {
	switch cmd := m.cmd.(type) {
	case *redis.SliceCmd:
		cmd.SetVal(m.values)
	case *redis.Cmd:
		cmd.SetVal(m.values)
	}
	m.cmd.SetErr(nil)
}

// keepAll keeps copies of several keys, whose times of expiry it asks for.
func (c *Cache) keepAll(ctx context.Context, wants []want, made []copied) {
	if len(wants) == 0 {
		return
	}
	if c.options.IgnoreExpiry {
		for i, w := range wants {
			c.keep(w, made[i], forever)
		}
		return
	}
	asked := c.local.now()
	pipe := c.client.Pipeline()
	ttls := make([]*redis.IntCmd, len(wants))
	for i, w := range wants {
		ttls[i] = redis.NewIntCmd(ctx, "pttl", w.place.key)
		_ = pipe.Process(ctx, ttls[i])
	}
	_, _ = pipe.Exec(ctx)
	for i, w := range wants {
		if ttls[i].Err() != nil {
			c.counts.unkept.add(1)
			continue
		}
		c.keep(w, made[i], expiry(asked, ttls[i].Val()))
	}
}

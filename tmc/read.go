package tmc

import (
	"context"
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
func (h *hook) read(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook, k kind) error {
	c := h.cache
	w, ok := c.wanted(cmd, k)
	if !ok {
		return next(ctx, cmd)
	}
	if found, ok := c.find(w.place); ok {
		return serve(cmd, w.place, found)
	}
	if w.lease = c.local.lease(w.place.key); !w.lease.valid() {
		return next(ctx, cmd)
	}
	var err error
	until := forever
	if c.options.IgnoreExpiry {
		err = next(ctx, cmd)
	} else if until, err = h.ask(ctx, cmd, w.place.key); until == 0 {
		return err
	}
	c.keepReply(w, err, until)
	return err
}

// ask sends a read together with a PTTL of its key, and returns the error of the
// read and when its key expires: 0 if that is not known, or if it has.
func (h *hook) ask(ctx context.Context, cmd redis.Cmder, key string) (until time.Duration, err error) {
	ttl := redis.NewIntCmd(ctx, "pttl", key)
	asked := h.cache.local.now()
	err = h.pipeline(ctx, []redis.Cmder{cmd, ttl})
	if failed := cmd.Err(); failed != nil || ttl.Err() != nil {
		err = failed // what has become of the read alone
	}
	switch {
	case isNil(err):
		until = forever // that there is nothing does not expire
	case ttl.Err() == nil:
		until = expiry(asked, ttl.Val())
	default:
		h.cache.counts.unkept.add(1)
	}
	return until, err
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
	return asked + time.Duration(ms-1)*time.Millisecond // PTTL may be up to 1 ms more than what is left
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
// would have. The reply shares no memory with the copy: Bytes of a StringCmd gives
// the caller that of the string, and Scan passes it on to UnmarshalText.
func serve(cmd redis.Cmder, p place, c *copied) error {
	value, some := c.text, !c.absent
	if p.kind == field && c.fields != nil {
		value, some = c.fields[p.field]
	}
	switch cmd := cmd.(type) {
	case *redis.StringCmd:
		cmd.SetVal(strings.Clone(value))
	case *redis.Cmd:
		cmd.SetVal(nil)
		if some {
			cmd.SetVal(value)
		}
	case *redis.MapStringStringCmd:
		cmd.SetVal(cloneFields(c.fields))
		some = true // an empty hash is no error
	}
	if !some {
		cmd.SetErr(redis.Nil)
		return redis.Nil
	}
	cmd.SetErr(nil)
	return nil
}

// cloneFields returns a map of its own, with values of its own.
func cloneFields(fields map[string]string) map[string]string {
	clone := make(map[string]string, len(fields))
	for name, value := range fields {
		clone[name] = strings.Clone(value)
	}
	return clone
}

// copyOf returns what a copy of the reply to a read has to hold, which still
// shares its memory; ok is false if none is to be kept. err is nil or redis.Nil.
func (c *Cache) copyOf(p place, cmd redis.Cmder, err error) (made copied, ok bool) {
	if err != nil {
		return copied{absent: true}, c.options.Absent
	}
	switch cmd := cmd.(type) {
	case *redis.StringCmd:
		made.text = cmd.Val()
	case *redis.Cmd:
		made.text, ok = cmd.Val().(string)
		return made, ok
	case *redis.MapStringStringCmd:
		if len(cmd.Val()) == 0 {
			return copied{absent: true}, c.options.Absent
		}
		made.fields = cmd.Val()
	}
	return made, true
}

// keep keeps a copy of made, which was read under w's lease.
func (c *Cache) keep(w want, made copied, until time.Duration) {
	ttl := c.settings.Load().ttl
	if hot := c.detector.ttl(w.place.key); hot > 0 {
		ttl = min(hot, maxTTL)
	}
	if c.local.put(w.place, made, w.lease, ttl, until) {
		c.counts.kept.add(1)
	} else {
		c.counts.unkept.add(1)
	}
}

// mget carries out MGET. What copies there are of hot keys is served, and Redis
// is asked for the others.
func (h *hook) mget(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	c := h.cache
	m, ok := c.newMulti(cmd)
	if !ok {
		return next(ctx, cmd)
	}
	asked := m.rest(ctx)
	if asked != nil {
		until, err := h.askAll(ctx, asked, m, next)
		if err != nil {
			cmd.SetErr(err)
			return err
		}
		if !m.fill(asked) {
			// Whatever answers so, let the caller see it.
			if asked != cmd {
				return next(ctx, cmd)
			}
			return nil
		}
		m.keep(c, until)
	}
	if asked != cmd {
		m.serve()
	}
	return nil
}

// askAll sends an MGET, and with it a PTTL of each key of m that there is a lease
// for. It returns when these keys expire, 0 if that is not known.
func (h *hook) askAll(ctx context.Context, cmd redis.Cmder, m *multi, next redis.ProcessHook) (until []time.Duration, err error) {
	c := h.cache
	until = make([]time.Duration, len(m.wants))
	cmds := []redis.Cmder{cmd}
	for i, w := range m.wants {
		if !w.lease.valid() {
			continue
		}
		if until[i] = forever; !c.options.IgnoreExpiry {
			cmds = append(cmds, redis.NewIntCmd(ctx, "pttl", w.place.key))
		}
	}
	if len(cmds) == 1 {
		return until, next(ctx, cmd)
	}
	asked := c.local.now()
	if c.sharded.Load() {
		// In a pipeline, a cluster does not divide an MGET among nodes.
		if err = next(ctx, cmd); err == nil {
			_ = h.pipeline(ctx, cmds[1:])
		}
	} else if err = h.pipeline(ctx, cmds); cmd.Err() != nil || firstError(cmds[1:]) != nil {
		err = cmd.Err()
	}
	ttls := cmds[1:]
	for i, w := range m.wants {
		if !w.lease.valid() {
			continue
		}
		if ttl := ttls[0].(*redis.IntCmd); ttl.Err() == nil {
			until[i] = expiry(asked, ttl.Val())
		} else {
			until[i] = 0
		}
		ttls = ttls[1:]
	}
	return until, err
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
				m.values[i] = strings.Clone(found.text)
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

// keep keeps copies of what was asked for, under the leases that there are.
func (m *multi) keep(c *Cache, until []time.Duration) {
	for i, w := range m.wants {
		// Of a key that is no string MGET says the same as of one that is absent.
		value, ok := m.values[i].(string)
		switch {
		case !w.lease.valid() || !ok:
		case until[i] == 0:
			c.counts.unkept.add(1)
		default:
			c.keep(w, copied{text: value}, until[i])
		}
	}
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

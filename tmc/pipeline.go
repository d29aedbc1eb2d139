package tmc

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipeline carries out a pipeline or a transaction. Reads of a pipeline are
// served unless it writes their keys too: while a write is under way, nothing
// of its keys is. Those of a transaction never are, as it reads all at one
// moment.
func (c *Cache) pipeline(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook, serves bool) error {
	transaction := isTransaction(cmds)
	w, moved := c.writings(cmds, transaction)
	if moved != "" && serves {
		c.stopServing(moved)
	}
	if len(w) > 0 {
		for _, each := range w {
			c.begin(each)
		}
		defer func() { // even if another hook panics
			for _, each := range w {
				c.end(each)
			}
		}()
		ctx = c.tell(ctx)
	}
	if !serves || transaction || moved != "" {
		return next(ctx, cmds)
	}
	return c.readAll(ctx, cmds, next)
}

// isTransaction reports whether cmds are what TxPipeline sends.
func isTransaction(cmds []redis.Cmder) bool {
	n := len(cmds)
	// ASKING may come before, on a node of a cluster.
	return n >= 2 && nameOf(cmds[n-1].Args()) == "exec" &&
		(nameOf(cmds[0].Args()) == "multi" || n >= 3 && nameOf(cmds[1].Args()) == "multi")
}

// writings returns what cmds write, and the name of one that changes its
// connection, if there is one.
func (c *Cache) writings(cmds []redis.Cmder, transaction bool) (all []writing, moved string) {
	for _, cmd := range cmds {
		args := cmd.Args()
		name := nameOf(args)
		if transaction && (name == "multi" || name == "exec") {
			continue
		}
		switch keys, effect := written(name, args, nil); effect {
		case passes:
		case moves:
			if !harmless(name, args) {
				moved = name
			}
		default:
			all = append(all, writing{keys: keys, effect: effect})
		}
	}
	return all, moved
}

// readAll carries out a pipeline, serving the reads that it can.
func (c *Cache) readAll(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
	var wants []want // of which copies are to be made
	var rest []redis.Cmder
	served := 0
	for i, cmd := range cmds {
		w, ok := c.wantedInPipeline(cmd)
		if ok {
			if found, ok := c.find(w.place); ok {
				if rest == nil {
					rest = append(make([]redis.Cmder, 0, len(cmds)), cmds[:i]...)
				}
				_ = serve(cmd, w.place, found)
				served++
				continue
			}
			if w.lease = c.local.lease(w.place.key); w.lease.valid() {
				wants = append(wants, w)
			}
		}
		if rest != nil {
			rest = append(rest, cmd)
		}
	}
	if served == 0 {
		rest = cmds
	}
	if len(rest) == 0 {
		return firstError(cmds)
	}
	return c.send(ctx, cmds, rest, wants, next)
}

// wantedInPipeline does what wanted does, for whatever command.
func (c *Cache) wantedInPipeline(cmd redis.Cmder) (w want, ok bool) {
	args := cmd.Args()
	switch name := nameOf(args); {
	case name == "get" && len(args) == 2:
		return c.wanted(cmd, whole)
	case name == "hget" && len(args) == 3:
		return c.wanted(cmd, field)
	case name == "hgetall" && len(args) == 2:
		return c.wanted(cmd, fields)
	}
	return w, false
}

// send sends those of cmds that were not served, and with them a PTTL for each
// want. It returns what the pipeline returns if all of cmds are sent.
func (c *Cache) send(ctx context.Context, cmds, rest []redis.Cmder, wants []want, next redis.ProcessPipelineHook) error {
	if len(wants) == 0 && len(rest) == len(cmds) {
		return next(ctx, cmds)
	}
	ttls := c.askExpiry(ctx, &rest, wants)
	asked := c.local.now()
	err := next(ctx, rest)
	for i, w := range wants {
		until := forever
		if ttls != nil {
			if ttls[i].Err() != nil {
				c.counts.unkept.add(1)
				continue
			}
			until = expiry(asked, ttls[i].Val())
		}
		c.keepReply(w, w.cmd.Err(), until)
	}
	if err == nil {
		// What was served may have been an error, that there is nothing.
		return firstError(cmds)
	}
	if first := firstError(cmds); first != nil {
		return first
	}
	if refused(ttls, err) {
		return nil
	}
	return err
}

// askExpiry appends a PTTL to rest for each want, unless expiry is ignored. It
// leaves the caller's slice as it is.
func (c *Cache) askExpiry(ctx context.Context, rest *[]redis.Cmder, wants []want) []*redis.IntCmd {
	if c.options.IgnoreExpiry || len(wants) == 0 {
		return nil
	}
	ttls := make([]*redis.IntCmd, len(wants))
	longer := append(make([]redis.Cmder, 0, len(*rest)+len(wants)), *rest...)
	for i, w := range wants {
		ttls[i] = redis.NewIntCmd(ctx, "pttl", w.place.key)
		longer = append(longer, ttls[i])
	}
	*rest = longer
	return ttls
}

// keepReply keeps a copy of a reply, whose error is err, if it can be kept.
func (c *Cache) keepReply(w want, err error, until time.Duration) {
	if err != nil && !isNil(err) {
		return
	}
	made, ok := c.copyOf(w.place, w.cmd, err)
	if !ok {
		return
	}
	if made.absent {
		until = forever
	}
	c.keep(w, made, until)
}

// refused reports whether err is that of one of ttls.
func refused(ttls []*redis.IntCmd, err error) bool {
	for _, ttl := range ttls {
		if ttl.Err() != nil && errors.Is(err, ttl.Err()) {
			return true
		}
	}
	return false
}

// firstError returns the first error of cmds, as a pipeline does.
func firstError(cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}

package tmc

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// hook is what a client is given. go-redis asks it for a function whenever it
// makes a chain of hooks: for the client, and again for each dedicated
// connection, transaction, clone and so on, without saying which. On those that
// are not the client's own a command can mean something else than it says: after
// WATCH a read must be of the moment, after SELECT it is of another database,
// after MULTI the reply is no value. So only the chains that Attach itself has
// go-redis make serve reads. All of them see writes.
type hook struct {
	cache     *Cache
	attaching atomic.Bool // go-redis is making the client's own chains

	// pipeline sends a pipeline by the client's own chain. It is set while
	// attaching, before the client uses the hook.
	pipeline redis.ProcessPipelineHook
}

// hook gives client a hook, and the nodes of a cluster or ring another, which
// sees what does not come by way of client: transactions with WATCH, and what
// is sent to the nodes by themselves.
func (c *Cache) hook(client redis.UniversalClient) error {
	var err error
	nodes := nodes{cache: c, hooked: make(map[*redis.Client]bool)}
	switch client := client.(type) {
	case *redis.ClusterClient:
		c.sharded.Store(true)
		client.OnNewNode(nodes.hook)
		err = client.ForEachShard(context.Background(), nodes.each)
	case *redis.Ring:
		c.sharded.Store(true)
		client.OnNewNode(nodes.hook)
		err = client.ForEachShard(context.Background(), nodes.each)
	}
	if err != nil {
		return err
	}
	nodes.done()
	h := &hook{cache: c}
	h.attaching.Store(true)
	client.AddHook(h)
	h.attaching.Store(false)
	return nil
}

// nodes gives the nodes of a cluster or ring their hooks, those that there are
// and those to come.
type nodes struct {
	cache *Cache

	mu     sync.Mutex
	hooked map[*redis.Client]bool // until it is done with those that there are
}

func (n *nodes) hook(node *redis.Client) {
	n.mu.Lock()
	again := n.hooked[node]
	if n.hooked != nil {
		n.hooked[node] = true
	}
	n.mu.Unlock()
	if !again {
		node.AddHook(&hook{cache: n.cache})
	}
}

func (n *nodes) each(_ context.Context, node *redis.Client) error {
	n.hook(node)
	return nil
}

// done forgets which nodes have hooks: those to come are new.
func (n *nodes) done() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hooked = nil
}

// DialHook returns next.
func (h *hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook returns what carries out single commands.
func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	c := h.cache
	if !h.attaching.Load() {
		return func(ctx context.Context, cmd redis.Cmder) error { return c.pass(ctx, cmd, next) }
	}
	return func(ctx context.Context, cmd redis.Cmder) error {
		if c.closed.Load() {
			return next(ctx, cmd)
		}
		args := cmd.Args()
		switch nameOf(args) {
		case "get":
			if len(args) == 2 {
				return h.read(ctx, cmd, next, whole)
			}
		case "mget":
			return h.mget(ctx, cmd, next)
		case "hget":
			if len(args) == 3 {
				return h.read(ctx, cmd, next, field)
			}
		case "hgetall":
			if len(args) == 2 {
				return h.read(ctx, cmd, next, fields)
			}
		}
		return c.process(ctx, cmd, next, true)
	}
}

// ProcessPipelineHook returns what carries out pipelines and transactions.
func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	c := h.cache
	serves := h.attaching.Load()
	if serves && h.pipeline == nil { // the first is that of pipelines, the second that of transactions
		h.pipeline = next
	}
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if c.closed.Load() || told(ctx) {
			return next(ctx, cmds)
		}
		return c.pipeline(ctx, cmds, next, serves)
	}
}

// pass carries out a command of a chain that does not serve.
func (c *Cache) pass(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	if c.closed.Load() || told(ctx) {
		return next(ctx, cmd)
	}
	return c.process(ctx, cmd, next, false)
}

// process carries out a command that is not served, and sees to it that what
// it writes is served no more. pooled says that its connection will be used by
// others.
func (c *Cache) process(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook, pooled bool) error {
	var room [4]string
	args := cmd.Args()
	name := nameOf(args)
	keys, effect := written(name, args, room[:0])
	switch effect {
	case passes:
		return next(ctx, cmd)
	case moves:
		if pooled && !harmless(name, args) {
			c.stopServing(name)
		}
		return next(ctx, cmd)
	}
	w := writing{keys: keys, effect: effect}
	c.begin(w)
	defer c.end(w) // even if another hook panics
	return next(c.tell(ctx), cmd)
}

// harmless reports whether a command that can change its connection does not.
func harmless(name string, args []any) bool { return name == "hello" && len(args) == 1 }

// nameOf returns the name of a command in lower case, which most have already,
// or "" if that takes more than a look at it.
func nameOf(args []any) string {
	if len(args) == 0 {
		return ""
	}
	name, _ := text(args[0])
	return strings.ToLower(name)
}

// tellKey is the key of a context's value that says that the hook of a cluster
// or ring has seen to a write, so that the node's need not.
type tellKey struct{}

func (c *Cache) tell(ctx context.Context) context.Context {
	if !c.sharded.Load() {
		return ctx
	}
	return context.WithValue(ctx, tellKey{}, true)
}

func told(ctx context.Context) bool { return ctx.Value(tellKey{}) != nil }

// isNil reports whether err is Redis's answer that there is nothing.
func isNil(err error) bool { return errors.Is(err, redis.Nil) }

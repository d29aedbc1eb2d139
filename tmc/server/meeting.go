package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// meeting is where the servers of a cluster meet: Redis.
type meeting struct {
	client redis.UniversalClient
	prefix string
	name   string        // of this server
	retain time.Duration // how long a part counts
}

func (m *meeting) key(app, name string) string { return m.prefix + ":{" + app + "}:" + name }

// exchange writes a server's part and returns, as of the same moment, a new
// version, what was noted of the latest push, and the names, ages in
// milliseconds, and parts of all servers that have one. Parts that are too old
// are removed, or too far in the future: a failover can set the clock back. ARGV
// are the server, its part, the milliseconds that parts count, and the latest
// version that the server has seen.
var exchange = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local version = time[1] * 1000000 + time[2]
local last = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') or 0, tonumber(ARGV[4]))
if version <= last then version = last + 1 end
redis.call('SET', KEYS[2], string.format('%.0f', version), 'PX', 100 * ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. ' ' .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], 2 * ARGV[3])
local reply = {string.format('%.0f', version), redis.call('GET', KEYS[3]) or ''}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local space = string.find(all[i + 1], ' ', 1, true)
  local age = space and now - tonumber(string.sub(all[i + 1], 1, space - 1))
  if not age or math.abs(age) >= tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[1], all[i])
  else
    reply[#reply + 1] = all[i]
    reply[#reply + 1] = string.format('%.0f', age)
    reply[#reply + 1] = string.sub(all[i + 1], space + 1)
  end
end
return reply`)

// outcome is what an exchange came to.
type outcome struct {
	version uint64
	pushed  string // digest of the hot set that was pushed last; "": push again
	parts   map[string]part
	servers []ServerPart // in no order
}

// exchange writes this server's part and returns those of all, with a version
// above the one that was seen.
func (m *meeting) exchange(ctx context.Context, app string, seen uint64, p part) (o outcome, err error) {
	data, err := p.encode(app)
	if err != nil {
		return o, err
	}
	reply, err := exchange.Run(ctx, m.client, []string{m.key(app, "parts"), m.key(app, "version"), m.key(app, "pushed")},
		m.name, data, m.retain.Milliseconds(), seen).StringSlice()
	if err != nil {
		return o, fmt.Errorf("server: exchanging parts of %s: %w", app, err)
	}
	if len(reply) < 2 || len(reply)%3 != 2 {
		return o, fmt.Errorf("server: exchanging parts of %s: got %d values", app, len(reply))
	}
	if o.version, err = strconv.ParseUint(reply[0], 10, 64); err != nil {
		return o, fmt.Errorf("server: exchanging parts of %s: version %q", app, reply[0])
	}
	_, o.pushed, _ = strings.Cut(reply[1], " ")
	o.parts = make(map[string]part)
	var bad []string
	for i := 2; i < len(reply); i += 3 {
		name := reply[i]
		age, _ := strconv.ParseInt(reply[i+1], 10, 64)
		if p, err := decodePart([]byte(reply[i+2])); err != nil {
			bad = append(bad, name)
		} else {
			o.parts[name] = p
			o.servers = append(o.servers, ServerPart{name, time.Duration(age) * time.Millisecond, len(p.hot)})
		}
	}
	if bad != nil {
		err = fmt.Errorf("%w of %s by %s", errPart, app, strings.Join(bad, ", "))
	}
	return o, err // the others are of use all the same
}

// setHeat replaces a sorted set, unless that was done with a greater version.
var setHeat = redis.NewScript(`
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
if tonumber(ARGV[1]) <= last then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('DEL', KEYS[1])
for i = 3, #ARGV, 2 do redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)

// setHeat writes the heat of an application's hottest keys.
func (m *meeting) setHeat(ctx context.Context, app string, c *combined) error {
	args := []any{c.version, m.retain.Milliseconds()}
	for _, k := range c.heat {
		args = append(args, k.Count, k.Key)
	}
	keys := []string{m.key(app, "heat"), m.key(app, "heat-version")}
	if err := setHeat.Run(ctx, m.client, keys, args...).Err(); err != nil {
		return fmt.Errorf("server: writing the heat of %s: %w", app, err)
	}
	return nil
}

// setPushed notes a push, for a while, unless a later one has been noted.
var setPushed = redis.NewScript(`
local last = redis.call('GET', KEYS[1])
if last and string.sub(last, 1, 20) >= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
return 1`)

// setPushed notes that a hot set was pushed, so that it is not pushed again by
// any server until refresh has passed.
func (m *meeting) setPushed(ctx context.Context, app string, c *combined, refresh time.Duration) error {
	err := setPushed.Run(ctx, m.client, []string{m.key(app, "pushed")},
		fmt.Sprintf("%020d", c.version), digest(c.hot), refresh.Milliseconds()).Err()
	if err != nil {
		return fmt.Errorf("server: noting a push of %s: %w", app, err)
	}
	return nil
}

package redisstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Times are milliseconds of Redis's clock, so that clocks of servers need not
// agree.

// join makes a server a member for a while, and returns all members.
var join = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 2 * ARGV[2])
return redis.call('ZRANGE', KEYS[1], 0, -1)`)

// claim gives up shards, and takes or keeps others that are free, for a while.
// ARGV are the server, the milliseconds, how many shards to give up, those, and
// the ones to take. It returns those that the server has, each followed by 1 if
// nobody else has had it since the server did.
var claim = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function owner(shard)
  local lease = redis.call('HGET', KEYS[1], shard)
  if not lease then return nil, true end
  local till, name = string.match(lease, '^(%d+) (.*)$')
  return name, not till or tonumber(till) <= now
end
local released = tonumber(ARGV[3])
for i = 4, 3 + released do
  if owner(ARGV[i]) == ARGV[1] then redis.call('HDEL', KEYS[1], ARGV[i]) end
end
local mine = {}
for i = 4 + released, #ARGV do
  local name, free = owner(ARGV[i])
  if free or name == ARGV[1] then
    redis.call('HSET', KEYS[1], ARGV[i], string.format('%.0f', now + ARGV[2]) .. ' ' .. ARGV[1])
    mine[#mine + 1] = tonumber(ARGV[i])
    mine[#mine + 1] = name == ARGV[1] and 1 or 0
  end
end
redis.call('PEXPIRE', KEYS[1], 2 * ARGV[2])
return mine`)

// leave ends a membership at once.
var leave = redis.NewScript(`return redis.call('ZREM', KEYS[1], ARGV[1])`)

// membership is a server's part in the group of servers.
type membership struct {
	options *Options
	until   time.Time    // when what is owned may be taken away, by our clock
	owned   map[int]bool // shards; true: opened, and not another's since
}

// renew says that the server lives, and gets it the shards that it should
// have as far as they are free. What it had and should not have is given up.
func (m *membership) renew(ctx context.Context) error {
	o, start := m.options, time.Now()
	members, err := join.Run(ctx, o.Client, []string{o.key("members")}, o.Name, o.Lease.Milliseconds()).StringSlice()
	if err != nil {
		return fmt.Errorf("redisstream: joining: %w", err)
	}
	want := assign(members, o.Name, o.Shards)
	var release []int
	for shard := range m.owned {
		if !slices.Contains(want, shard) {
			release = append(release, shard)
		}
	}
	owned, err := m.claim(ctx, release, want)
	if err != nil {
		return err
	}
	for shard, kept := range owned {
		owned[shard] = kept && m.owned[shard]
	}
	m.until, m.owned = start.Add(o.Lease), owned
	return nil
}

func (m *membership) claim(ctx context.Context, release, want []int) (map[int]bool, error) {
	o := m.options
	args := []any{o.Name, o.Lease.Milliseconds(), len(release)}
	for _, shard := range slices.Concat(release, want) {
		args = append(args, shard)
	}
	got, err := claim.Run(ctx, o.Client, []string{o.key("owners")}, args...).Int64Slice()
	if err != nil {
		return nil, fmt.Errorf("redisstream: claiming shards: %w", err)
	}
	owned := make(map[int]bool, len(got)/2)
	for pair := range slices.Chunk(got, 2) {
		owned[int(pair[0])] = pair[1] == 1
	}
	return owned, nil
}

// leave gives up all shards and the membership.
func (m *membership) leave(ctx context.Context) error {
	if _, err := m.claim(ctx, slices.Collect(maps.Keys(m.owned)), nil); err != nil {
		return err
	}
	m.owned = nil
	o := m.options
	if err := leave.Run(ctx, o.Client, []string{o.key("members")}, o.Name).Err(); err != nil {
		return fmt.Errorf("redisstream: leaving: %w", err)
	}
	return nil
}

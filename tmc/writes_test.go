package tmc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
)

// writeClient is a client with what is derived from it.
type writeClient struct {
	*redis.Client
	half, full, async, asyncFull *redis.AutoPipeliner
}

// set runs on a server without arguments that are not keys.
var setScript = redis.NewScript("return redis.call('SET', KEYS[1], ARGV[1])")

// waysToWrite set a key to a value of 8 digits, by all that go-redis has.
var waysToWrite = map[string]func(ctx context.Context, c writeClient, key, value string) error{
	"SET":    func(ctx context.Context, c writeClient, k, v string) error { return c.Set(ctx, k, v, 0).Err() },
	"SET EX": func(ctx context.Context, c writeClient, k, v string) error { return c.Set(ctx, k, v, time.Hour).Err() },
	"set as bytes": func(ctx context.Context, c writeClient, k, v string) error {
		return c.Do(ctx, []byte("Set"), []byte(k), []byte(v)).Err()
	},
	"name by pointer": func(ctx context.Context, c writeClient, k, v string) error {
		name := "SET"
		return c.Do(ctx, &name, &k, v).Err()
	},
	"GETSET": func(ctx context.Context, c writeClient, k, v string) error {
		return notNil(c.Do(ctx, "getset", k, v).Err())
	},
	"MSET": func(ctx context.Context, c writeClient, k, v string) error {
		return c.MSet(ctx, "other", 1, k, v).Err()
	},
	"SETRANGE": func(ctx context.Context, c writeClient, k, v string) error { return c.SetRange(ctx, k, 0, v).Err() },
	"BITFIELD": func(ctx context.Context, c writeClient, k, v string) error {
		args := []any{}
		for i := range v {
			args = append(args, "SET", "u8", 8*i, int(v[i]))
		}
		return c.BitField(ctx, k, args...).Err()
	},
	"EVAL": func(ctx context.Context, c writeClient, k, v string) error {
		return setScript.Eval(ctx, c, []string{k}, v).Err()
	},
	"EVALSHA": func(ctx context.Context, c writeClient, k, v string) error {
		return setScript.Run(ctx, c, []string{k}, v).Err()
	},
	"RENAME": func(ctx context.Context, c writeClient, k, v string) error {
		return errors.Join(c.Set(ctx, "from:"+k, v, 0).Err(), c.Rename(ctx, "from:"+k, k).Err())
	},
	"COPY": func(ctx context.Context, c writeClient, k, v string) error {
		return errors.Join(c.Set(ctx, "from:"+k, v, 0).Err(), c.Copy(ctx, "from:"+k, k, 0, true).Err())
	},
	"RESTORE": func(ctx context.Context, c writeClient, k, v string) error {
		err := c.Set(ctx, "from:"+k, v, 0).Err()
		return errors.Join(err, c.RestoreReplace(ctx, k, 0, c.Dump(ctx, "from:"+k).Val()).Err())
	},
	"BITOP": func(ctx context.Context, c writeClient, k, v string) error {
		return errors.Join(c.Set(ctx, "from:"+k, v, 0).Err(), c.BitOpAnd(ctx, k, "from:"+k, "from:"+k).Err())
	},
	"pipeline": func(ctx context.Context, c writeClient, k, v string) error {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, k); p.Set(ctx, k, v, 0); return nil })
		return err
	},
	"DEL and SET": func(ctx context.Context, c writeClient, k, v string) error {
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Unlink(ctx, k); p.Set(ctx, k, v, 0); return nil })
		return err
	},
	"WATCH": func(ctx context.Context, c writeClient, k, v string) error {
		return c.Watch(ctx, func(tx *redis.Tx) error {
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Set(ctx, k, v, 0); return nil })
			return err
		}, k)
	},
	"Tx": func(ctx context.Context, c writeClient, k, v string) error {
		return c.Watch(ctx, func(tx *redis.Tx) error { return tx.Set(ctx, k, v, 0).Err() })
	},
	"Conn": func(ctx context.Context, c writeClient, k, v string) error {
		conn := c.Conn()
		defer conn.Close()
		return conn.Set(ctx, k, v, 0).Err()
	},
	"MULTI on Conn": func(ctx context.Context, c writeClient, k, v string) error {
		conn := c.Conn()
		defer conn.Close()
		var err error
		for _, args := range [][]any{{"multi"}, {"set", k, v}, {"exec"}} {
			cmd := redis.NewCmd(ctx, args...)
			err = errors.Join(err, conn.Process(ctx, cmd))
		}
		return err
	},
	"AutoPipeline":            func(ctx context.Context, c writeClient, k, v string) error { return c.half.Set(ctx, k, v, 0).Err() },
	"AutoPipeline FullDuplex": func(ctx context.Context, c writeClient, k, v string) error { return c.full.Set(ctx, k, v, 0).Err() },
	"AsyncAutoPipeline FullDuplex": func(ctx context.Context, c writeClient, k, v string) error {
		return c.asyncFull.Set(ctx, k, v, 0).Err()
	},
	"AsyncAutoPipeline": func(ctx context.Context, c writeClient, k, v string) error { return c.async.Set(ctx, k, v, 0).Err() },
}

func notNil(err error) error {
	if isNil(err) {
		return nil
	}
	return err
}

// waysToRead read a key.
var waysToRead = []func(ctx context.Context, c *redis.Client, key string) (string, error){
	func(ctx context.Context, c *redis.Client, key string) (string, error) {
		return c.Get(ctx, key).Result()
	},
	func(ctx context.Context, c *redis.Client, key string) (string, error) {
		return c.Do(ctx, "GET", key).Text()
	},
	func(ctx context.Context, c *redis.Client, key string) (string, error) {
		values, err := c.MGet(ctx, "other", key).Result()
		if err != nil {
			return "", err
		}
		value, _ := values[1].(string)
		return value, nil
	},
	func(ctx context.Context, c *redis.Client, key string) (string, error) {
		cmds, _ := c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, key); p.StrLen(ctx, "other"); return nil })
		return cmds[0].(*redis.StringCmd).Result()
	},
}

// derive returns client with auto-pipelines of it and of one more client of
// cache.
func derive(t *testing.T, client *redis.Client, cache *Cache) writeClient {
	t.Helper()
	other := redis.NewClient(&redis.Options{Addr: client.Options().Addr})
	t.Cleanup(func() { other.Close() })
	if err := cache.Attach(other); err != nil {
		t.Fatal(err)
	}
	c := writeClient{Client: client}
	for _, d := range []struct {
		into **redis.AutoPipeliner
		from func(*redis.AutoPipelineOptions) (*redis.AutoPipeliner, error)
		full bool
	}{
		{&c.half, client.AutoPipelineWithOptions, false}, {&c.full, other.AutoPipelineWithOptions, true},
		{&c.async, client.AsyncAutoPipelineWithOptions, false}, {&c.asyncFull, other.AsyncAutoPipelineWithOptions, true},
	} {
		ap, err := d.from(&redis.AutoPipelineOptions{FullDuplex: d.full})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ap.Close() })
		*d.into = ap
	}
	return c
}

// TestWaysToWrite writes ever greater numbers, each key by one goroutine, in all
// ways there are, while others read them: no read that begins when a write has
// returned gets what was there before. Another node sees the last ones.
func TestWaysToWrite(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip(err)
	}
	ctx := t.Context()
	addr := testserver.Redis(t).Addr
	hub := &memory{}
	client, cache := attachTo(t, addr, Options{Channel: hub.join(0), TTL: time.Hour})
	far, farCache := attachTo(t, addr, Options{Channel: hub.join(0), TTL: time.Hour})
	waitUp(t, cache)
	waitUp(t, farCache)
	c := derive(t, client, cache)
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	const keys = 3
	var done [keys]atomic.Int64
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range keys {
		key := fmt.Sprint("key", i)
		client.Set(ctx, key, "00000000", 0)
		writers.Go(func() {
			for range rounds {
				for name, write := range waysToWrite { // in another order each time
					next := done[i].Load() + 1
					if err := write(ctx, c, key, fmt.Sprintf("%08d", next)); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					done[i].Store(next)
					if got, err := client.Get(ctx, key).Int64(); err != nil || got != next {
						t.Errorf("%s: got %d, %v after it returned; want %d", name, got, err, next)
					}
				}
			}
		})
		for r := range 2 {
			readers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), uint64(r)))
				for {
					select {
					case <-stop:
						return
					default:
					}
					read, least := random.IntN(len(waysToRead)), done[i].Load()
					value, err := waysToRead[read](ctx, client, key)
					got, _ := strconv.ParseInt(value, 10, 64)
					if err != nil || got < least {
						t.Errorf("way %d: got %q, %v; want %d at least", read, value, err, least)
					}
					_, _ = far.Get(ctx, key).Result()
				}
			})
		}
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	for i := range keys {
		key, want := fmt.Sprint("key", i), fmt.Sprintf("%08d", done[i].Load())
		for deadline := time.Now().Add(10 * time.Second); far.Get(ctx, key).Val() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: got %q on the other node, want %q", key, far.Get(ctx, key).Val(), want)
			}
		}
	}
	s := cache.Stats()
	t.Logf("%d reads, %d of them served locally, %d keys written", s.Reads, s.Hits, s.Written)
	if s.Hits < s.Reads/20 {
		t.Errorf("%d of %d reads were served locally: the test tests little", s.Hits, s.Reads)
	}
}

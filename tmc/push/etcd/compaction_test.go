package etcd_test

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/etcd"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

func dial(t *testing.T, addr string) *clientv3.Client {
	t.Helper()
	client, err := etcd.Dial("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func open(t *testing.T, options etcd.Options) *etcd.Channel {
	t.Helper()
	c, err := etcd.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestCompaction cuts a subscriber off for less than it takes to be found out,
// and compacts away what it missed: its watch cannot go on, so it is told that
// the channel was down, and reads the latest set.
func TestCompaction(t *testing.T) {
	server := testserver.Etcd(t)
	proxy := testserver.NewProxy(t, server.Addr)
	client := dial(t, server.Addr)
	near := open(t, etcd.Options{Client: client})
	far := open(t, etcd.Options{Client: dial(t, proxy.Addr), Ping: time.Hour}) // never tested
	events := make(chan string, 100)
	go far.Subscribe(t.Context(), "shop", wire.Handler{
		Up:  func(up bool) { events <- fmt.Sprint("up ", up) },
		Hot: func(s wire.HotSet) { events <- fmt.Sprint("hot ", s.Version) },
	})
	want := func(what string) {
		t.Helper()
		select {
		case got := <-events:
			if got != what {
				t.Fatalf("got %q, want %q", got, what)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("got nothing within 20 s, want %q", what)
		}
	}
	want("up true")
	proxy.Partition()
	for version := uint64(1); version <= 3; version++ {
		if err := near.PushHot(t.Context(), wire.HotSet{App: "shop", Version: version}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := client.Get(t.Context(), "/tmc/shop/hot")
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("got %v, error %v", got, err)
	}
	if _, err := client.Compact(t.Context(), got.Header.Revision); err != nil {
		t.Fatal(err)
	}
	proxy.Reset() // what was on its way is gone
	proxy.Heal()
	want("up false")
	want("up true")
	want("hot 3")
}

// TestLease checks that a stored hot set ends when nobody pushes any more, and
// not before.
func TestLease(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a lease does")
	}
	server := testserver.Etcd(t)
	client := dial(t, server.Addr)
	c := open(t, etcd.Options{Client: client, Retain: 2 * time.Second})
	stored := func() bool {
		t.Helper()
		got, err := client.Get(t.Context(), "/tmc/shop/hot")
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Kvs) == 1
	}
	for version := uint64(1); version <= 8; version++ {
		if err := c.PushHot(t.Context(), wire.HotSet{App: "shop", Version: version}); err != nil {
			t.Fatal(err)
		}
		if !stored() {
			t.Fatalf("push %d: not stored", version)
		}
		time.Sleep(500 * time.Millisecond)
	}
	for start := time.Now(); stored(); time.Sleep(100 * time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatal("still stored 20 s after the last push, with a lease of 2 s")
		}
	}
	// The lease that the channel remembers has ended.
	if err := c.PushHot(t.Context(), wire.HotSet{App: "shop", Version: 9}); err != nil || !stored() {
		t.Fatalf("push after that: error %v, or not stored", err)
	}
}

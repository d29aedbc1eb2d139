package tmc_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc"
)

func Example() {
	server, err := miniredis.Run() // stands for a Redis
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	cache, err := tmc.Attach(client, tmc.Options{
		App:   "shop",
		Alone: true, // no other process writes; without it they tell each other
		Hot: hotspot.Config[string]{
			Rate:  1000, // reads a second
			Rules: []hotspot.Rule{{Action: hotspot.Allow, Match: hotspot.Prefix, Pattern: "menu:"}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()

	// From here on the application is as it was.
	client.Set(ctx, "menu:today", "soup", 0)
	for range 1000 {
		client.Get(ctx, "menu:today")
	}
	client.Set(ctx, "menu:today", "pie", 0)
	fmt.Println(client.Get(ctx, "menu:today").Val())

	s := cache.Stats()
	fmt.Println(s.Reads, "reads,", s.Hits, "of them served locally")
	// Output:
	// pie
	// 1001 reads, 999 of them served locally
}

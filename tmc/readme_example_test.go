package tmc_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc"
)

// Example_readme is the program of README, which is compiled and not run: it
// wants a Redis at the usual address.
func Example_readme() {
	ctx := context.Background()

	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	cache, err := tmc.Attach(client, tmc.Options{App: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()

	price, err := client.Get(ctx, "item:1:price").Result() // as before
	log.Print(price, err)
}

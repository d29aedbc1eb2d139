package transport_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heavykeeper-go/heavykeeper/tmc/internal/testserver"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/redisstream"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// BenchmarkPublish publishes reports of 1000 keys of 40 bytes to a real Redis,
// and reports the memory that a part takes there.
func BenchmarkPublish(b *testing.B) {
	client := testserver.Redis(b).Client()
	p, err := redisstream.NewPublisher(redisstream.Options{Client: client})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	r := wire.Report{App: "shop", Node: "node-1", At: time.Now()}
	for i := range 1000 {
		r.Counts = append(r.Counts, wire.Count{Key: fmt.Sprintf("%040d", i), N: uint32(i)})
	}
	publish := func() {
		if err := p.Publish(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		publish()
	}
	for range 500 { // for the memory, if it was only once
		publish()
	}
	var bytes, parts int64
	for shard := range 16 {
		stream := fmt.Sprintf("tmc:{tmc}:reports:%d", shard)
		size, err := client.MemoryUsage(b.Context(), stream, 0).Result()
		if err != nil {
			b.Fatal(err)
		}
		n, err := client.XLen(b.Context(), stream).Result()
		if err != nil {
			b.Fatal(err)
		}
		bytes, parts = bytes+size, parts+n
	}
	b.ReportMetric(float64(bytes)/float64(parts), "redis-B/part")
}

package hotspot_test

import (
	"container/list"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
)

// Time in examples is that of the events, so that they need not wait.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }

func Example() {
	hot, err := hotspot.New(hotspot.Config[string]{Rate: 100}) // a second, in the last 30
	if err != nil {
		log.Fatal(err)
	}
	for second := range 12 {
		hot.ObserveAt(at(second), "product:1", 20)
		if second >= 6 {
			hot.ObserveAt(at(second), "product:2", 500)
		}
		if second%3 == 2 { // Run does this
			change := hot.ScanAt(at(second + 1))
			for _, key := range change.Entered {
				fmt.Printf("%s: %s, %.0f a second, %.0f %% of traffic\n", change.At.Format(time.TimeOnly), key.Key, key.Rate, 100*key.Share)
			}
		}
	}
	fmt.Println(hot.Hot("product:1"), hot.Hot("product:2"))
	// Output:
	// 12:00:09: product:2, 167 a second, 89 % of traffic
	// false true
}

// lru is a cache of the values used last.
type lru struct {
	most  int
	order list.List // of [2]string, the latest first
	index map[string]*list.Element
}

func (c *lru) Get(key string) (value string, ok bool) {
	e, ok := c.index[key]
	if !ok {
		return "", false
	}
	c.order.MoveToFront(e)
	return e.Value.([2]string)[1], true
}

func (c *lru) Add(key, value string) {
	if c.index == nil {
		c.index = make(map[string]*list.Element)
	}
	c.index[key] = c.order.PushFront([2]string{key, value})
	if c.order.Len() > c.most {
		c.Remove(c.order.Back().Value.([2]string)[0])
	}
}

func (c *lru) Remove(key string) {
	if e, ok := c.index[key]; ok {
		c.order.Remove(e)
		delete(c.index, key)
	}
}

// A local cache of hot keys alone: they are few, so that it can be small and
// its values short-lived, and a scan through cold keys does not empty it.
func Example_localCache() {
	hot, err := hotspot.New(hotspot.Config[string]{Threshold: 300, TopN: 10})
	if err != nil {
		log.Fatal(err)
	}
	local := lru{most: 10}
	loads := 0
	load := func(key string) string { // from Redis, say
		loads++
		return "value of " + key
	}
	get := func(t time.Time, key string) string {
		if !hot.ObserveAt(t, key, 1) {
			return load(key)
		}
		value, ok := local.Get(key)
		if !ok {
			value = load(key)
			local.Add(key, value)
		}
		return value
	}

	for second := range 75 {
		for i := range 400 {
			get(at(second), fmt.Sprintf("product:%d", second*400+i)) // a crawler
			if second >= 10 && second < 40 {
				get(at(second), "product:42") // a flash sale
			}
		}
		if second%3 == 2 {
			for _, key := range hot.ScanAt(at(second + 1)).Left {
				local.Remove(key.Key)
			}
		}
	}
	s := hot.Stats()
	fmt.Printf("%d reads, %d loads, %.0f %% served from memory\n", s.Observed, loads, 100*float64(s.Observed-uint64(loads))/float64(s.Observed))
	fmt.Println("still cached:", local.order.Len())
	// Output:
	// 42000 reads, 30801 loads, 27 % served from memory
	// still cached: 0
}

// Objects that make up much of the bytes that a CDN serves are worth a place at
// the edge. The weight of a request is its kilobytes.
func Example_cdn() {
	hot, err := hotspot.New(hotspot.Config[string]{
		Share: 0.10,
		Rules: []hotspot.Rule{
			{Name: "live", Match: hotspot.Glob, Pattern: "/live/*/now.m3u8", Action: hotspot.Allow, TTL: time.Second},
			{Name: "private", Match: hotspot.Prefix, Pattern: "/account/", Action: hotspot.Deny},
			{Name: "pictures", Match: hotspot.Suffix, Pattern: ".jpg", Share: 0.02, TTL: time.Hour},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for second := range 30 {
		hot.ObserveAt(at(second), "/film/1.mp4", 9000)
		hot.ObserveAt(at(second), "/film/2.mp4", 700)
		hot.ObserveAt(at(second), "/cover.jpg", 300)
		hot.ObserveAt(at(second), "/live/7/now.m3u8", 2)
		hot.ObserveAt(at(second), "/account/statement.pdf", 5000)
	}
	hot.ScanAt(at(30))
	for key := range hot.Set().All() {
		fmt.Printf("%-17s %4.1f %% of bytes, rule %q, keep for %v\n", key.Key, 100*key.Share, key.Rule, key.TTL)
	}
	// Output:
	// /film/1.mp4       90.0 % of bytes, rule "", keep for 0s
	// /cover.jpg         3.0 % of bytes, rule "pictures", keep for 1h0m0s
	// /live/7/now.m3u8   0.0 % of bytes, rule "live", keep for 1s
}

var (
	sqlNoise   = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/`)
	sqlLiteral = regexp.MustCompile(`'(?:[^']|'')*'|\b[0-9]+(?:\.[0-9]+)?\b`)
	sqlList    = regexp.MustCompile(`\(\s*\?(?:\s*,\s*\?)*\s*\)`)
)

// fingerprint returns what statements have in common that differ in values
// alone.
func fingerprint(statement string) string {
	s := sqlNoise.ReplaceAllString(statement, " ")
	s = sqlLiteral.ReplaceAllString(s, "?")
	s = sqlList.ReplaceAllString(s, "(?)")
	return strings.Join(strings.Fields(strings.ToLower(s)), " ")
}

// Statements that cost a database the most, whatever their values: the weight
// of one is the milliseconds it took.
func Example_slowQueries() {
	slow, err := hotspot.New(hotspot.Config[string]{
		Rate:       500, // milliseconds a second: half a processor
		EnterAfter: 2,   // scans in a row
		Rules:      []hotspot.Rule{{Name: "maintenance", Match: hotspot.Prefix, Pattern: "vacuum", Action: hotspot.Deny}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for second := range 30 {
		query := func(statement string, took time.Duration) {
			slow.ObserveAt(at(second), fingerprint(statement), uint32(took.Milliseconds()))
		}
		query(fmt.Sprintf("SELECT * FROM users WHERE id = %d", second), 2*time.Millisecond)
		query(fmt.Sprintf("SELECT name FROM orders\n  WHERE city = 'o''%d' AND id IN (%d, %d)", second, second, second+1), 400*time.Millisecond)
		query(fmt.Sprintf("select name from orders where city = '%d' and id in (1,2,3) -- retried", second), 200*time.Millisecond)
		if second == 10 {
			query("VACUUM ANALYZE orders", 20*time.Second)
		}
		if second%3 == 2 {
			for _, key := range slow.ScanAt(at(second + 1)).Entered {
				fmt.Printf("after %d s: %.0f ms/s: %s\n", second+1, key.Rate, key.Key)
			}
		}
	}
	// Output:
	// after 6 s: 600 ms/s: select name from orders where city = ? and id in (?)
}

// Clients that ask for one path too often. A hot one is turned away for a
// minute at least; the office never is.
func Example_abusiveClients() {
	type client struct {
		address netip.Addr
		path    string
	}
	abusive, err := hotspot.New(hotspot.Config[client]{
		Rate:    5,
		MinStay: time.Minute,
		Text:    func(c client) string { return c.address.String() + " " + c.path },
		Rules:   []hotspot.Rule{{Name: "office", Match: hotspot.Prefix, Pattern: "192.0.2.", Action: hotspot.Deny}},
	})
	if err != nil {
		log.Fatal(err)
	}
	bot := client{netip.MustParseAddr("203.0.113.9"), "/login"}
	office := client{netip.MustParseAddr("192.0.2.1"), "/login"}
	turnedAway := map[client]int{}
	for second := range 120 {
		for range 20 {
			for _, c := range []client{bot, office} {
				if c == bot && second >= 30 {
					continue // it has given up
				}
				if abusive.ObserveAt(at(second), c, 1) {
					turnedAway[c]++
				}
			}
		}
		abusive.ObserveAt(at(second), client{bot.address, "/"}, 1)
		if second%3 == 2 {
			change := abusive.ScanAt(at(second + 1))
			for _, c := range change.Entered {
				fmt.Printf("after %d s: block %v %s: %.0f a second\n", second+1, c.Key.address, c.Key.path, c.Rate)
			}
			for _, c := range change.Left {
				fmt.Printf("after %d s: unblock %v %s\n", second+1, c.Key.address, c.Key.path)
			}
		}
	}
	fmt.Println("turned away:", turnedAway[bot], turnedAway[office])
	// Output:
	// after 3 s: block 203.0.113.9 /login: 20 a second
	// after 63 s: unblock 203.0.113.9 /login
	// turned away: 540 0
}

// Rules can come from a file that changes: if one is bad, those before stay.
func ExampleDetector_SetRules() {
	hot, err := hotspot.New(hotspot.Config[string]{Rate: 100})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hot.SetRules([]hotspot.Rule{
		{Name: "prices", Pattern: "config:prices", Action: hotspot.Allow},
		{Name: "robots", Match: hotspot.Prefix, Pattern: "robot:", Action: hotspot.Deny},
	}))
	fmt.Println(hot.SetRules([]hotspot.Rule{
		{Name: "all", Match: hotspot.Glob, Pattern: "*", Action: hotspot.Deny},
		{Name: "carts", Match: hotspot.Regexp, Pattern: "cart:[0-9", Rate: 20},
	}))
	fmt.Println(hot.Hot("config:prices"), hot.Observe("robot:7"))
	// Output:
	// <nil>
	// hotspot: rule 2 ("carts"): Pattern = "cart:[0-9": error parsing regexp: missing closing ]: `[0-9`
	// true false
}

// A service with a detector for each of its tenants, and a page of them for
// those who run it.
func ExampleGroup() {
	tenants, err := hotspot.NewGroup(hotspot.GroupConfig[string]{
		Config: hotspot.Config[string]{Threshold: 100, TopN: 20},
		Configure: func(tenant string, c hotspot.Config[string]) (hotspot.Config[string], error) {
			if tenant == "initech" { // small, but it pays
				c.Threshold = 10
			}
			return c, nil
		},
		Max:  500,
		Idle: 10 * time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	internal := http.NewServeMux()
	internal.Handle("/debug/hot", hotspot.GroupHandler(tenants))
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a program ends it when it ends
	fmt.Println(tenants.Run(ctx, func(tenant string, change hotspot.Change[string]) {
		fmt.Println(tenant, change.Entered)
	}))

	for i, name := range []string{"acme", "globex", "initech"} {
		tenant, err := tenants.Detector(name)
		if err != nil {
			log.Fatal(err) // errors.Is(err, hotspot.ErrGroupFull): serve without
		}
		tenant.ObserveAt(at(0), "front page", []uint32{60, 120, 20}[i])
	}
	tenants.ScanAt(at(3), func(name string, change hotspot.Change[string]) {
		fmt.Println(name, len(change.Hot))
	})
	fmt.Println(tenants.Stats().Detectors, tenants.Stats().Observed)
	// Output:
	// context canceled
	// acme 0
	// globex 1
	// initech 1
	// 3 200
}

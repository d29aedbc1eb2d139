package main

import (
	"bytes"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/live/etcdkey"
	"github.com/heavykeeper-go/heavykeeper/tmc/live/rediskey"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/etcd"
	"github.com/heavykeeper-go/heavykeeper/tmc/push/redispubsub"
	"github.com/heavykeeper-go/heavykeeper/tmc/server"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/kafka"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport/redisstream"
)

// TestOperators checks that docs/operators.md has every option, field and
// metric, and no metric or flag that there is not.
func TestOperators(t *testing.T) {
	data, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	row := func(name string) {
		t.Helper()
		if !regexp.MustCompile(`(?m)^\| (\S+, )*` + regexp.QuoteMeta("`"+name+"`") + `[ ,]`).MatchString(text) {
			t.Errorf("no row of a table for %s", name)
		}
	}

	var help bytes.Buffer
	run(t.Context(), []string{"-help"}, environment, &help, &help)
	flags := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^  -(\S+)`).FindAllStringSubmatch(help.String(), -1) {
		flags["-"+match[1]] = true
		row("-" + match[1])
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `(-[a-z-]+)`").FindAllStringSubmatch(text, -1) {
		if !flags[match[1]] {
			t.Errorf("there is no option %s", match[1])
		}
	}

	fields := map[string]bool{}
	for _, options := range []any{tmc.Options{}, redispubsub.Options{}, etcd.Options{}, redisstream.Options{}, kafka.Options{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(options)) {
			if field.IsExported() {
				fields[field.Name] = true
				row(field.Name)
			}
		}
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]*)` \\|").FindAllStringSubmatch(text, -1) {
		if !fields[match[1]] {
			t.Errorf("there is no field %s", match[1])
		}
	}
	for _, fields := range []struct {
		of     any
		prefix string
	}{{live.Config{}, ""}, {live.Rule{}, ""}, {live.Cache{}, "cache."}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(fields.of)) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "cache" {
				row(fields.prefix + name)
			}
		}
	}

	metrics := map[string]bool{}
	for _, c := range collectorsOf(t) {
		descs := make(chan *prometheus.Desc, 1000)
		c.Describe(descs)
		close(descs)
		for desc := range descs {
			name := regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(desc.String())[1]
			metrics[name] = true
			row(name)
		}
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `(tmc_[a-z_]+)`").FindAllStringSubmatch(text, -1) {
		if !metrics[match[1]] {
			t.Errorf("there is no metric %s", match[1])
		}
	}
}

// collectorsOf returns the collectors of a server and of a cache.
func collectorsOf(t *testing.T) []prometheus.Collector {
	t.Helper()
	o, err := parse(nil, environment, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	p, err := connect(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	s, err := server.New(p.config)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { client.Close() })
	cache, err := tmc.Attach(client, tmc.Options{Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	return []prometheus.Collector{server.NewCollector(s), cache.Collector()}
}

// TestDefaults checks that docs/operators.md has the default of each option.
func TestDefaults(t *testing.T) {
	data, err := os.ReadFile("../../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	var help bytes.Buffer
	run(t.Context(), []string{"-help"}, environment, &help, &help)
	flags := regexp.MustCompile(`(?m)^  -(\S+).*\n(?:.*?\(default (.*)\))?`).FindAllStringSubmatch(help.String(), -1)
	if len(flags) < 30 {
		t.Fatalf("got %d flags", len(flags))
	}
	rows := regexp.MustCompile("(?m)^\\| `-(\\S+)` \\| ?`?([^|`]*?)`? \\|")
	documented := map[string]string{}
	for _, row := range rows.FindAllStringSubmatch(string(data), -1) {
		documented[row[1]] = row[2]
	}
	for _, f := range flags {
		name, want := f[1], strings.Trim(f[2], `"`)
		got := documented[name]
		if d, err := time.ParseDuration(got); err == nil && d != 0 {
			got = d.String()
		}
		switch got {
		case "false", "0", "name of the host":
			got = "" // help does not say so
		}
		if got != want {
			t.Errorf("-%s: got default %q in the table, want %q", name, got, want)
		}
	}
}

// TestOptions looks for each option where it should have arrived.
func TestOptions(t *testing.T) {
	connected := func(args string) server.Config {
		t.Helper()
		o, err := parse(strings.Fields(args), func(string) string { return "secret" }, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		p, err := connect(o, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.close)
		return p.config
	}
	c := connected("-name x -prefix p -redis h:1 -redis-user u -redis-db 3 -redis-tls -slots 5 -slot 1s -heat 7 -max-apps 8 -idle 2h -refresh 9 -config-interval 4s")
	if !strings.HasPrefix(c.Name, "x-") || c.Prefix != "p" || c.Slots != 5 || c.Slot != time.Second || c.Heat != 7 || c.MaxApps != 8 ||
		c.Idle != 2*time.Hour || c.Refresh != 9 {
		t.Errorf("got %+v, want what the options say", c)
	}
	r := c.Redis.(*redis.Client).Options()
	if r.Addr != "h:1" || r.Username != "u" || r.Password != "secret" || r.DB != 3 || r.TLSConfig == nil {
		t.Errorf("got %+v of Redis, want what the options say", r)
	}
	if want := (rediskey.Source{Client: c.Redis, Prefix: "p", Interval: 4 * time.Second}); c.Live != want {
		t.Errorf("got %+v for the configuration, want %+v", c.Live, want)
	}
	if c := connected("-redis a:1,b:2"); reflect.TypeOf(c.Redis) != reflect.TypeFor[*redis.ClusterClient]() {
		t.Errorf("got a %T of two addresses, want one of a cluster", c.Redis)
	}
	if c := connected("-config none"); c.Live != nil {
		t.Errorf("got %+v for no configuration", c.Live)
	}
	c = connected("-config etcd -config-etcd-prefix /q -etcd http://h:2,http://i:3")
	source := c.Live.(etcdkey.Source)
	if got := source.Client.Endpoints(); source.Prefix != "/q" || !slices.Equal(got, []string{"http://h:2", "http://i:3"}) {
		t.Errorf("got %+v of etcd %q, want what the options say", source, got)
	}
	c = connected("-transport kafka -kafka h:1,i:2 -kafka-topic t -kafka-group g -kafka-session 3s -kafka-tls -kafka-partitions 4 -kafka-replicas 2")
	k := c.Consumer.(topicConsumer)
	if !slices.Equal(k.options.Seeds, []string{"h:1", "i:2"}) || k.options.Topic != "t" || k.options.Group != "g" ||
		k.options.Session != 3*time.Second || len(k.options.Client) != 1 || k.partitions != 4 || k.replicas != 2 {
		t.Errorf("got %+v, want what the options say", k)
	}
}

package main

import (
	"bytes"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
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

	for _, options := range []any{tmc.Options{}, redispubsub.Options{}, etcd.Options{}, redisstream.Options{}, kafka.Options{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(options)) {
			row(field.Name)
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

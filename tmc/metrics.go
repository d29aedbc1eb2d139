package tmc

import "github.com/prometheus/client_golang/prometheus"

// metric is a figure of Stats with its description.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(Stats) float64
}

// collector is a [prometheus.Collector] of the Stats of a Cache.
type collector struct {
	cache   *Cache
	metrics []metric
}

// Collector returns the metrics of c, which README lists, to be registered with
// Prometheus. They have the labels app and node.
func (c *Cache) Collector() prometheus.Collector {
	labels := prometheus.Labels{"app": c.options.App, "node": c.options.Node}
	o := &collector{cache: c}
	add := func(kind prometheus.ValueType, name, help string, value func(Stats) float64) {
		o.metrics = append(o.metrics, metric{prometheus.NewDesc("tmc_"+name, help, nil, labels), kind, value})
	}
	counter := func(name, help string, value func(Stats) uint64) {
		add(prometheus.CounterValue, name, help, func(s Stats) float64 { return float64(value(s)) })
	}
	gauge := func(name, help string, value func(Stats) float64) { add(prometheus.GaugeValue, name, help, value) }

	counter("reads_total", "Keys read by GET, MGET, HGET and HGETALL.", func(s Stats) uint64 { return s.Reads })
	counter("hot_reads_total", "Reads of keys that were hot.", func(s Stats) uint64 { return s.Hot })
	counter("hits_total", "Reads served from local memory: reads of Redis saved.", func(s Stats) uint64 { return s.Hits })
	counter("misses_total", "Reads of hot keys that were not served locally.", func(s Stats) uint64 { return s.Misses })
	counter("copies_kept_total", "Copies made of replies.", func(s Stats) uint64 { return s.Kept })
	counter("copies_refused_total", "Copies that were not made: written meanwhile, too large, or without an answer to PTTL.", func(s Stats) uint64 { return s.Unkept })
	counter("keys_written_total", "Keys written by commands of this node.", func(s Stats) uint64 { return s.Written })
	counter("keys_invalidated_total", "Keys that other nodes said they wrote.", func(s Stats) uint64 { return s.Heard })
	counter("flushes_total", "Times that all copies were given up.", func(s Stats) uint64 { return s.Flushes })
	counter("channel_losses_total", "Times that the channel went down.", func(s Stats) uint64 { return s.Losses })
	counter("invalidations_sent_total", "Invalidations sent, each of one or more keys.", func(s Stats) uint64 { return s.Sent })
	counter("invalidation_failures_total", "Attempts to send an invalidation that failed.", func(s Stats) uint64 { return s.SendFailures })
	counter("invalidation_overflows_total", "Times that too many keys waited to be sent, and became an invalidation of everything.", func(s Stats) uint64 { return s.Overflows })
	counter("reports_total", "Reports sent to servers.", func(s Stats) uint64 { return s.Reports })
	counter("report_failures_total", "Reports that could not be sent.", func(s Stats) uint64 { return s.ReportFailures })
	counter("reads_dropped_total", "Reads that no server will hear of.", func(s Stats) uint64 { return s.Dropped })

	gauge("hot_keys", "Keys that are hot.", func(s Stats) float64 { return float64(s.HotKeys) })
	gauge("cache_copies", "Copies in the local cache.", func(s Stats) float64 { return float64(s.Copies) })
	gauge("cache_bytes", "Memory that the local cache takes.", func(s Stats) float64 { return float64(s.Bytes) })
	gauge("serving", "1 if copies are served, 0 if all reads go to Redis.", func(s Stats) float64 { return truth(s.Serving) })
	gauge("channel_up", "1 if the channel is up.", func(s Stats) float64 { return truth(s.Up) })
	gauge("staleness_bound_seconds", "The longest that a write by another node that reaches the channel can go unnoticed.", func(s Stats) float64 { return s.Bound.Seconds() })
	gauge("invalidation_queue_keys", "Keys that wait to be sent as written.", func(s Stats) float64 { return float64(s.Unsent) })
	gauge("invalidation_age_seconds", "How long the oldest of what other nodes have not been told waits.", func(s Stats) float64 { return s.Unacknowledged.Seconds() })
	gauge("report_queue", "Reports that wait to be sent.", func(s Stats) float64 { return float64(s.Queue) })
	return o
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe sends the descriptions of all metrics.
func (o *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range o.metrics {
		ch <- m.desc
	}
}

// Collect sends all metrics, as of one moment.
func (o *collector) Collect(ch chan<- prometheus.Metric) {
	s := o.cache.Stats()
	for _, m := range o.metrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(s))
	}
}

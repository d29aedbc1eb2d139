package prom

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
)

// longest is the number of bytes of a key that are its label.
const longest = 128

// Option changes what a Collector exports.
type Option func(*Collector)

// WithoutKeys leaves out the metrics by key.
func WithoutKeys() Option { return func(c *Collector) { c.withoutKeys = true } }

// WithLabels adds labels to every metric, such as to tell several Detectors
// from each other.
func WithLabels(labels prometheus.Labels) Option {
	return func(c *Collector) { c.labels = maps.Clone(labels) }
}

// Collector is a [prometheus.Collector] of a Detector or a Group; see the
// package comment for its metrics. It is safe for concurrent use.
type Collector struct {
	labels      prometheus.Labels
	withoutKeys bool
	sources     func(yield func(group string, s source) bool)

	group    func() hotspot.GroupStats // nil for a Detector
	places   *prometheus.Desc
	ofGroup  []groupCounter
	counters []counter
	scanTime *prometheus.Desc
	keys     *prometheus.Desc
	keyCount *prometheus.Desc
	keyRate  *prometheus.Desc
}

// source is a Detector of whatever keys.
type source interface {
	Stats() hotspot.Stats
	hotKeys() []hotKey
}

type hotKey struct {
	label       string
	count, rate float64
}

// counter is a metric that is taken from Stats.
type counter struct {
	desc  *prometheus.Desc
	value func(hotspot.Stats) uint64
}

// groupCounter is a metric of a Group as a whole.
type groupCounter struct {
	desc  *prometheus.Desc
	value func(hotspot.GroupStats) uint64
}

// NewCollector returns a Collector of a Detector.
func NewCollector[K comparable](d *hotspot.Detector[K], options ...Option) *Collector {
	return newCollector(nil, options, func(yield func(string, source) bool) { yield("", detector[K]{d}) })
}

// NewGroupCollector returns a Collector of all Detectors of a Group, those of
// the moment at which Prometheus asks.
func NewGroupCollector[K comparable](g *hotspot.Group[K], options ...Option) *Collector {
	return newCollector(g.Stats, options, func(yield func(string, source) bool) {
		for name, d := range g.All() {
			if !yield(name, detector[K]{d}) {
				return
			}
		}
	})
}

func newCollector(group func() hotspot.GroupStats, options []Option, sources func(func(string, source) bool)) *Collector {
	c := &Collector{group: group, sources: sources}
	for _, option := range options {
		option(c)
	}
	if group != nil {
		c.describeGroup()
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		if group != nil {
			labels = append([]string{"group"}, labels...)
		}
		return prometheus.NewDesc("hotspot_"+name, help, labels, c.labels)
	}
	count := func(name, help string, value func(hotspot.Stats) uint64) {
		c.counters = append(c.counters, counter{desc(name, help), value})
	}
	count("observed_total", "Occurrences observed, denied ones included.", func(s hotspot.Stats) uint64 { return s.Observed })
	count("hits_total", "Occurrences of keys that were hot then.", func(s hotspot.Stats) uint64 { return s.Hits })
	count("denied_total", "Occurrences of denied keys.", func(s hotspot.Stats) uint64 { return s.Denied })
	count("scans_total", "Scans.", func(s hotspot.Stats) uint64 { return s.Scans })
	count("entered_total", "How often a key entered the hot set.", func(s hotspot.Stats) uint64 { return s.Entered })
	count("left_total", "How often a key left the hot set.", func(s hotspot.Stats) uint64 { return s.Left })
	count("flaps_prevented_total", "How often a key would have left and entered again, or entered and left.", func(s hotspot.Stats) uint64 { return s.FlapsPrevented })
	c.scanTime = desc("scan_duration_seconds", "How long the latest scan took.")
	c.keys = desc("keys", "Keys in the hot set.")
	c.keyCount = desc("key_occurrences", "Occurrences of a hot key in the window.", "key")
	c.keyRate = desc("key_rate", "Occurrences of a hot key a second.", "key")
	return c
}

// describeGroup adds the metrics of a Group as a whole.
func (c *Collector) describeGroup() {
	c.places = prometheus.NewDesc("hotspot_detectors", "Detectors in the group.", nil, c.labels)
	count := func(name, help string, value func(hotspot.GroupStats) uint64) {
		c.ofGroup = append(c.ofGroup, groupCounter{prometheus.NewDesc("hotspot_"+name, help, nil, c.labels), value})
	}
	count("detectors_made_total", "Detectors made.", func(s hotspot.GroupStats) uint64 { return s.Made })
	count("detectors_dropped_total", "Detectors dropped.", func(s hotspot.GroupStats) uint64 { return s.Dropped })
	count("detectors_refused_total", "How often a detector was asked for and the group was full.", func(s hotspot.GroupStats) uint64 { return s.Refused })
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	if c.group != nil {
		ch <- c.places
	}
	for _, counter := range c.ofGroup {
		ch <- counter.desc
	}
	for _, counter := range c.counters {
		ch <- counter.desc
	}
	ch <- c.scanTime
	ch <- c.keys
	if !c.withoutKeys {
		ch <- c.keyCount
		ch <- c.keyRate
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	if c.group != nil {
		stats := c.group()
		ch <- prometheus.MustNewConstMetric(c.places, prometheus.GaugeValue, float64(stats.Detectors))
		for _, counter := range c.ofGroup {
			ch <- prometheus.MustNewConstMetric(counter.desc, prometheus.CounterValue, float64(counter.value(stats)))
		}
	}
	groups := make(map[string]bool)
	for name, s := range c.sources {
		var labels []string
		if c.group != nil {
			label := unique(labelOf(name), groups)
			groups[label] = true
			labels = append(labels, label)
		}
		c.collect(ch, s, labels)
	}
}

func (c *Collector) collect(ch chan<- prometheus.Metric, s source, labels []string) {
	stats := s.Stats()
	for _, counter := range c.counters {
		ch <- prometheus.MustNewConstMetric(counter.desc, prometheus.CounterValue, float64(counter.value(stats)), labels...)
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	gauge(c.scanTime, stats.ScanTime.Seconds(), labels...)
	gauge(c.keys, float64(stats.Hot), labels...)
	if c.withoutKeys {
		return
	}
	for _, key := range s.hotKeys() {
		gauge(c.keyCount, key.count, append(slices.Clip(labels), key.label)...)
		gauge(c.keyRate, key.rate, append(slices.Clip(labels), key.label)...)
	}
}

// detector is a source.
type detector[K comparable] struct{ *hotspot.Detector[K] }

// hotKeys returns the hot set by label: keys of one label are one, as Prometheus
// takes no series twice.
func (d detector[K]) hotKeys() []hotKey {
	var list []hotKey
	index := make(map[string]int)
	for key := range d.Set().All() {
		label := labelOf(d.Text(key.Key))
		at, ok := index[label]
		if !ok {
			at = len(list)
			index[label] = at
			list = append(list, hotKey{label: label})
		}
		list[at].count += float64(key.Count)
		list[at].rate += key.Rate
	}
	return list
}

// labelOf returns a text as a label: valid UTF-8, and its beginning if it is
// long.
func labelOf(text string) string {
	if len(text) > longest {
		end := longest
		for end > longest-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// unique returns a label that is not taken, by a number after it if need be.
func unique(label string, taken map[string]bool) string {
	for n, first := 2, label; taken[label]; n++ {
		label = fmt.Sprintf("%s (%d)", first, n)
	}
	return label
}

package server

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Collector is a [prometheus.Collector] of a [Server]. Metrics begin with
// tmc_server_; docs/operators.md lists them. There are no metrics by key: how
// many series there are depends on the number of applications only, which
// Config.MaxApps limits. It is safe for concurrent use.
type Collector struct {
	server *Server
	whole  []metric[Stats]
	apps   []metric[AppStats]
}

var _ prometheus.Collector = (*Collector)(nil)

// metric is a metric that is taken from statistics.
type metric[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) float64
}

func counter[S any](name, help string, value func(*S) float64, labels ...string) metric[S] {
	return metric[S]{prometheus.NewDesc("tmc_server_"+name, help, labels, nil), prometheus.CounterValue, value}
}

func gauge[S any](name, help string, value func(*S) float64, labels ...string) metric[S] {
	return metric[S]{prometheus.NewDesc("tmc_server_"+name, help, labels, nil), prometheus.GaugeValue, value}
}

// NewCollector returns a collector of s.
func NewCollector(s *Server) *Collector {
	const app = "app"
	return &Collector{
		server: s,
		whole: []metric[Stats]{
			counter("reports_total", "Reports received, in parts by shard.", func(s *Stats) float64 { return float64(s.Transport.Reports) }),
			counter("reports_lost_total", "Reports that were published and never came, in parts by shard.", func(s *Stats) float64 { return float64(s.Transport.Lost) }),
			counter("reports_late_total", "Reports that came after they had been counted as lost.", func(s *Stats) float64 { return float64(s.Transport.Late) }),
			counter("reports_repeated_total", "Reports that came again, and were not counted again.", func(s *Stats) float64 { return float64(s.Transport.Repeated) }),
			counter("reports_malformed_total", "Reports that were not understood.", func(s *Stats) float64 { return float64(s.Transport.Malformed) }),
			counter("transport_failures_total", "Times that the transport could not be reached.", func(s *Stats) float64 { return float64(s.Transport.Failures) }),
			gauge("shards", "Shards or partitions that this server reads.", func(s *Stats) float64 { return float64(s.Transport.Shards) }),
			counter("refused_reports_total", "Reports of applications beyond MaxApps.", func(s *Stats) float64 { return float64(s.Refused) }),
			counter("refused_occurrences_total", "What those reports counted.", func(s *Stats) float64 { return float64(s.RefusedOccurrences) }),
			gauge("apps", "Applications that this server knows.", func(s *Stats) float64 { return float64(len(s.Apps)) }),
			counter("scans_total", "Scans of all applications.", func(s *Stats) float64 { return float64(s.Scans) }),
			gauge("scan_seconds", "How long the latest scan took, pushes included.", func(s *Stats) float64 { return s.ScanTime.Seconds() }),
			gauge("last_scan_timestamp_seconds", "When the latest scan was.", func(s *Stats) float64 {
				if s.LastScan.IsZero() {
					return 0
				}
				return float64(s.LastScan.UnixNano()) / 1e9
			}),
		},
		apps: []metric[AppStats]{
			counter("app_reports_total", "Reports received of an application, in parts by shard.", func(a *AppStats) float64 { return float64(a.Reports) }, app),
			counter("app_occurrences_total", "Reads that were counted.", func(a *AppStats) float64 { return float64(a.Occurrences) }, app),
			counter("app_late_occurrences_total", "Reads that were not counted, because their reports were older than the window.", func(a *AppStats) float64 { return float64(a.Late) }, app),
			counter("app_dropped_occurrences_total", "Reads that SDKs could not report.", func(a *AppStats) float64 { return float64(a.Dropped) }, app),
			gauge("app_hot_keys", "Keys of the hot set of all servers.", func(a *AppStats) float64 { return float64(len(a.Hot)) }, app),
			gauge("app_own_hot_keys", "Keys that this server found hot.", func(a *AppStats) float64 { return float64(a.Detector.Hot) }, app),
			counter("app_hot_occurrences_total", "Reads of keys that this server had found hot.", func(a *AppStats) float64 { return float64(a.Detector.Hits) }, app),
			counter("app_entered_total", "Times that a key became hot.", func(a *AppStats) float64 { return float64(a.Detector.Entered) }, app),
			counter("app_left_total", "Times that a key was hot no more.", func(a *AppStats) float64 { return float64(a.Detector.Left) }, app),
			counter("app_flaps_prevented_total", "Times that hysteresis kept a key from leaving and entering.", func(a *AppStats) float64 { return float64(a.Detector.FlapsPrevented) }, app),
			gauge("app_servers", "Servers that have found something of the application within the window.", func(a *AppStats) float64 { return float64(len(a.Servers)) }, app),
			counter("app_pushes_total", "Hot sets that this server tried to push.", func(a *AppStats) float64 { return float64(a.Pushes) }, app),
			counter("app_push_failures_total", "Hot sets that it could not push.", func(a *AppStats) float64 { return float64(a.PushFailures) }, app),
			counter("app_exchanges_total", "Times that this server tried to meet the others in Redis.", func(a *AppStats) float64 { return float64(a.Exchanges) }, app),
			counter("app_exchange_failures_total", "Times that something of that failed.", func(a *AppStats) float64 { return float64(a.ExchangeFailures) }, app),
			gauge("app_enabled", "1 if the application is enabled.", func(a *AppStats) float64 { return flag(a.Config.Enabled) }, app),
			counter("app_config_applied_total", "Configurations that were applied.", func(a *AppStats) float64 { return float64(a.ConfigStatus.Applied) }, app),
			counter("app_config_rejected_total", "Configurations that were rejected.", func(a *AppStats) float64 { return float64(a.ConfigStatus.Rejected) }, app),
			gauge("app_config_problem", "1 if the configuration that is stored is not the one in force, or cannot be read.", func(a *AppStats) float64 {
				return flag(a.ConfigStatus.Problem != "" || a.ConfigStatus.Unreachable != "")
			}, app),
		},
	}
}

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.whole {
		ch <- m.desc
	}
	for _, m := range c.apps {
		ch <- m.desc
	}
}

// Collect sends all metrics as they are.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.send(ch, c.server.Stats())
}

func (c *Collector) send(ch chan<- prometheus.Metric, stats Stats) {
	for _, m := range c.whole {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&stats))
	}
	for i := range stats.Apps {
		a := &stats.Apps[i]
		for _, m := range c.apps {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(a), a.Name)
		}
	}
}

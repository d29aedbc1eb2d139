package prom

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func must[K comparable](t *testing.T, config hotspot.Config[K]) *hotspot.Detector[K] {
	t.Helper()
	d, err := hotspot.New(config)
	require.NoError(t, err)
	return d
}

func TestCollector(t *testing.T) {
	d := must(t, hotspot.Config[string]{Threshold: 10, Rules: []hotspot.Rule{{Action: hotspot.Deny, Pattern: "no"}}})
	d.ObserveAt(start, "a", 20)
	d.ObserveAt(start, "b\"\n", 10)
	d.ObserveAt(start, "c", 9)
	d.ScanAt(start.Add(10 * time.Second))
	d.ObserveAt(start, "a", 30)
	d.ObserveAt(start, "no", 5)
	want := `
# HELP hotspot_denied_total Occurrences of denied keys.
# TYPE hotspot_denied_total counter
hotspot_denied_total{app="shop"} 5
# HELP hotspot_entered_total How often a key entered the hot set.
# TYPE hotspot_entered_total counter
hotspot_entered_total{app="shop"} 2
# HELP hotspot_flaps_prevented_total How often a key would have left and entered again, or entered and left.
# TYPE hotspot_flaps_prevented_total counter
hotspot_flaps_prevented_total{app="shop"} 0
# HELP hotspot_hits_total Occurrences of keys that were hot then.
# TYPE hotspot_hits_total counter
hotspot_hits_total{app="shop"} 30
# HELP hotspot_key_occurrences Occurrences of a hot key in the window.
# TYPE hotspot_key_occurrences gauge
hotspot_key_occurrences{app="shop",key="a"} 20
hotspot_key_occurrences{app="shop",key="b\"\n"} 10
# HELP hotspot_key_rate Occurrences of a hot key a second.
# TYPE hotspot_key_rate gauge
hotspot_key_rate{app="shop",key="a"} 2
hotspot_key_rate{app="shop",key="b\"\n"} 1
# HELP hotspot_keys Keys in the hot set.
# TYPE hotspot_keys gauge
hotspot_keys{app="shop"} 2
# HELP hotspot_left_total How often a key left the hot set.
# TYPE hotspot_left_total counter
hotspot_left_total{app="shop"} 0
# HELP hotspot_observed_total Occurrences observed, denied ones included.
# TYPE hotspot_observed_total counter
hotspot_observed_total{app="shop"} 74
# HELP hotspot_scans_total Scans.
# TYPE hotspot_scans_total counter
hotspot_scans_total{app="shop"} 1
`
	var names []string
	for line := range strings.Lines(want) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			names = append(names, strings.Fields(rest)[0])
		}
	}
	c := NewCollector(d, WithLabels(prometheus.Labels{"app": "shop"}))
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(want), names...))
	require.Equal(t, 1, testutil.CollectAndCount(c, "hotspot_scan_duration_seconds"))
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, 9, testutil.CollectAndCount(NewCollector(d, WithoutKeys())))
}

// However many keys come by, there are no more series than TopN.
func TestSeriesAreBounded(t *testing.T) {
	d := must(t, hotspot.Config[int]{Threshold: 1, TopN: 7})
	c := NewCollector(d)
	for second := range 100 {
		at := start.Add(time.Duration(second) * time.Second)
		for i := range 50 {
			d.ObserveAt(at, 50*second+i, uint32(i+1))
		}
		d.ScanAt(at)
		require.Equal(t, 7, testutil.CollectAndCount(c, "hotspot_key_occurrences"))
		require.Equal(t, 9+2*7, testutil.CollectAndCount(c))
	}
}

// Keys that Prometheus has no label for, or only one for several, do not spoil
// the collection.
func TestLabels(t *testing.T) {
	d := must(t, hotspot.Config[string]{Threshold: 1})
	long := strings.Repeat("é", 100)
	for _, key := range []string{"", "\xff", "\xfe", "ok", long + "1", long + "2"} {
		d.ObserveAt(start, key, 5)
	}
	d.ScanAt(start)
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(NewCollector(d)))
	families, err := r.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "hotspot_key_occurrences" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	require.Equal(t, map[string]float64{"": 5, "\ufffd": 10, "ok": 5, strings.Repeat("é", 64) + "…": 10}, got)
}

func TestGroupCollector(t *testing.T) {
	g, err := hotspot.NewGroup(hotspot.GroupConfig[string]{Config: hotspot.Config[string]{Threshold: 10}, Max: 4})
	require.NoError(t, err)
	for i, name := range []string{"shop", "search", "\xff", "\xfe"} {
		d, err := g.Detector(name)
		require.NoError(t, err)
		d.ObserveAt(start, "k", uint32(10*i))
	}
	_, err = g.Detector("one too many")
	require.ErrorIs(t, err, hotspot.ErrGroupFull)
	g.ScanAt(start.Add(10*time.Second), nil)
	c := NewGroupCollector(g)
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP hotspot_key_occurrences Occurrences of a hot key in the window.
# TYPE hotspot_key_occurrences gauge
hotspot_key_occurrences{group="search",key="k"} 10
hotspot_key_occurrences{group="`+"\ufffd"+`",key="k"} 30
hotspot_key_occurrences{group="`+"\ufffd"+` (2)",key="k"} 20
# HELP hotspot_observed_total Occurrences observed, denied ones included.
# TYPE hotspot_observed_total counter
hotspot_observed_total{group="shop"} 0
hotspot_observed_total{group="search"} 10
hotspot_observed_total{group="`+"\ufffd"+`"} 30
hotspot_observed_total{group="`+"\ufffd"+` (2)"} 20
`), "hotspot_key_occurrences", "hotspot_observed_total"))
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, prometheus.NewPedanticRegistry().Register(c))
	g.Drop("search")
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP hotspot_detectors Detectors in the group.
# TYPE hotspot_detectors gauge
hotspot_detectors 3
# HELP hotspot_detectors_dropped_total Detectors dropped.
# TYPE hotspot_detectors_dropped_total counter
hotspot_detectors_dropped_total 1
# HELP hotspot_detectors_made_total Detectors made.
# TYPE hotspot_detectors_made_total counter
hotspot_detectors_made_total 4
# HELP hotspot_detectors_refused_total How often a detector was asked for and the group was full.
# TYPE hotspot_detectors_refused_total counter
hotspot_detectors_refused_total 1
`), "hotspot_detectors", "hotspot_detectors_made_total", "hotspot_detectors_dropped_total", "hotspot_detectors_refused_total"))
	require.Equal(t, 3, testutil.CollectAndCount(c, "hotspot_observed_total"))
}

func ExampleNewCollector() {
	d, err := hotspot.New(hotspot.Config[string]{Threshold: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := prometheus.NewRegistry() // serve it by promhttp.HandlerFor
	r.MustRegister(NewCollector(d))
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	d.ObserveAt(start, "product:42", 60)
	d.ScanAt(start.Add(3 * time.Second))
	families, _ := r.Gather()
	for _, f := range families {
		if f.GetName() == "hotspot_key_rate" {
			fmt.Println(f.GetMetric()[0].GetLabel()[0].GetValue(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output: product:42 20
}

func BenchmarkCollect(b *testing.B) {
	d, err := hotspot.New(hotspot.Config[int]{Threshold: 1, TopN: 100})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 200 {
		d.ObserveAt(start, i, uint32(i))
	}
	d.ScanAt(start)
	c := NewCollector(d)
	for b.Loop() {
		if n := testutil.CollectAndCount(c); n != 9+200 {
			b.Fatalf("got %d series, want 209", n)
		}
	}
}

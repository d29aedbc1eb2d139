// Package prom exports what a hotspot.Detector or hotspot.Group knows to
// Prometheus.
//
//	prometheus.MustRegister(prom.NewCollector(detector))
//
// Every metric is taken when Prometheus asks. Series are bounded: a key of the
// hot set is a label, so a Detector has at most TopN of each metric by key, and
// a Group at most Max times that. As hot keys come and go, so do their series;
// whoever pays for each series that ever was should leave them out, by WithoutKeys.
//
//	hotspot_observed_total            occurrences observed, denied ones included
//	hotspot_hits_total                of these, those of keys that were hot then
//	hotspot_denied_total              of these, those of denied keys
//	hotspot_scans_total               scans
//	hotspot_scan_duration_seconds     how long the latest scan took
//	hotspot_entered_total             how often a key entered the hot set
//	hotspot_left_total                how often a key left it
//	hotspot_flaps_prevented_total     how often it would have, were it not for the hysteresis
//	hotspot_keys                      keys in the hot set
//	hotspot_key_occurrences{key}      occurrences of a hot key in the window
//	hotspot_key_rate{key}             occurrences of a hot key a second
//
// Those of a Group have a label group besides, and there are, without one:
//
//	hotspot_detectors                 detectors in the group
//	hotspot_detectors_made_total      detectors made
//	hotspot_detectors_dropped_total   of these, those dropped
//	hotspot_detectors_refused_total   how often one was asked for and the group was full
package prom

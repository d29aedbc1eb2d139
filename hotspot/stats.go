package hotspot

import (
	"encoding/json"
	"time"
)

// Stats tells what a [Detector] has done since it was new.
type Stats struct {
	// Observed is the number of occurrences given to Observe and the like,
	// denied ones included. Hits are those of keys that were hot then: what a
	// cache of the hot keys would have served. Denied are those of denied
	// keys, which were not counted.
	Observed, Hits, Denied uint64

	// Scans is the number of scans, LastScan the time of the latest and
	// ScanTime how long that took.
	Scans    uint64
	LastScan time.Time
	ScanTime time.Duration

	// Hot is the number of keys in the hot set. Entered and Left count how
	// often a key entered and left it, as scans reported it.
	Hot           int
	Entered, Left uint64

	// FlapsPrevented counts how often a key would have left and entered
	// again, or entered and left, were it not for Leave, MinStay and
	// EnterAfter.
	FlapsPrevented uint64
}

// Coverage returns the share of Observed that were Hits, 0 to 1.
func (s Stats) Coverage() float64 {
	if s.Observed == 0 {
		return 0
	}
	return float64(s.Hits) / float64(s.Observed)
}

// plus returns the sums of s and t, the later LastScan and the longer ScanTime.
func (s Stats) plus(t Stats) Stats {
	s.Observed += t.Observed
	s.Hits += t.Hits
	s.Denied += t.Denied
	s.Scans += t.Scans
	if t.LastScan.After(s.LastScan) {
		s.LastScan = t.LastScan
	}
	s.ScanTime = max(s.ScanTime, t.ScanTime)
	s.Hot += t.Hot
	s.Entered += t.Entered
	s.Left += t.Left
	s.FlapsPrevented += t.FlapsPrevented
	return s
}

// asJSON returns v as JSON, null if it has a time beyond the year 9999.
func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(data)
}

// scanStats are the parts of Stats that scans keep.
type scanStats struct {
	scans, entered, left, flaps uint64
	last                        time.Time
	took                        time.Duration
}

func (s *scanStats) note(entered, left int, flaps uint64, at time.Time, took time.Duration) {
	s.scans++
	s.entered += uint64(entered)
	s.left += uint64(left)
	s.flaps, s.last, s.took = flaps, at, took
}

// Stats returns what d has done so far. It waits for a scan that is under way.
func (d *Detector[K]) Stats() Stats {
	d.mu.Lock()
	s := d.scans
	d.mu.Unlock()
	hits, barred := d.tally.sum(allowed), d.tally.sum(denied)
	return Stats{
		Observed:       hits + barred + d.tally.sum(cold), // never less than its parts
		Hits:           hits,
		Denied:         barred,
		Scans:          s.scans,
		LastScan:       s.last,
		ScanTime:       s.took,
		Hot:            d.set.Load().Len(),
		Entered:        s.entered,
		Left:           s.left,
		FlapsPrevented: s.flaps,
	}
}

func (d *Detector[K]) observed() uint64 {
	return d.tally.sum(cold) + d.tally.sum(allowed) + d.tally.sum(denied)
}

// String returns Stats as JSON, with Coverage: it makes a Detector an
// [expvar.Var], to be published by expvar.Publish("hotspot", d).
//
// [expvar.Var]: https://pkg.go.dev/expvar#Var
func (d *Detector[K]) String() string {
	s := d.Stats()
	return asJSON(struct {
		Stats
		Coverage float64
	}{s, s.Coverage()})
}

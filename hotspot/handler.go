package hotspot

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Handler returns a debug page of d: the hot set as the latest scan has
// published it, with the slots of each key. It answers GET and HEAD at any
// path, with one HTML page that loads nothing else, or with JSON if the query
// has format=json or the request accepts application/json and not text/html.
//
// The page has a line for each hot key: rank, text, count with its bounds, rate,
// share of traffic as a bar, a bar for each slot of the window, and how long it
// has been hot; above them are Stats. Text that is not printable, or could be
// taken for another, is quoted as in Go. It loads itself anew each slot. In JSON,
// text that is not UTF-8 is in key_base64.
//
// It only reads, but it shows keys, and a page takes O(TopN) Series of the
// Source: it is for those who run the service, so do not expose it to others.
func Handler[K comparable](d *Detector[K]) http.Handler {
	return debugPage(func(*http.Request) (any, bool) { return d.report(""), true })
}

// GroupHandler returns a debug page of g: its Detectors and totals and, where
// the query has name=NAME, what [Handler] shows of that one. It makes none, and
// keeps none from being idle.
func GroupHandler[K comparable](g *Group[K]) http.Handler {
	return debugPage(func(r *http.Request) (any, bool) {
		query := r.URL.Query()
		if !query.Has("name") {
			return g.report(), true
		}
		name := query.Get("name")
		m, ok := g.members.Load(name)
		if !ok {
			return nil, false
		}
		return m.(*groupMember[K]).detector.report(name), true
	})
}

// debugPage shows what a function reports, as HTML or JSON, if it is ok.
type debugPage func(r *http.Request) (report any, ok bool)

func (p debugPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src '"+pageStyleHash+"'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "read only", http.StatusMethodNotAllowed)
		return
	}
	report, ok := p(r)
	if !ok {
		http.Error(w, "no detector of that name", http.StatusNotFound)
		return
	}
	var body bytes.Buffer
	var err error
	if wantsJSON(r) {
		header.Set("Content-Type", "application/json")
		err = json.NewEncoder(&body).Encode(report)
	} else {
		header.Set("Content-Type", "text/html; charset=utf-8")
		err = pageTemplate.Execute(&body, newPage(report, r.URL.Query()))
	}
	if err != nil { // such as a time that JSON has no form for
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write(body.Bytes())
}

func wantsJSON(r *http.Request) bool {
	if format := r.URL.Query().Get("format"); format != "" {
		return format == "json"
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// detectorReport is the JSON form of a Detector.
type detectorReport struct {
	Name     string      `json:"name,omitempty"` // in its group
	At       time.Time   `json:"at"`
	Total    uint64      `json:"total"`
	Span     float64     `json:"span_seconds"`
	Slot     float64     `json:"slot_seconds"`
	Stats    statsReport `json:"stats"`
	Keys     []keyReport `json:"keys"`
	Windowed bool        `json:"-"`
}

type statsReport struct {
	Observed       uint64  `json:"observed"`
	Hits           uint64  `json:"hits"`
	Coverage       float64 `json:"coverage"`
	Denied         uint64  `json:"denied"`
	Scans          uint64  `json:"scans"`
	ScanTime       float64 `json:"scan_seconds"`
	Hot            int     `json:"hot"`
	Entered        uint64  `json:"entered"`
	Left           uint64  `json:"left"`
	FlapsPrevented uint64  `json:"flaps_prevented"`
}

type keyReport struct {
	Rank    int       `json:"rank"`
	Key     string    `json:"key"`
	Bytes   []byte    `json:"key_base64,omitempty"` // of a key that is not UTF-8
	Count   uint64    `json:"count"`
	Lower   uint64    `json:"lower"`
	Upper   *uint64   `json:"upper"` // null if unbounded
	Rate    float64   `json:"rate"`
	Share   float64   `json:"share"`
	Certain bool      `json:"certain"`
	Allowed bool      `json:"allowed"`
	Since   time.Time `json:"since"`
	TTL     float64   `json:"ttl_seconds,omitempty"`
	Rule    string    `json:"rule,omitempty"`
	Series  []uint64  `json:"series,omitempty"` // oldest slot first
}

// groupReport is the JSON form of a Group.
type groupReport struct {
	Detectors int            `json:"detectors"`
	Made      uint64         `json:"made"`
	Dropped   uint64         `json:"dropped"`
	Refused   uint64         `json:"refused"`
	Slot      float64        `json:"slot_seconds"`
	Stats     statsReport    `json:"stats"`
	Members   []memberReport `json:"members"`
}

type memberReport struct {
	Name    string      `json:"name"`
	Hottest string      `json:"hottest,omitempty"`
	Stats   statsReport `json:"stats"`
}

func (d *Detector[K]) report(name string) *detectorReport {
	set := d.Set()
	r := &detectorReport{
		Name:     name,
		At:       set.at,
		Total:    set.total,
		Span:     set.span.Seconds(),
		Slot:     d.config.Slot.Seconds(),
		Stats:    d.Stats().report(),
		Keys:     make([]keyReport, 0, set.Len()),
		Windowed: d.reader.window != nil,
	}
	for key := range set.All() {
		k := keyReport{
			Rank:    key.Rank,
			Key:     set.rules.text(key.Key),
			Count:   key.Count,
			Lower:   key.Lower,
			Upper:   &key.Upper,
			Rate:    key.Rate,
			Share:   key.Share,
			Certain: key.Certain,
			Allowed: key.Allowed,
			Since:   key.Since,
			TTL:     key.TTL.Seconds(),
			Rule:    key.Rule,
		}
		if !utf8.ValidString(k.Key) {
			k.Bytes = []byte(k.Key)
		}
		if key.Upper == unbounded {
			k.Upper = nil
		}
		if r.Windowed {
			k.Series = d.reader.window.SeriesAt(set.at, key.Key)
		}
		r.Keys = append(r.Keys, k)
	}
	return r
}

func (s Stats) report() statsReport {
	return statsReport{
		Observed:       s.Observed,
		Hits:           s.Hits,
		Coverage:       s.Coverage(),
		Denied:         s.Denied,
		Scans:          s.Scans,
		ScanTime:       s.ScanTime.Seconds(),
		Hot:            s.Hot,
		Entered:        s.Entered,
		Left:           s.Left,
		FlapsPrevented: s.FlapsPrevented,
	}
}

func (g *Group[K]) report() *groupReport {
	s := g.Stats()
	r := &groupReport{
		Detectors: s.Detectors,
		Made:      s.Made,
		Dropped:   s.Dropped,
		Refused:   s.Refused,
		Slot:      g.config.Slot.Seconds(),
		Stats:     s.Stats.report(),
		Members:   []memberReport{},
	}
	for _, m := range g.sorted() {
		member := memberReport{Name: m.name, Stats: m.detector.Stats().report()}
		if set := m.detector.Set(); set.Len() > 0 {
			member.Hottest = set.rules.text(set.hot[0].Key)
		}
		r.Members = append(r.Members, member)
	}
	return r
}

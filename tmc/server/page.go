package server

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageStyle string

// pageStyleHash lets the page have its own style and no other.
var pageStyleHash = func() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}()

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"key":   strconv.Quote,
	"rate":  func(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) },
	"since": func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) },
	"percent": func(x float64) string {
		return strconv.FormatFloat(100*x, 'f', 1, 64) + " %"
	},
	"lines": func(v any) string {
		data, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err.Error()
		}
		return string(data)
	},
}).Parse(pageHTML))

// page is what the template shows.
type page struct {
	Style   template.CSS
	Refresh int // seconds
	Uptime  time.Duration
	Stats   Stats
}

// Handler returns the pages of s: / shows the cluster as s sees it, its
// applications, and their hot sets; /app?name=NAME what hotspot.Handler shows of
// the application's detector on this server. Both are one HTML page that loads
// nothing else, or JSON if the query has format=json.
//
// Pages only read, but they show keys: they are for those who run the service,
// so do not expose them to others.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.servePage)
	mux.HandleFunc("GET /app", s.serveApp)
	return mux
}

func (s *Server) serveApp(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	s.mu.RLock()
	a := s.apps[name]
	s.mu.RUnlock()
	if a == nil {
		http.Error(w, "this server knows no application of that name", http.StatusNotFound)
		return
	}
	hotspot.Handler(a.state.Load().detector).ServeHTTP(w, r)
}

func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src '"+pageStyleHash+"'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	stats := s.Stats()
	var body bytes.Buffer
	var err error
	if r.URL.Query().Get("format") == "json" {
		header.Set("Content-Type", "application/json")
		err = json.NewEncoder(&body).Encode(stats)
	} else {
		header.Set("Content-Type", "text/html; charset=utf-8")
		err = pageTemplate.Execute(&body, page{
			Style:   template.CSS(pageStyle),
			Refresh: max(1, int(s.config.Slot/time.Second)),
			Uptime:  time.Since(s.started).Round(time.Second),
			Stats:   stats,
		})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write(body.Bytes())
}

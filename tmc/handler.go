package tmc

import (
	"encoding/json"
	"html/template"
	"net/http"
	"time"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
)

// Handler returns a debug page of c. In embedded mode the page is that of
// [hotspot.Handler], in cluster mode the hot set as the servers say. With
// format=stats in the query it is the Stats, as JSON.
//
// It shows keys: it is for those who run the service, so do not expose it to
// others.
func (c *Cache) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		if r.URL.Query().Get("format") == "stats" {
			writeJSON(w, c.Stats())
			return
		}
		switch d := c.detector.(type) {
		case *embedded:
			hotspot.Handler(d.Load()).ServeHTTP(w, r)
		case *reporter:
			d.serve(w, r)
		}
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "\t")
	_ = encoder.Encode(v) // of a connection that is gone
}

var hotPage = template.Must(template.New("").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>{{.App}}: hot keys</title>
<style>body{font:16px sans-serif;margin:2em}td,th{padding:.2em 1em;text-align:right}td:first-child,th:first-child{text-align:left;font-family:monospace}</style>
<h1>{{.App}}: hot keys</h1>
<p>Version {{.Version}}, {{.At}}, {{len .Keys}} keys.</p>
<table><tr><th>Key<th>Count<th>Reads/s<th>TTL</tr>
{{range .Keys}}<tr><td>{{.Key}}<td>{{.Count}}<td>{{printf "%.1f" .Rate}}<td>{{.TTL}}</tr>
{{end}}</table></html>
`))

// serve writes the hot set, as a page or, if the query says so, as JSON.
func (r *reporter) serve(w http.ResponseWriter, request *http.Request) {
	set := r.set.Load()
	view := struct {
		App     string
		Version uint64
		At      string
		Keys    any
	}{r.app, set.version, set.at.UTC().Format(time.RFC3339), set.list}
	if request.URL.Query().Get("format") == "json" {
		writeJSON(w, view)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = hotPage.Execute(w, view) // of a connection that is gone
}

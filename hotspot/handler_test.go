package hotspot

import (
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const scriptKey = `<script>document.title="pwned"</script>`

// shop is a detector of a shop in the middle of a sale: 30 s in 10 slots.
func shop(t testing.TB) *Detector[string] {
	d := must(t, Config[string]{
		Threshold: 500,
		TopN:      20,
		Rules: []Rule{
			{Name: "config", Action: Allow, Pattern: "config:prices", TTL: time.Minute},
			{Name: "robots", Action: Deny, Match: Prefix, Pattern: "robot:"},
			{Name: "checkout", Match: Glob, Pattern: "cart:*", Threshold: 200, TTL: 3 * time.Second},
		},
	})
	for second := range 31 {
		at := start.Add(time.Duration(second) * time.Second)
		d.ObserveAt(at, "product:1042:detail", uint32(100+second*second*8))
		d.ObserveAt(at, "product:7:detail", uint32(900-25*second))
		d.ObserveAt(at, "session:\x00\u202egnp.exe", uint32(60+40*(second%7)))
		d.ObserveAt(at, scriptKey, uint32(80+20*(second%5)))
		d.ObserveAt(at, "cart:88", 12)
		d.ObserveAt(at, "robot:7", 1000)
		d.ObserveAt(at, "category/"+strings.Repeat("very-long-", 25)+"tail", uint32(30+5*(second%2)))
		if second >= 21 && second < 24 {
			d.ObserveAt(at, "news:flash", 1700)
		}
		for i := range 300 {
			d.ObserveAt(at, fmt.Sprintf("product:%d:detail", 2000+i), 1)
		}
		if second%3 == 0 {
			d.ScanAt(at.Add(999 * time.Millisecond))
		}
	}
	return d
}

// serve returns the answer of a handler.
func serve(h http.Handler, method, target, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	for _, test := range []struct {
		method, target, accept string
		status                 int
		contentType            string
	}{
		{"GET", "/", "", 200, "text/html; charset=utf-8"},
		{"GET", "/debug/hot?x=y", "text/html,application/json", 200, "text/html; charset=utf-8"},
		{"HEAD", "/", "", 200, "text/html; charset=utf-8"},
		{"GET", "/?format=json", "", 200, "application/json"},
		{"GET", "/?format=html", "application/json", 200, "text/html; charset=utf-8"},
		{"GET", "/any/path", "application/json", 200, "application/json"},
		{"POST", "/", "", 405, "text/plain; charset=utf-8"},
		{"DELETE", "/?format=json", "", 405, "text/plain; charset=utf-8"},
	} {
		w := serve(Handler(shop(t)), test.method, test.target, test.accept)
		name := test.method + " " + test.target
		require.Equal(t, test.status, w.Code, name)
		require.Equal(t, test.contentType, w.Header().Get("Content-Type"), name)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"), name)
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), name)
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'", name)
		if test.status == 405 {
			require.Equal(t, "GET, HEAD", w.Header().Get("Allow"), name)
		}
	}
}

func TestHandlerHTML(t *testing.T) {
	body := serve(Handler(shop(t)), "GET", "/", "").Body.String()
	require.NotContains(t, body, "<script")
	require.Contains(t, body, "&lt;script&gt;document.title=")
	require.NotContains(t, body, "\u202e", "text that runs backwards")
	require.Contains(t, body, `&#34;session:\x00\u202egnp.exe&#34;`)
	require.NotContains(t, body, "http://", "loads something")
	require.NotContains(t, body, "https://", "loads something")
	require.Contains(t, body, "product:1042:detail")
	require.Contains(t, body, "cart:88")
	require.NotContains(t, body, "robot:7")
	require.Contains(t, body, `http-equiv="refresh" content="3"`)
	require.NotContains(t, serve(Handler(shop(t)), "GET", "/?pause=1", "").Body.String(), "http-equiv")

	empty := serve(Handler(must(t, Config[string]{Rate: 1})), "GET", "/", "").Body.String()
	require.Contains(t, empty, "No key is hot.")
	require.Contains(t, empty, "Not scanned yet.")
}

func TestHandlerJSON(t *testing.T) {
	d := shop(t)
	var got struct {
		At    time.Time
		Total uint64
		Span  float64 `json:"span_seconds"`
		Stats struct {
			Observed, Denied, Scans uint64
			Hot                     int
		}
		Keys []struct {
			Rank                int
			Key                 string
			Count, Lower, Upper uint64
			Rate, Share         float64
			Certain, Allowed    bool
			Since               time.Time
			TTL                 float64 `json:"ttl_seconds"`
			Rule                string
			Series              []uint64
		}
	}
	require.NoError(t, json.Unmarshal(serve(Handler(d), "GET", "/?format=json", "").Body.Bytes(), &got))
	require.Equal(t, d.Set().At(), got.At.UTC())
	require.Equal(t, d.Stats().Observed, got.Stats.Observed)
	require.Equal(t, uint64(31000), got.Stats.Denied)
	require.Equal(t, uint64(11), got.Stats.Scans)
	require.Equal(t, d.Set().Len(), got.Stats.Hot)
	require.Len(t, got.Keys, d.Set().Len())
	for i, want := range d.Set().Keys() {
		k := got.Keys[i]
		require.Equal(t, want.Key, k.Key)
		require.Equal(t, want.Rank, k.Rank, k.Key)
		require.Equal(t, []uint64{want.Count, want.Lower, want.Upper}, []uint64{k.Count, k.Lower, k.Upper}, k.Key)
		require.Equal(t, []float64{want.Rate, want.Share}, []float64{k.Rate, k.Share}, k.Key)
		require.Equal(t, []bool{want.Certain, want.Allowed}, []bool{k.Certain, k.Allowed}, k.Key)
		require.Equal(t, want.Since, k.Since.UTC(), k.Key)
		require.Equal(t, want.TTL.Seconds(), k.TTL, k.Key)
		require.Equal(t, want.Rule, k.Rule, k.Key)
		require.Len(t, k.Series, 10, k.Key)
		require.Equal(t, want.Lower, sum(k.Series), k.Key)
	}
}

// Keys that are not UTF-8 are told apart.
func TestHandlerJSONBytes(t *testing.T) {
	d := must(t, Config[string]{Threshold: 1})
	for i, key := range []string{"\xff", "\xfe", "plain"} {
		d.ObserveAt(start, key, uint32(3-i))
	}
	d.ScanAt(start)
	var got struct {
		Keys []struct {
			Key   string
			Bytes []byte `json:"key_base64"`
		}
	}
	require.NoError(t, json.Unmarshal(serve(Handler(d), "GET", "/?format=json", "").Body.Bytes(), &got))
	require.Equal(t, []byte("\xff"), got.Keys[0].Bytes)
	require.Equal(t, []byte("\xfe"), got.Keys[1].Bytes)
	require.Nil(t, got.Keys[2].Bytes)
}

// Debug pages of other sources have no slots, and unbounded uppers a form.
func TestHandlerWithoutWindow(t *testing.T) {
	d := must(t, Config[string]{Source: new(exactSource), Threshold: 1})
	d.Observe("a")
	d.ScanAt(start)
	body := serve(Handler(d), "GET", "/?format=json", "").Body.String()
	require.Contains(t, body, `"upper":null`)
	require.NotContains(t, body, "series")
	body = serve(Handler(d), "GET", "/", "").Body.String()
	require.Contains(t, body, "∞")
	require.NotContains(t, body, "slots, oldest first")
}

func TestGroupHandler(t *testing.T) {
	g, err := NewGroup(GroupConfig[string]{Config: Config[string]{Threshold: 5}})
	require.NoError(t, err)
	h := GroupHandler(g)
	require.Contains(t, serve(h, "GET", "/", "").Body.String(), "There is no detector yet.")
	for _, name := range []string{"shop", "a&b=<c>", ""} {
		d, err := g.Detector(name)
		require.NoError(t, err)
		d.ObserveAt(start, "key of "+name, 7)
	}
	g.ScanAt(start.Add(time.Second), nil)
	body := serve(h, "GET", "/", "").Body.String()
	require.Contains(t, body, "Hot keys of 3 detectors")
	require.Contains(t, body, `href="?name=a%26b%3D%3Cc%3E"`)
	require.Contains(t, body, "key of a&amp;b=&lt;c&gt;")
	for _, name := range []string{"shop", "a&b=<c>", ""} {
		body := serve(h, "GET", "/?format=json&name="+url.QueryEscape(name), "").Body.String()
		var got struct{ Keys []struct{ Key string } }
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Len(t, got.Keys, 1)
		require.Equal(t, "key of "+name, got.Keys[0].Key)
	}
	require.Equal(t, 404, serve(h, "GET", "/?name=nobody", "").Code)
	require.Equal(t, 3, g.Stats().Detectors, "a page has made one")
	require.Contains(t, serve(h, "GET", "/?format=json", "").Body.String(), `"hottest":"key of shop"`)
}

func TestLegible(t *testing.T) {
	for key, want := range map[string]string{
		"plain":                        "plain",
		"ключ 键":                       "ключ 键",
		"":                             `""`,
		" ":                            `" "`,
		"a ":                           `"a "`,
		`"a"`:                          `"\"a\""`,
		"a\nb":                         `"a\nb"`,
		"\xff":                         `"\xff"`,
		"a\u202eb":                     `"a\u202eb"`,
		strings.Repeat("x", 161):       strings.Repeat("x", 160) + " … (161 bytes)",
		strings.Repeat("é", 1e3):       strings.Repeat("é", 80) + " … (2\u202f000 bytes)",
		"x" + strings.Repeat("é", 1e3): "x" + strings.Repeat("é", 79) + " … (2\u202f001 bytes)",
	} {
		require.Equal(t, want, legible(key), "%q", key)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1 000", 1234567: "1 234 567"} {
		require.Equal(t, strings.ReplaceAll(want, " ", "\u202f"), grouped(n))
	}
}

func TestBars(t *testing.T) {
	require.Empty(t, bars(nil))
	require.Len(t, bars(make([]uint64, 60)), 60)
	require.Len(t, bars(make([]uint64, 61)), 31)
	require.LessOrEqual(t, len(bars(make([]uint64, 65536))), mostBars)
	list := bars([]uint64{0, 1, 50, 100})
	require.Equal(t, []float64{0, 1, 14, 28}, []float64{list[0].Height, list[1].Height, list[2].Height, list[3].Height})
	for _, b := range list {
		require.Equal(t, barsHeight, b.Y+b.Height)
		require.LessOrEqual(t, b.X+b.Width, barsWidth)
	}
}

// TestPageInBrowser has Chromium draw the page. It is skipped where there is
// none, unless the variable HOTSPOT_BROWSER is set; HOTSPOT_SCREENSHOTS names a
// folder that keeps the pictures.
func TestPageInBrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("HOTSPOT_BROWSER") == "" {
		t.Skip("there is no chromium")
	}
	require.NoError(t, err)
	if testing.Short() {
		t.Skip("takes seconds")
	}
	group, err := NewGroup(GroupConfig[string]{Config: Config[string]{Threshold: 5}})
	require.NoError(t, err)
	for _, name := range []string{"checkout", "search", scriptKey} {
		d, err := group.Detector(name)
		require.NoError(t, err)
		d.ObserveAt(start, "key of "+name, uint32(len(name)))
	}
	group.ScanAt(start.Add(time.Second), nil)
	for _, test := range []struct {
		name    string
		handler http.Handler
		orange  bool     // bars, which only the style colours
		text    []string // of the document as the browser has it
	}{
		{"hot", Handler(shop(t)), true, []string{"&lt;script&gt;document.title=\"pwned\"&lt;/script&gt;", "product:1042:detail", "<rect "}},
		{"empty", Handler(must(t, Config[string]{Rate: 1})), false, []string{"No key is hot."}},
		{"group", GroupHandler(group), false, []string{"key of checkout", "&lt;script&gt;"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			document := chromium(t, browser, "--dump-dom", server.URL+"/?pause=1")
			require.Contains(t, document, "<title>Hot keys</title>", "a key's script has run")
			require.NotContains(t, document, "<script")
			for _, text := range test.text {
				require.Contains(t, document, text)
			}
			picture := filepath.Join(t.TempDir(), test.name+".png")
			if folder := os.Getenv("HOTSPOT_SCREENSHOTS"); folder != "" {
				picture = filepath.Join(folder, test.name+".png")
			}
			chromium(t, browser, "--screenshot="+picture, "--window-size=1280,900", server.URL+"/?pause=1")
			require.Equal(t, test.orange, shows(t, picture, 0xd9, 0x48, 0x0f))
			require.True(t, shows(t, picture, 0xf4, 0xf7, 0xfa), "the style was not taken")
		})
	}
}

// chromium runs the browser and returns what it prints.
func chromium(t *testing.T, browser string, args ...string) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, browser, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
	}, args...)...)
	var log strings.Builder
	command.Stderr = &log
	out, err := command.Output()
	require.NoError(t, err, "%s", log.String())
	return string(out)
}

// shows reports whether a picture has a pixel of a colour.
func shows(t *testing.T, picture string, red, green, blue uint32) bool {
	file, err := os.Open(picture)
	require.NoError(t, err)
	defer file.Close()
	image, err := png.Decode(io.Reader(file))
	require.NoError(t, err)
	for y := range image.Bounds().Dy() {
		for x := range image.Bounds().Dx() {
			if r, g, b, _ := image.At(x, y).RGBA(); r>>8 == red && g>>8 == green && b>>8 == blue {
				return true
			}
		}
	}
	return false
}

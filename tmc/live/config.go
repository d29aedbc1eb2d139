package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/window"
)

const (
	// MaxTopN is the most hot keys that an application can have.
	MaxTopN = 10_000

	// MaxRules is the most rules that an application can have.
	MaxRules = 1000

	// MaxSize is the largest number of bytes of a document.
	MaxSize = 1 << 20
)

// Config is the configuration of an application.
type Config struct {
	// Enabled turns everything off: no key is hot. Default true.
	Enabled bool `json:"enabled"`

	// Threshold, Rate and Share say from when on a key is hot: its reads in the
	// window, its reads a second, and its share of all. All that are not 0 must
	// be met, and one must be set. A document that has one of them replaces all
	// three. Default: a Rate of 100.
	Threshold uint64  `json:"threshold,omitempty"`
	Rate      float64 `json:"rate,omitempty"`
	Share     float64 `json:"share,omitempty"`

	// TopN is the most hot keys at a time, 1 to MaxTopN. Default 100.
	TopN int `json:"topN"`

	// Leave is the share of its threshold below which a key is hot no more,
	// more than 0 and at most 1. Default 0.8.
	Leave float64 `json:"leave"`

	// MinStay is how long a key stays hot at least. Default 0.
	MinStay Duration `json:"minStay"`

	// EnterAfter is how many scans in a row must find a key at its threshold
	// before it is hot, at least 1. Default 1.
	EnterAfter int `json:"enterAfter"`

	// Certain has only keys hot that certainly reach the threshold. Default
	// false.
	Certain bool `json:"certain"`

	// Rules are exceptions, of which the first that matches a key decides. At
	// most MaxRules.
	Rules []Rule `json:"rules,omitempty"`

	// Cache is for the SDKs.
	Cache Cache `json:"cache"`
}

// Cache is the configuration of local caches.
type Cache struct {
	// Bytes is the most memory that local copies take, at least 64 KiB.
	// Default 64 MiB.
	Bytes int64 `json:"bytes"`

	// TTL is how long a local copy is served, 1 ms to 24 h, where the rule of
	// its key does not say. Default 3 s.
	TTL Duration `json:"ttl"`
}

// Rule is an exception for keys; see [hotspot.Rule].
type Rule struct {
	Name      string   `json:"name,omitempty"`
	Action    string   `json:"action"` // detect, allow or deny
	Match     string   `json:"match"`  // exact, prefix, suffix, contains, glob or regexp
	Pattern   string   `json:"pattern"`
	Threshold uint64   `json:"threshold,omitempty"`
	Rate      float64  `json:"rate,omitempty"`
	Share     float64  `json:"share,omitempty"`
	Window    int      `json:"window,omitempty"`
	TTL       Duration `json:"ttl,omitempty"`
}

// Duration is a [time.Duration] that is a string in JSON, such as "1.5s".
type Duration time.Duration

// MarshalText returns what [time.Duration.String] does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses what [time.ParseDuration] does.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// Default returns the defaults.
func Default() Config {
	return Config{
		Enabled:    true,
		Rate:       100,
		TopN:       100,
		Leave:      0.8,
		EnterAfter: 1,
		Cache:      Cache{Bytes: 64 << 20, TTL: Duration(3 * time.Second)},
	}
}

// Parse returns the configuration that a document says, with what it leaves
// out taken from base. slots is the number of slots of the window, which rules
// may refer to. The error says what is wrong, and where.
func Parse(data []byte, base Config, slots int) (Config, error) {
	if len(data) > MaxSize {
		return base, fmt.Errorf("live: document of %d bytes or more: must have at most %d", len(data), MaxSize)
	}
	var limits struct{ Threshold, Rate, Share *json.RawMessage }
	if err := json.Unmarshal(data, &limits); err != nil {
		return base, fmt.Errorf("live: %w", err)
	}
	c := base
	c.Rules = nil
	if limits.Threshold != nil || limits.Rate != nil || limits.Share != nil {
		c.Threshold, c.Rate, c.Share = 0, 0, 0
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return base, fmt.Errorf("live: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return base, errors.New("live: something follows the document")
	}
	if c.Rules == nil {
		c.Rules = base.Rules
	}
	if err := c.Validate(slots); err != nil {
		return base, err
	}
	return c, nil
}

// Validate returns an error that names the first field out of range, and its
// value.
func (c Config) Validate(slots int) error {
	invalid := func(field string, value any, want string) error {
		return fmt.Errorf("live: %s = %v: must be %s", field, value, want)
	}
	switch ttl := time.Duration(c.Cache.TTL); {
	case c.TopN < 1 || c.TopN > MaxTopN:
		return invalid("topN", c.TopN, fmt.Sprintf("1 to %d", MaxTopN))
	case c.Leave == 0:
		return invalid("leave", c.Leave, "more than 0")
	case c.EnterAfter == 0:
		return invalid("enterAfter", c.EnterAfter, "positive")
	case len(c.Rules) > MaxRules:
		return invalid("the number of rules", len(c.Rules), fmt.Sprintf("at most %d", MaxRules))
	case c.Cache.Bytes < 64<<10:
		return invalid("cache.bytes", c.Cache.Bytes, "at least 65536")
	case ttl < time.Millisecond || ttl > 24*time.Hour:
		return invalid("cache.ttl", ttl, "1ms to 24h")
	}
	source, err := window.New(window.Config[string]{K: 1, Candidates: 1, Rows: 1, Width: 1, Stripes: 1, Slots: slots})
	if err != nil {
		return fmt.Errorf("live: %w", err)
	}
	config, err := c.Detector(source)
	if err != nil {
		return err
	}
	if _, err := hotspot.New(config); err != nil {
		return fmt.Errorf("live: %s", strings.TrimPrefix(err.Error(), "hotspot: "))
	}
	return nil
}

// HasShare reports whether any threshold is a share.
func (c Config) HasShare() bool {
	return c.Share > 0 || slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.Share > 0 })
}

// Detector returns the configuration of a detector in source. It fails if a
// rule has an action or a match that there is not.
func (c Config) Detector(source hotspot.Source[string]) (hotspot.Config[string], error) {
	rules, err := c.HotspotRules()
	return hotspot.Config[string]{
		Source:     source,
		TopN:       c.TopN,
		Threshold:  c.Threshold,
		Rate:       c.Rate,
		Share:      c.Share,
		Leave:      c.Leave,
		MinStay:    time.Duration(c.MinStay),
		EnterAfter: c.EnterAfter,
		Certain:    c.Certain,
		Rules:      rules,
	}, err
}

// HotspotRules returns the rules in the form of package hotspot. It fails if a
// rule has an action or a match that there is not.
func (c Config) HotspotRules() ([]hotspot.Rule, error) {
	rules := make([]hotspot.Rule, len(c.Rules))
	for i, r := range c.Rules {
		action, ok := find(r.Action, hotspot.Detect, hotspot.Allow, hotspot.Deny)
		if !ok {
			return nil, fmt.Errorf("live: rules[%d] %q: action = %q: must be detect, allow or deny", i, r.Name, r.Action)
		}
		match, ok := find(r.Match, hotspot.Exact, hotspot.Prefix, hotspot.Suffix, hotspot.Contains, hotspot.Glob, hotspot.Regexp)
		if !ok {
			return nil, fmt.Errorf("live: rules[%d] %q: match = %q: must be exact, prefix, suffix, contains, glob or regexp", i, r.Name, r.Match)
		}
		rules[i] = hotspot.Rule{
			Name: r.Name, Action: action, Match: match, Pattern: r.Pattern,
			Threshold: r.Threshold, Rate: r.Rate, Share: r.Share,
			Window: r.Window, TTL: time.Duration(r.TTL),
		}
	}
	return rules, nil
}

// find returns the value whose lower-case name is text.
func find[T fmt.Stringer](text string, values ...T) (found T, ok bool) {
	for _, v := range values {
		if strings.ToLower(v.String()) == text {
			return v, true
		}
	}
	return found, false
}

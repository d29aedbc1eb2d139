package hotspot

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/heavykeeper-go/heavykeeper"
)

func newRules[K comparable](t testing.TB, rules ...Rule) *ruleset[K] {
	s, err := must(t, Config[K]{Threshold: 1}).compile(rules)
	require.NoError(t, err)
	return s
}

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		match   Match
		pattern string
		yes, no string // texts, separated by spaces; ~ is the empty one
	}{
		{Exact, "a*", "a*", "a ab aa* ~"},
		{Exact, "", "~", "a"},
		{Prefix, "user:", "user: user:1", "user xuser:1 ~"},
		{Suffix, ".jpg", ".jpg a.jpg", "a.jpg? jpg ~"},
		{Contains, "::", ":: a::b ::: a::", "a:b ~"},
		{Glob, "*", "~ a a/b", ""},
		{Glob, "h?llo", "hello hallo hЖllo h\xffllo", "hllo heello hello1 ~"},
		{Glob, "h*llo", "hllo heeeello hllollo h/x/llo", "hllo1 ello"},
		{Glob, "h[ae]llo", "hello hallo", "hillo hllo"},
		{Glob, "h[^e]llo", "hallo h^llo hЖllo", "hello hllo"},
		{Glob, "h[a-c]llo", "hallo hbllo hcllo", "hdllo h-llo"},
		{Glob, "h[a-]llo", "hallo h-llo", "hbllo"},
		{Glob, `h[\]x]llo`, "h]llo hxllo", `h\llo`},
		{Glob, `\*\?\[`, "*?[", `a?[ \*?[`},
		{Glob, "*a*b*c*", "abc xaxbxcx aabbcc", "acb ab ~"},
		{Glob, "**", "~ ab", ""},
		{Glob, "*aa?b", "aaaéb aaéb", "aab aaéa"}, // starts again by the size of what it leaves
		{Glob, "a**b", "ab axb", "a b"},
		{Glob, "", "~", "a"},
		{Regexp, "^v[0-9]+$", "v1 v22", "v 1 xv1 v1x"},
		{Regexp, "b+", "abbc b", "ac ~"},
	} {
		if test.pattern == "" && test.match == Glob {
			continue // a rule has no such pattern
		}
		rules := newRules[string](t, Rule{Match: test.match, Pattern: test.pattern})
		for _, side := range []struct {
			texts string
			want  bool
		}{{test.yes, true}, {test.no, false}} {
			for text := range strings.FieldsSeq(side.texts) {
				text = strings.TrimSuffix(text, "~")
				require.Equal(t, side.want, rules.find(text) != nil, "%v %q of %q", test.match, test.pattern, text)
			}
		}
	}
}

// The first rule that matches decides, whatever kind it is.
func TestRuleOrder(t *testing.T) {
	rules := newRules[string](t,
		Rule{Name: "1", Match: Prefix, Pattern: "ab"},
		Rule{Name: "2", Pattern: "abc", Action: Deny},
		Rule{Name: "3", Pattern: "xyz", Action: Deny},
		Rule{Name: "4", Match: Suffix, Pattern: "z", Action: Allow},
		Rule{Name: "5", Pattern: "xyz", Action: Allow},
		Rule{Name: "6", Pattern: "z", Action: Deny},
		Rule{Name: "7", Match: Glob, Pattern: "?", Action: Deny},
		Rule{Name: "8", Pattern: "q", Action: Allow},
		Rule{Name: "9", Pattern: "qq", Action: Allow},
	)
	for text, want := range map[string]string{
		"abc": "1", "ab": "1", "xyz": "3", "az": "4", "z": "4", "q": "7", "qq": "9", "none": "", "": "",
	} {
		got := ""
		if rule := rules.find(text); rule != nil {
			got = rule.Name
		}
		require.Equal(t, want, got, "%q", text)
	}
	// Exact rules that another comes before are not in the index.
	require.Equal(t, []string{"qq"}, rules.allowed)
	require.Equal(t, []string{"xyz"}, rules.denied)
}

func TestRuleErrors(t *testing.T) {
	for _, test := range []struct {
		rule Rule
		want string // none if the rule is good
	}{
		{Rule{}, ""},
		{Rule{Match: Prefix, Pattern: "x", Threshold: 5, Rate: 1, Share: 1, Window: 9, TTL: time.Second}, ""},
		{Rule{Action: Allow, Pattern: "x", TTL: time.Second}, ""},
		{Rule{Action: 3}, "Action = 3: must be Detect, Allow or Deny"},
		{Rule{Action: -1}, "Action = -1: must be Detect, Allow or Deny"},
		{Rule{Match: 6}, "Match = 6: must be Exact, Prefix, Suffix, Contains, Glob or Regexp"},
		{Rule{Match: -1}, "Match = -1: must be"},
		{Rule{Match: Prefix}, `Pattern = "": would match every key`},
		{Rule{Match: Regexp}, `Pattern = "": would match every key`},
		{Rule{Match: Regexp, Pattern: "("}, `Pattern = "(": error parsing regexp`},
		{Rule{Match: Glob, Pattern: "[a"}, `Pattern = "[a": [ without ]`},
		{Rule{Match: Glob, Pattern: "["}, `Pattern = "[": [ without ]`},
		{Rule{Match: Glob, Pattern: "[]a]"}, `Pattern = "[]a]": [] is empty`},
		{Rule{Match: Glob, Pattern: "[^]"}, `Pattern = "[^]": [] is empty`},
		{Rule{Match: Glob, Pattern: "[b-a]"}, `Pattern = "[b-a]": [ with a range that ends before it begins`},
		{Rule{Match: Glob, Pattern: `a\`}, `Pattern = "a\\": \ at the end`},
		{Rule{Rate: -1}, "Rate = -1: must be finite and not negative"},
		{Rule{Rate: math.NaN()}, "Rate = NaN: must be finite and not negative"},
		{Rule{Rate: math.Inf(1)}, "Rate = +Inf: must be finite and not negative"},
		{Rule{Share: -0.1}, "Share = -0.1: must be at least 0 and at most 1"},
		{Rule{Share: 1.1}, "Share = 1.1: must be at least 0 and at most 1"},
		{Rule{Share: math.NaN()}, "Share = NaN: must be at least 0 and at most 1"},
		{Rule{Window: -1}, "Window = -1: must not be negative"},
		{Rule{Window: 10}, "Window = 10: must be less than the 10 slots of the window"},
		{Rule{TTL: -1}, "TTL = -1ns: must not be negative"},
		{Rule{Action: Deny, TTL: 1}, "TTL = 1ns: is not for Deny"},
		{Rule{Action: Deny, Threshold: 1}, "Action = Deny: has no Threshold, Rate or Share"},
		{Rule{Action: Allow, Rate: 1}, "Action = Allow: has no Threshold, Rate or Share"},
		{Rule{Action: Allow, Window: 1}, "Window = 1: is for Detect only"},
	} {
		test.rule.Name = "bad one"
		rules := []Rule{{Name: "good", Action: Deny, Pattern: "new"}, test.rule}
		config := Config[string]{Threshold: 5, Rules: rules}
		d, err := New(config)
		if test.want == "" {
			require.NoError(t, err, "%+v", test.rule)
			continue
		}
		require.Nil(t, d)
		require.ErrorContains(t, err, `hotspot: rule 2 ("bad one"): `+test.want)

		// All or nothing: what was there before still is.
		d = must(t, Config[string]{Threshold: 5, Rules: []Rule{{Action: Deny, Pattern: "old"}}})
		require.EqualError(t, d.SetRules(rules), err.Error())
		d.ObserveAt(start, "old", 10)
		d.ObserveAt(start, "new", 10)
		require.Equal(t, []string{"new"}, names(d.ScanAt(start).Hot))
	}
}

func TestRulesTheSourceCannotMeasure(t *testing.T) {
	fading, err := heavykeeper.New(heavykeeper.Config[string]{K: 10, Alpha: 0.1})
	require.NoError(t, err)
	for _, test := range []struct {
		source Source[string]
		rule   Rule
		want   string
	}{
		{fading, Rule{Rate: 1, Share: 1}, ""},
		{fading, Rule{Window: 1}, "Window = 1: the Source has no window"},
		{new(exactSource), Rule{Threshold: 1, Rate: 1}, ""}, // it never fades
		{new(exactSource), Rule{Share: 0.5}, "Share = 0.5: the Source has neither a window nor Stats"},
		{new(fadingSource), Rule{Rate: 2}, "Rate = 2: the Source has neither a window nor FadeFactor"},
		{new(fadingSource), Rule{Threshold: 2}, ""},
	} {
		_, err := New(Config[string]{Source: test.source, Threshold: 1, Rules: []Rule{test.rule}})
		if test.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, `hotspot: rule 1 (""): `+test.want)
		}
		if test.want != "" && test.rule.Window == 0 {
			_, err := New(Config[string]{Source: test.source, Rate: test.rule.Rate, Share: test.rule.Share})
			require.EqualError(t, err, "hotspot: "+test.want)
		}
	}
}

func TestAllowNoMoreThanTopN(t *testing.T) {
	var rules []Rule
	for i := range 4 {
		rules = append(rules, Rule{Name: fmt.Sprint("r", i), Action: Allow, Pattern: fmt.Sprint(i)})
	}
	_, err := New(Config[string]{Threshold: 1, TopN: 3, Rules: rules})
	require.EqualError(t, err, `hotspot: rule 4 ("r3"): Action = Allow: more exact keys than TopN = 3`)
	d := must(t, Config[string]{Threshold: 1, TopN: 3, Rules: rules[:3]})
	require.Equal(t, []string{"0", "1", "2"}, names(d.Set().Keys()))
	d.ObserveAt(start, "other", 100)
	d.ObserveAt(start, "2", 1)
	require.Equal(t, []string{"2", "0", "1"}, names(d.ScanAt(start).Hot), "an allowed key is hot whatever comes")
	require.False(t, d.Hot("other"))
}

// Each kind of rule, on each kind of key, is obeyed by Hot, Observe and Scan.
func TestAllowAndDeny(t *testing.T) {
	t.Run("key=string", func(t *testing.T) {
		testAllowAndDeny(t, nil, "/free", "/robots", "/free/1", "/robots/1", "/x")
	})
	t.Run("key=string/text", func(t *testing.T) {
		testAllowAndDeny(t, func(key string) string { return "/" + key }, "free", "robots", "free/1", "robots/1", "x")
	})
	t.Run("key=struct", func(t *testing.T) {
		text := func(c client) string { return c.path }
		testAllowAndDeny(t, text, client{"a", "/free"}, client{"b", "/robots"}, client{"a", "/free/1"}, client{"", "/robots/1"}, client{"a", "/x"})
	})
	t.Run("key=int", func(t *testing.T) {
		text := func(n int) string { return []string{"/free", "/robots", "/free/1", "/robots/1", "/x"}[n] }
		testAllowAndDeny(t, text, 0, 1, 2, 3, 4)
	})
}

func testAllowAndDeny[K comparable](t *testing.T, text func(K) string, free, robots, freeOne, robotsOne, other K) {
	for _, rules := range [][]Rule{
		{{Action: Allow, Pattern: "/free"}, {Action: Deny, Pattern: "/robots"}, {Action: Allow, Match: Prefix, Pattern: "/free/"}, {Action: Deny, Match: Prefix, Pattern: "/robots/"}},
		{{Action: Allow, Match: Glob, Pattern: "/free*"}, {Action: Deny, Match: Glob, Pattern: "/robots*"}},
		{{Action: Allow, Match: Regexp, Pattern: "^/free"}, {Action: Deny, Match: Regexp, Pattern: "^/robots"}},
		{{Action: Allow, Match: Contains, Pattern: "free"}, {Action: Deny, Match: Contains, Pattern: "robots"}},
	} {
		d := must(t, Config[K]{Threshold: 10, Rules: rules, Text: text})
		for range 3 { // the second time from what is remembered, the third with a hot set
			for _, key := range []K{free, freeOne} {
				require.True(t, d.Hot(key), "%v", key)
				require.True(t, d.ObserveAt(start, key, 1), "%v", key)
			}
			for _, key := range []K{robots, robotsOne} {
				require.False(t, d.Hot(key), "%v", key)
				require.False(t, d.ObserveAt(start, key, 100), "%v", key)
			}
			change := d.ScanAt(start.Add(time.Second))
			require.ElementsMatch(t, []K{free, freeOne}, names(change.Hot))
			for _, key := range change.Hot {
				require.True(t, key.Allowed)
				require.False(t, key.Certain)
			}
		}
		require.Zero(t, d.config.Source.Estimate(robots).Count, "it was counted")
		require.Equal(t, uint64(6), d.ScanAt(start).Total)
		require.Equal(t, uint64(600), d.Stats().Denied)
		require.Equal(t, uint64(6), d.Stats().Hits)
		require.Equal(t, uint64(606), d.Stats().Observed)
		d.ObserveAt(start, other, 10)
		require.Contains(t, names(d.ScanAt(start).Hot), other)

		// Rules are replaced at once, with what was remembered of them.
		require.NoError(t, d.SetRules([]Rule{{Action: Deny, Match: Prefix, Pattern: "/x"}, {Action: Allow, Match: Glob, Pattern: "/rob*"}}))
		require.False(t, d.Hot(other), "denied when it was hot")
		require.True(t, d.Hot(robots))
		require.True(t, d.Hot(robotsOne))
		change := d.ScanAt(start.Add(2 * time.Second))
		require.Empty(t, change.Hot, "3 and 3 occurrences are less than 10")
		require.ElementsMatch(t, []K{free, freeOne, other}, names(change.Left))
	}
}

// A denied key that was hot is not so from when SetRules returns, an allowed one
// is, and the next scan reports both.
func TestSetRules(t *testing.T) {
	d := must(t, Config[string]{Threshold: 10, TopN: 2})
	d.ObserveAt(start, "a", 30)
	d.ObserveAt(start, "b", 20)
	d.ScanAt(start)
	list := []Rule{{Name: "no", Action: Deny, Pattern: "a"}, {Name: "yes", Action: Allow, Pattern: "c", TTL: time.Minute}}
	require.NoError(t, d.SetRules(list))
	list[0].Pattern = "b" // the detector has its own
	require.Equal(t, []string{"b", "c"}, names(d.Set().Keys()))
	require.False(t, d.Hot("a"))
	require.True(t, d.Hot("b"))
	require.True(t, d.Hot("c"))
	hot, ok := d.Set().Find("c")
	require.True(t, ok)
	require.Equal(t, HotKey[string]{Key: "c", Allowed: true, Since: start, TTL: time.Minute, Rule: "yes"}, hot)
	_, ok = d.Set().Find("a")
	require.False(t, ok)

	change := d.ScanAt(start.Add(time.Second))
	require.Equal(t, []string{"a"}, names(change.Left))
	require.Equal(t, []string{"c"}, names(change.Entered))
	require.Equal(t, []string{"b", "c"}, names(change.Hot))
	require.Equal(t, 1, change.Hot[0].Rank, "denied keys have no rank")

	// Two allowed keys have both places.
	require.NoError(t, d.SetRules([]Rule{{Action: Allow, Pattern: "c"}, {Action: Allow, Pattern: "d"}}))
	require.ElementsMatch(t, []string{"c", "d"}, names(d.Set().Keys()))
	require.False(t, d.Hot("b"))
	require.NoError(t, d.SetRules(nil))
	change = d.ScanAt(start.Add(2 * time.Second))
	require.Equal(t, []string{"a", "b"}, names(change.Hot))
}

func TestRuleThresholds(t *testing.T) {
	d := must(t, Config[string]{
		Threshold: 100,
		Rules: []Rule{
			{Name: "low", Match: Prefix, Pattern: "low:", Threshold: 10},
			{Name: "high", Match: Prefix, Pattern: "high:", Threshold: 1000},
			{Name: "rate", Match: Prefix, Pattern: "rate:", Rate: 20},
			{Name: "share", Match: Prefix, Pattern: "share:", Share: 0.2},
			{Name: "both", Match: Prefix, Pattern: "both:", Threshold: 50, Rate: 20},
			{Name: "ttl", Match: Prefix, Pattern: "ttl:", TTL: time.Hour},
		},
	})
	// In 10 s: a rate of 20 is 200 occurrences.
	for _, c := range []struct {
		key string
		n   uint32
	}{
		{"x100", 100}, {"x99", 99}, {"low:10", 10}, {"low:9", 9}, {"high:1000", 1000}, {"high:999", 999},
		{"rate:200", 200}, {"rate:199", 199}, {"both:200", 200}, {"both:199", 199}, {"ttl:100", 100}, {"ttl:99", 99},
		{"share:1500", 1500}, {"share:1499", 1499}, {"rest", 1},
	} {
		d.ObserveAt(start, c.key, c.n)
	}
	for i := range 13 { // 7500 in all, of which 1500 is a fifth
		d.ObserveAt(start, fmt.Sprint("filler", i), uint32(99-i/12))
	}
	change := d.ScanAt(start.Add(10 * time.Second))
	require.Equal(t, uint64(7500), change.Total)
	require.ElementsMatch(t, []string{"x100", "low:10", "high:1000", "rate:200", "both:200", "ttl:100", "share:1500"}, names(change.Hot))
	for _, key := range change.Hot {
		require.True(t, key.Certain, key.Key)
		rule, _, ok := strings.Cut(key.Key, ":")
		if !ok {
			rule = ""
		}
		require.Equal(t, rule, key.Rule)
		require.InDelta(t, float64(key.Count)/10, key.Rate, 1e-9)
		require.InDelta(t, float64(key.Count)/7500, key.Share, 1e-9)
	}
}

// A rule with a window counts whole slots, and the present one so far.
func TestRuleWindow(t *testing.T) {
	d := must(t, Config[string]{
		Threshold: 1000, Slots: 10, Slot: time.Second,
		Rules: []Rule{
			{Name: "short", Match: Prefix, Pattern: "short:", Rate: 30, Window: 2},
			{Name: "part", Match: Prefix, Pattern: "part:", Share: 0.5, Window: 1},
		},
	})
	for i := range 8 {
		d.ObserveAt(start.Add(time.Duration(i)*time.Second), "steady", 100)
	}
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	d.ObserveAt(at(3.9), "short:old", 75)
	d.ObserveAt(at(5), "short:new", 75)
	d.ObserveAt(at(7), "short:now", 75)
	d.ObserveAt(at(6), "part:yes", 300)
	// At 7.5, slots 5 and 6 and half of 7.
	change := d.ScanAt(at(7.5))
	require.ElementsMatch(t, []string{"part:yes", "short:new", "short:now"}, names(change.Hot))
	for _, key := range change.Hot {
		switch key.Key {
		case "part:yes": // of 575 in slots 6 and 7
			require.InDelta(t, 300.0/575, key.Share, 1e-9)
			require.InDelta(t, 300/1.5, key.Rate, 1e-9)
		default:
			require.InDelta(t, 30, key.Rate, 1e-9)
		}
		require.True(t, key.Certain)
	}
	require.Equal(t, []string{"part:yes", "short:new"}, names(d.ScanAt(at(8.1)).Left))
}

func TestNames(t *testing.T) {
	require.Equal(t, "Detect Allow Deny unknown (3)", fmt.Sprint(Detect, Allow, Deny, Action(3)))
	require.Equal(t, "Exact Prefix Suffix Contains Glob Regexp unknown (-1)", fmt.Sprint(Exact, Prefix, Suffix, Contains, Glob, Regexp, Match(-1)))
}

// What is remembered of one key is not taken for another's, though they share a
// word.
func TestVerdicts(t *testing.T) {
	v := new(verdicts)
	require.Zero(t, v.find(0), "nothing is remembered")
	v.note(4, denied)
	require.Equal(t, denied, v.find(4))
	require.Equal(t, denied, v.find(4|3), "the same 62 bits")
	require.Zero(t, v.find(8))
	v.note(8, cold)
	require.Equal(t, cold, v.find(8))
	require.Zero(t, v.find(4), "its place was taken")
	v.note(^uint64(0), allowed)
	require.Equal(t, allowed, v.find(^uint64(0)))

	// Twice as many keys as there are words, and none of them is mistaken.
	d := must(t, Config[int]{Threshold: 1, Rules: []Rule{{Action: Allow, Match: Suffix, Pattern: "3"}}})
	for range 2 {
		for key := range 2 << verdictBits {
			require.Equal(t, key%10 == 3, d.Hot(key), "%d", key)
		}
	}
}

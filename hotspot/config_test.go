package hotspot

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		change func(*Config[string])
		want   string // part of the error, none if the configuration is good
	}{
		{func(c *Config[string]) {}, ""},
		{func(c *Config[string]) { c.TopN = -1 }, "hotspot: TopN = -1: must be positive"},
		{func(c *Config[string]) { c.TopN = math.MinInt }, "must be positive"},
		{func(c *Config[string]) { c.TopN = 1 }, ""},
		{func(c *Config[string]) { c.TopN = 1<<20 + 1 }, "hotspot: TopN = 1048577: must be at most 1048576"},
		{func(c *Config[string]) { c.TopN = math.MaxInt }, "must be at most 1048576"},
		{func(c *Config[string]) { c.Threshold = 0 }, "hotspot: Threshold, Rate and Share = 0: one of them must be set"},
		{func(c *Config[string]) { c.Threshold = math.MaxUint64 }, ""},
		{func(c *Config[string]) { c.Rate = -1 }, "hotspot: Rate = -1: must be finite and not negative"},
		{func(c *Config[string]) { c.Rate = math.NaN() }, "hotspot: Rate = NaN: must be finite"},
		{func(c *Config[string]) { c.Rate = math.Inf(1) }, "hotspot: Rate = +Inf: must be finite"},
		{func(c *Config[string]) { c.Rate = math.MaxFloat64 }, ""},
		{func(c *Config[string]) { c.Share = -0.1 }, "hotspot: Share = -0.1: must be at least 0 and at most 1"},
		{func(c *Config[string]) { c.Share = 1 }, ""},
		{func(c *Config[string]) { c.Share = 1.000001 }, "hotspot: Share = 1.000001: must be"},
		{func(c *Config[string]) { c.Share = math.NaN() }, "hotspot: Share = NaN: must be"},
		{func(c *Config[string]) { c.Leave = -0.1 }, "hotspot: Leave = -0.1: must be more than 0 and at most 1"},
		{func(c *Config[string]) { c.Leave = 1 }, ""},
		{func(c *Config[string]) { c.Leave = 1.1 }, "hotspot: Leave = 1.1: must be"},
		{func(c *Config[string]) { c.Leave = math.NaN() }, "hotspot: Leave = NaN: must be"},
		{func(c *Config[string]) { c.Leave = math.SmallestNonzeroFloat64 }, ""},
		{func(c *Config[string]) { c.MinStay = -1 }, "hotspot: MinStay = -1ns: must not be negative"},
		{func(c *Config[string]) { c.MinStay = math.MaxInt64 }, ""},
		{func(c *Config[string]) { c.EnterAfter = -1 }, "hotspot: EnterAfter = -1: must be positive"},
		{func(c *Config[string]) { c.EnterAfter = math.MaxInt }, ""},
		{func(c *Config[string]) { c.Slot = -1 }, "hotspot: Slot = -1ns: must be positive"},
		{func(c *Config[string]) { c.Slot = math.MaxInt64 }, "hotspot: Slot = 2562047h47m16.854775807s: Slots x Slot must be"},
		{func(c *Config[string]) { c.Slots = -1 }, "hotspot: Slots = -1: must be positive"},
		{func(c *Config[string]) { c.Slots = 65537 }, "hotspot: Slots = 65537: must be at most 65536"},
		{func(c *Config[string]) { c.Source = new(exactSource) }, ""},
		{func(c *Config[string]) { c.Source, c.Slots = new(exactSource), 10 }, "hotspot: Slots = 10: is for the default Source"},
		{func(c *Config[string]) { c.Rules = []Rule{{Name: "x", Window: -1}} }, `hotspot: rule 1 ("x"): Window = -1: must not be negative`},
	} {
		config := Config[string]{Threshold: 3}
		test.change(&config)
		d, err := New(config)
		if test.want == "" {
			require.NoError(t, err, "%+v", config)
			require.NotNil(t, d)
			d.ObserveAt(start, "a", 5)
			d.ScanAt(start)
			continue
		}
		require.ErrorContains(t, err, test.want)
		require.Nil(t, d)
	}
}

func TestDefaults(t *testing.T) {
	c, err := Config[string]{Rate: 1}.resolve()
	require.NoError(t, err)
	require.Equal(t, []int{100, 10, 1}, []int{c.TopN, c.Slots, c.EnterAfter})
	require.Equal(t, 3*time.Second, c.Slot)
	require.Equal(t, 0.8, c.Leave)
}

func TestLimit(t *testing.T) {
	of := traffic{events: 1000, span: 10 * time.Second, measured: 10 * time.Second}
	for _, test := range []struct {
		limit limit
		leave float64
		least uint64 // that meets it
	}{
		{limit{threshold: 100}, 1, 100},
		{limit{threshold: 100}, 0.8, 80},
		{limit{threshold: 99}, 0.8, 80}, // 79.2
		{limit{threshold: 1}, 0.5, 1},
		{limit{threshold: 1<<63 + 1}, 1, 1<<63 + 1},
		{limit{threshold: math.MaxUint64}, 1, math.MaxUint64},
		{limit{rate: 5}, 1, 50},
		{limit{rate: 5}, 0.5, 25},
		{limit{share: 0.25}, 1, 250},
		{limit{share: 0.25}, 0.5, 125},
		{limit{share: 1}, 1, 1000},
		{limit{threshold: 100, rate: 5, share: 0.05}, 1, 100},
		{limit{threshold: 10, rate: 20, share: 0.05}, 1, 200},
		{limit{threshold: 10, rate: 2, share: 0.5}, 0.5, 250},
	} {
		require.True(t, test.limit.met(test.least, of, test.leave), "%+v", test)
		require.False(t, test.limit.met(test.least-1, of, test.leave), "%+v", test)
	}
	require.False(t, limit{share: 0.1}.met(0, traffic{}, 1), "a share of nothing")
	require.False(t, limit{rate: 0.1}.met(1, traffic{}, 1), "a rate of no time")
	require.Equal(t, 1.0, traffic{events: 5}.share(6), "an update came between the two reads")
	require.Zero(t, traffic{}.share(6))
}

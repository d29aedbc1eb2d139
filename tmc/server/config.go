package server

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Config holds the parameters of a [Server]. Consumer, Channel, Redis and Name
// are required; the zero value of every other field selects its default.
type Config struct {
	// Consumer receives the reports. It stays the caller's, as the Channel and
	// the client do.
	Consumer wire.Consumer

	// Channel pushes the hot sets.
	Channel wire.Channel

	// Redis is where servers meet and where the heat goes.
	Redis redis.UniversalClient

	// Prefix begins the names of all keys. Default "tmc".
	Prefix string

	// Name is the server's, unlike those of all others, and of itself when it
	// ran before: what that had found counts for a window. At most
	// [wire.MaxNode] bytes.
	Name string

	// Live has the configuration of applications. Default nil: all have Base.
	Live live.Source

	// Base is the configuration of applications as far as Live has none.
	// Default: [live.Default].
	Base *live.Config

	// Slots and Slot are the window: 2 to 1000 slots of 10 ms to 1 h. Scans
	// come once a Slot. Default 10 x 3 s.
	Slots int
	Slot  time.Duration

	// Heat is how many of the hottest keys of an application are written to
	// its sorted set, 1 to 10,000. Default 100.
	Heat int

	// MaxApps is the most applications at a time, 1 to 100,000. Reports of
	// others are refused and counted. Default 100.
	MaxApps int

	// Idle is how long an application is kept that sends no reports, at least
	// the window. Default 1 h.
	Idle time.Duration

	// Refresh is after how many slots a hot set is pushed again that has not
	// changed, 1 to 10,000. Default 10.
	Refresh int

	// Logger is told what an operator should know. Default [slog.Default].
	Logger *slog.Logger
}

// resolve fills in defaults and reports the first parameter out of range.
func (c Config) resolve() (Config, error) {
	switch {
	case c.Consumer == nil:
		return c, errors.New("server: Consumer = nil: is required")
	case c.Channel == nil:
		return c, errors.New("server: Channel = nil: is required")
	case c.Redis == nil:
		return c, errors.New("server: Redis = nil: is required")
	case c.Name == "" || len(c.Name) > wire.MaxNode:
		return c, fmt.Errorf("server: Name = %.40q: must have 1 to %d bytes", c.Name, wire.MaxNode)
	}
	fill(&c.Prefix, "tmc")
	fill(&c.Slots, 10)
	fill(&c.Slot, 3*time.Second)
	fill(&c.Heat, 100)
	fill(&c.MaxApps, 100)
	fill(&c.Idle, time.Hour)
	fill(&c.Refresh, 10)
	fill(&c.Logger, slog.Default())
	if c.Base == nil {
		base := live.Default()
		c.Base = &base
	}
	for _, err := range []error{
		between("Slots", c.Slots, 2, 1000),
		between("Slot", c.Slot, 10*time.Millisecond, time.Hour),
		between("Heat", c.Heat, 1, maxHeat),
		between("MaxApps", c.MaxApps, 1, 100_000),
		between("Idle", c.Idle, c.window(), 1000*time.Hour),
		between("Refresh", c.Refresh, 1, 10_000),
	} {
		if err != nil {
			return c, err
		}
	}
	if err := c.Base.Validate(c.Slots); err != nil {
		return c, fmt.Errorf("server: Base: %w", err)
	}
	return c, nil
}

// window returns the length of the window.
func (c *Config) window() time.Duration { return time.Duration(c.Slots) * c.Slot }

func fill[T comparable](v *T, def T) {
	if *v == *new(T) {
		*v = def
	}
}

func between[T int | time.Duration](name string, v, least, most T) error {
	if v < least || v > most {
		return fmt.Errorf("server: %s = %v: must be %v to %v", name, v, least, most)
	}
	return nil
}

package tmc

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"time"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Options are the parameters of [Attach]. The zero value of every field
// selects its default; all of them zero is a working choice for an application
// that has a Redis and nothing else.
type Options struct {
	// App is the name of the application. Its nodes, which have the same name,
	// tell each other of writes. Applications that share keys of a Redis
	// database must have one name. At most 128 letters, digits and -_.:
	// Default "default".
	App string

	// Node is the name of this process in its metrics, which should be unlike
	// those of others there. At most 128 bytes. Default: the host's name and
	// something random.
	Node string

	// Channel carries invalidations and, in cluster mode, hot sets. It stays
	// the caller's to close, after the Cache. Default: Redis pub/sub by way of
	// the client.
	Channel wire.Channel

	// Alone says that no other process writes what is served locally, so that
	// there is no Channel. What others write all the same is seen when TTL has
	// passed.
	Alone bool

	// Publisher turns cluster mode on: counts of reads go to servers by way
	// of it, and the hot set comes back on the Channel. It stays the caller's
	// to close, after the Cache. Default nil: embedded mode, in which the hot
	// keys of this process are found in it, by Hot.
	Publisher wire.Publisher

	// ReportEvery is how often counts are sent, 10 ms to 1 min. Default
	// 250 ms. ReportKeys is how many distinct keys, of 256 KiB together, are
	// counted until then, at most, before a report is sent early, and
	// ReportQueue how many reports may wait to be sent; what does not find a
	// place is dropped and counted, and so are reads of keys of more than
	// wire.MaxKey bytes. Defaults 8192 and 16. For cluster mode.
	ReportEvery time.Duration
	ReportKeys  int
	ReportQueue int

	// Hot says from when on a key is hot. If none of its thresholds is set,
	// Rate is 100, reads a second, and if its window is not, that has 10 slots
	// of 1 s. See [hotspot.Config]. Its Source must be nil. For embedded mode:
	// in cluster mode the servers decide.
	Hot hotspot.Config[string]

	// CacheBytes is the most memory that local copies take, 64 KiB at least.
	// Default 64 MiB. ValueBytes is the size of the largest value, or hash,
	// of which a copy is kept. Default 1 MiB, or CacheBytes / 16 if that is
	// less.
	CacheBytes int64
	ValueBytes int64

	// TTL is how long a copy is served from when its read began, 1 ms to 24 h,
	// unless the rule of its key has a TTL. It limits staleness when all else
	// fails. Default 3 s.
	TTL time.Duration

	// Absent has it kept too that a key, or a field, does not exist. By
	// default that is asked of Redis each time.
	Absent bool

	// IgnoreExpiry saves the PTTL that goes with each read of which a copy may
	// be made. A key that expires in Redis may then be served for up to TTL more.
	IgnoreExpiry bool

	// ServeWhenDown has copies served, for up to TTL, while the channel is
	// down. By default all reads go to Redis then. Either way nothing from
	// before is served after the channel has come back.
	ServeWhenDown bool

	// ReplicaReads permits a client that reads from replicas. What a replica
	// has not heard of yet can then be copied after it was written elsewhere,
	// and served for up to TTL; even on the node that wrote it. Clients of
	// redis.NewFailoverClient with ReplicaOnly do not show that they read so: set
	// it for them by yourself, or do not attach them.
	ReplicaReads bool

	// Local says which keys may be served locally. It must be fast, safe for
	// concurrent use, and say the same on all nodes: writes of other keys are
	// told to nobody. Default nil: all keys.
	Local func(key string) bool

	// Live has configurations that change while all runs. That of App replaces
	// Hot, but for its window, and CacheBytes and TTL; what its document leaves
	// out is as these say. Default nil: nothing changes.
	Live live.Source

	// Logger is told of what an operator should know. Default [slog.Default].
	Logger *slog.Logger

	// life is Node with something random. By it the nodes tell whose messages are
	// whose: two processes may have been given one Node.
	life string
}

const (
	minCacheBytes = 64 << 10
	maxTTL        = 24 * time.Hour
	maxNode       = wire.MaxNode / 2
)

// resolve fills in defaults and reports the first parameter out of range.
func (o Options) resolve() (Options, error) {
	fill(&o.App, "default")
	if err := wire.CheckApp(o.App); err != nil {
		return o, fmt.Errorf("tmc: %s", strings.TrimPrefix(err.Error(), "wire: "))
	}
	if o.Node == "" {
		o.Node = newNode()
	}
	if len(o.Node) > maxNode {
		return o, fmt.Errorf("tmc: Node = %.40q: must have at most %d bytes, not %d", o.Node, maxNode, len(o.Node))
	}
	o.life = o.Node + "/" + rand.Text()
	if o.Alone && o.Channel != nil {
		return o, fmt.Errorf("tmc: Alone = true: must be false with a Channel")
	}
	if o.Alone && o.Publisher != nil {
		return o, fmt.Errorf("tmc: Alone = true: must be false with a Publisher, whose hot set comes on a Channel")
	}
	if o.Hot.Source != nil {
		return o, fmt.Errorf("tmc: Hot.Source = %T: must be nil", o.Hot.Source)
	}
	if h := &o.Hot; h.Threshold == 0 && h.Rate == 0 && h.Share == 0 {
		h.Rate = 100
	}
	if h := &o.Hot; h.Slots == 0 && h.Slot == 0 {
		h.Slots, h.Slot = 10, time.Second
	}
	fill(&o.Logger, slog.Default())
	if err := o.resolveReports(); err != nil {
		return o, err
	}
	return o, o.resolveCache()
}

func (o *Options) resolveReports() error {
	fill(&o.ReportEvery, 250*time.Millisecond)
	fill(&o.ReportKeys, 8192)
	fill(&o.ReportQueue, 16)
	if err := between("ReportEvery", o.ReportEvery, 10*time.Millisecond, time.Minute); err != nil {
		return err
	}
	if err := between("ReportKeys", o.ReportKeys, 1, 1<<20); err != nil {
		return err
	}
	return between("ReportQueue", o.ReportQueue, 1, 1<<16)
}

func (o *Options) resolveCache() error {
	fill(&o.CacheBytes, 64<<20)
	fill(&o.TTL, 3*time.Second)
	if err := between("CacheBytes", o.CacheBytes, minCacheBytes, math.MaxInt64/2); err != nil {
		return err
	}
	fill(&o.ValueBytes, min(1<<20, o.CacheBytes/16))
	if err := between("ValueBytes", o.ValueBytes, 1, min(o.CacheBytes, 1<<30)); err != nil {
		return err
	}
	return between("TTL", o.TTL, time.Millisecond, maxTTL)
}

func fill[T comparable](v *T, def T) {
	if *v == *new(T) {
		*v = def
	}
}

func between[T int | int64 | time.Duration](name string, v, least, most T) error {
	if v < least || v > most {
		return fmt.Errorf("tmc: %s = %v: must be %v to %v", name, v, least, most)
	}
	return nil
}

// newNode returns a name that no other process has.
func newNode() string {
	host, err := os.Hostname()
	if err != nil || len(host) > 64 {
		host = "node"
	}
	return host + "-" + rand.Text()
}

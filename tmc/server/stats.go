package server

import (
	"time"

	"github.com/heavykeeper-go/heavykeeper/hotspot"
	"github.com/heavykeeper-go/heavykeeper/tmc/live"
	"github.com/heavykeeper-go/heavykeeper/tmc/transport"
	"github.com/heavykeeper-go/heavykeeper/tmc/wire"
)

// Stats tells what a [Server] has done since it was new.
type Stats struct {
	// Name is the server's.
	Name string

	// Transport is what the Consumer tells of itself, if it does.
	Transport transport.Stats

	// Refused counts the reports of applications that there was no place for,
	// and RefusedOccurrences what they counted.
	Refused, RefusedOccurrences uint64

	// Scans counts the scans. LastScan is the time of the latest, and ScanTime
	// how long it took, pushes included.
	Scans    uint64
	LastScan time.Time
	ScanTime time.Duration

	// Apps are the applications, by name.
	Apps []AppStats
}

// AppStats tells of an application on one server.
type AppStats struct {
	// Name is the application's.
	Name string

	// Reports is the number of reports received, in parts, and Occurrences
	// what of them was counted. Late are occurrences that were not: they were
	// older than the window. Dropped are those that SDKs could not report.
	Reports, Occurrences, Late, Dropped uint64

	// Detector is what the application's detector tells of itself. It begins
	// anew when the configuration has it replaced.
	Detector hotspot.Stats

	// Hot is the hot set that this server has put together last, of the parts
	// of Servers, and Version its version. Heat are the hottest keys.
	Hot     []wire.HotKey
	Heat    []wire.HotKey
	Version uint64
	Servers []ServerPart

	// Pushes counts the hot sets that this server has tried to push, and
	// PushFailures those that it could not. Exchanges and ExchangeFailures are
	// the same of meeting the other servers.
	Pushes, PushFailures, Exchanges, ExchangeFailures uint64

	// Config is the configuration, and ConfigStatus how following it goes.
	Config       live.Config
	ConfigStatus live.Status
}

// ServerPart tells what a server has found of an application.
type ServerPart struct {
	Name string
	Age  time.Duration // since it did
	Hot  int           // keys that it found hot
}

// Stats returns what s has done so far. O(applications x their hot keys).
func (s *Server) Stats() Stats {
	stats := Stats{
		Name:               s.config.Name,
		Refused:            s.refused.Load(),
		RefusedOccurrences: s.refusedCounts.Load(),
		Scans:              s.scans.Load(),
		ScanTime:           time.Duration(s.scanTime.Load()),
	}
	if at := s.lastScan.Load(); at != 0 {
		stats.LastScan = time.Unix(0, at)
	}
	if m, ok := s.config.Consumer.(transport.Meter); ok {
		stats.Transport = m.Stats()
	}
	for _, a := range s.applications() {
		stats.Apps = append(stats.Apps, a.stats())
	}
	return stats
}

func (a *application) stats() AppStats {
	state := a.state.Load()
	stats := AppStats{
		Name:             a.name,
		Reports:          a.reports.Load(),
		Occurrences:      a.occurrences.Load(),
		Late:             a.late.Load(),
		Dropped:          a.dropped.Load(),
		Detector:         state.detector.Stats(),
		Pushes:           a.pushes.Load(),
		PushFailures:     a.pushFails.Load(),
		Exchanges:        a.exchanges.Load(),
		ExchangeFailures: a.exchangeFails.Load(),
		Config:           state.config,
	}
	if a.follow != nil {
		stats.ConfigStatus = a.follow.Status()
	}
	if c := a.latest.Load(); c != nil {
		stats.Hot, stats.Heat, stats.Version, stats.Servers = c.hot, c.heat, c.version, c.servers
	}
	return stats
}

// Package server finds the hot keys of applications from the reports of their
// SDKs, as one of a cluster of servers that share the work.
//
// A [Server] receives its share of the reports through a [wire.Consumer] and
// has a detector for each application, over a sliding window. Once a slot it
// scans them, and pushes each application's hot set through a [wire.Channel].
// The heat of the hottest keys goes to a sorted set in Redis.
//
// # How several servers push one hot set
//
// Transports give each key to one server, so that servers have different keys
// of the same application, and each detects by itself what of its own is hot.
// They meet in Redis. After a scan a server writes what it has found, its part,
// to the hash prefix:{app}:parts, and reads all parts, in one step that also
// gives out the next version number. What it pushes is the union of the parts,
// by descending count, up to the application's TopN, under that version.
//
// There is no leader. Of two servers the one with the greater version has read
// the parts later, so it has seen what the other had; and neither a channel nor
// a subscriber lets a lower version follow a greater one. So whoever comes last
// is right, and a server that stops halfway does no harm.
//
// A part counts for one window after it was written. When a server is gone,
// the keys it had found stay hot until another that has taken over its share
// has seen them for long enough to say itself whether they are. A key that two
// parts have, since it moved, has the sum of their counts.
//
// A threshold that is a share is one of the traffic of all servers, as far as
// their parts tell: of the scan before.
//
// Version numbers are microseconds of Redis's clock, or the last plus one: the
// last that Redis or the server knows of. So they go on growing when Redis has
// lost them, or its place is taken by one whose clock is behind.
//
// # Times
//
// A report counts in the slots that its node's clock says, as long as that is
// not ahead of this server's and no further behind than the window. So reports
// that had to wait, while servers were down, count where they belong.
package server

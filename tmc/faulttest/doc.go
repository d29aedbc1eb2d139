// Package faulttest has no code but its test, which runs the whole system: the
// real redis-server and etcd, two tmc-servers and three processes with the SDK,
// all on loopback and under load. It kills each part in turn and starts it
// again, stops it, slows it down and cuts it off, and prints what came of each
// in a table:
//
//	go test -v -short ./faulttest -faults  # a few faults, half a minute; CI plays these
//	go test -v ./faulttest -faults         # about two minutes
//	go test -v ./faulttest -faults -long   # each fault for longer, and on both channels
//	go test -v ./faulttest -faults -run 'TestFaults/channel_on_Redis/cut_off'
//
// What it demands of each fault: no request fails that a plain client of the
// same Redis would have had served at that time; no read returns what was
// overwritten longer ago than the bound; after its own write a node reads that;
// nothing leaks; all nodes serve copies again in the end, and it prints how soon;
// reads that were not counted are counted as lost or dropped.
//
// It works by the clock, so it runs only if asked to, on a machine with nothing
// else to do. It is skipped where the servers are not installed (Debian: redis-server,
// etcd-server), unless TMC_REQUIRE_SERVERS=1.
package faulttest

// Command hotkeys reads a stream and shows its hot keys: the lines, fields or
// other parts of lines that occur most often, in fixed memory and with bounds on
// every count.
//
//	hotkeys -k 20 < access.log               # lines
//	hotkeys -f 7 access.log access.log.1.gz  # paths of a web server's log
//	tail -f access.log | hotkeys -f 1 -window 30s
//	redis-cli monitor | hotkeys -monitor -window 10s
//
// Run hotkeys -h for the manual. Install it with
//
//	go install github.com/heavykeeper-go/heavykeeper/cmd/hotkeys@latest
package main

// Package bench compares HeavyKeeper with other top-K algorithms at equal
// memory.
//
//	go test -bench . ./bench
//
// runs them on made streams of known skew and on a real text, and prints for
// each, beside the time of one update in ns/op: the precision of the top K, the
// average relative error of its counts (are), and the bytes it took. What these
// are exactly is said in package measure; how memory is made equal, in package
// baseline. Memory includes everything but the keys' own text.
//
//	KEYS=file go test -bench Keys ./bench
//
// does the same on a file of yours, one key a line, plain or gzip (.gz). Without
// KEYS it counts the text.
//
//	TRACES=folder go test -run Traces -v ./bench
//
// checks accuracy, and the bounds of every key, on each *.txt.gz (words) and
// *.u32.gz (little-endian integers) of a folder. Relative names are looked up
// here and in the module's root.
//
//	go -C bench/report run .
//
// compares many more algorithms and streams, and writes REPORT.md with plots.
package bench

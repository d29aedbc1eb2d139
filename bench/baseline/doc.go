// Package baseline holds the algorithms that HeavyKeeper is compared with, each
// written plainly from the paper it cites, with its known guarantee as a test.
//
// # Equal memory
//
// All algorithms get the same number of bytes and make the most of them: each
// constructor takes a budget and a K and builds the largest structure that
// Bytes says fits. Bytes counts all that grows with the size: cells, counters,
// keys, heap, links and the index that finds a key's entry. Left out are what a
// string key points to, and a fixed few words an object.
//
// To be lean is part of the contest, so the layouts here are lean ones: 32-bit
// counters, slot numbers for pointers, arrays side by side without padding,
// and an index of 8 bytes a key rather than a Go map of about 25. A textbook
// implementation with pointers and maps needs two to four times as much.
package baseline

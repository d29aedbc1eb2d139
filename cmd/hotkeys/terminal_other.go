//go:build !(linux || darwin || freebsd || netbsd || dragonfly)

package main

import "os"

// windowSize takes nothing for a terminal: without control sequences that are
// known to work, output is plain.
func windowSize(*os.File) (size, bool) { return size{}, false }

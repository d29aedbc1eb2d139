package main

import (
	"os"
	"strconv"
)

// size is that of a terminal, in characters.
type size struct{ columns, lines int }

// terminalOf returns the size of the terminal that w is, if it is one.
func terminalOf(w any) (size, bool) {
	f, ok := w.(*os.File)
	if !ok {
		return size{}, false
	}
	s, ok := windowSize(f)
	if !ok || os.Getenv("TERM") == "dumb" {
		return size{}, false
	}
	if s.columns <= 0 {
		s.columns = fromEnvironment("COLUMNS", 80)
	}
	if s.lines <= 0 {
		s.lines = fromEnvironment("LINES", 24)
	}
	return s, true
}

func fromEnvironment(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

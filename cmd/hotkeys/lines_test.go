package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// readAll returns the lines of a stream, which must not be more than a million.
func readAll(l *lines, r io.Reader) []string {
	var all []string
	l.reset(r)
	for line, ok := l.next(); ok && len(all) < 1e6; line, ok = l.next() {
		all = append(all, string(line))
	}
	return all
}

// modelLines returns what lines should of a text.
func modelLines(text string, longest int) (all []string, cut uint64) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if len(line) > longest {
			line, cut = line[:longest], cut+1
		}
		all = append(all, line)
	}
	return all, cut
}

func TestLines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		size := 1 + r.IntN(12)
		text := make([]byte, r.IntN(60))
		for j := range text {
			text[j] = "a\n\rbcdefghijk"[r.IntN(2+r.IntN(11))]
		}
		want, cut := modelLines(string(text), size)
		for name, reader := range map[string]io.Reader{
			"whole":       strings.NewReader(string(text)),
			"one by one":  iotest.OneByteReader(strings.NewReader(string(text))),
			"half":        iotest.HalfReader(strings.NewReader(string(text))),
			"end at once": iotest.DataErrReader(strings.NewReader(string(text))),
		} {
			l := &lines{buffer: make([]byte, size+2)}
			require.Equal(t, want, readAll(l, reader), "%d: %q by %d, %s", i, text, size, name)
			require.NoError(t, l.failure())
			require.Equal(t, cut, l.cut, "%d: %q by %d, %s", i, text, size, name)
		}
	}
}

func TestLinesFail(t *testing.T) {
	failure := errors.New("failure")
	l := newLines()
	got := readAll(l, io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(failure)))
	require.Equal(t, []string{"a"}, got, "half a line is none")
	require.Equal(t, failure, l.failure())

	require.Equal(t, []string{"c"}, readAll(l, strings.NewReader("c")), "the next file")
	require.NoError(t, l.failure())

	require.Empty(t, readAll(l, stuck{}))
	require.Equal(t, io.ErrNoProgress, l.failure())
}

// stuck reads nothing, again and again.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

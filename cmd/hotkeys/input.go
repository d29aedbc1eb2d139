package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// input is the files that the command line names, read one after another.
type input struct {
	stdin io.Reader
	names []string     // "-" is stdin
	read  atomic.Int64 // bytes of all files, as they are stored
}

func newInput(names []string, stdin io.Reader) *input {
	if len(names) == 0 {
		names = []string{"-"}
	}
	return &input{stdin: stdin, names: names}
}

// size returns how many bytes there are to read, if that is known: if all files
// are regular.
func (in *input) size() (n int64, known bool) {
	for _, name := range in.names {
		var info os.FileInfo
		var err error
		var offset int64
		if name != "-" {
			info, err = os.Stat(name)
		} else if f, ok := in.stdin.(*os.File); ok {
			info, err = f.Stat()
			offset, _ = f.Seek(0, io.SeekCurrent)
		} else {
			return 0, false
		}
		if err != nil {
			continue // will be reported, and not read
		}
		if !info.Mode().IsRegular() {
			return 0, false
		}
		n += max(info.Size()-offset, 0)
	}
	return n, n > 0
}

// open opens a file and unpacks it if it is in gzip format, whatever its name.
func (in *input) open(name string) (io.Reader, io.Closer, error) {
	file, closer := in.stdin, io.Closer(io.NopCloser(nil))
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		file, closer = f, f
	}
	const chunk = 64 << 10
	stored := bufio.NewReaderSize(&countedReader{file, &in.read}, chunk)
	if start, _ := stored.Peek(2); string(start) != "\x1f\x8b" {
		return stored, closer, nil
	}
	unpacked, err := gzip.NewReader(stored)
	if err != nil {
		closer.Close()
		return nil, nil, fmt.Errorf("%s: %w", title(name), err)
	}
	return unpacked, closer, nil
}

// title is how messages call a file.
func title(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

// countedReader adds what it reads to n.
type countedReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

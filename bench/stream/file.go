package stream

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Opticks returns the words of Newton's "Opticks" (1704), a text that the Go
// distribution carries as test data: 80,000 words, 6,000 distinct. Some
// packages of Go leave it out, which is an error that wraps [os.ErrNotExist].
func Opticks() ([]string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("stream: go env GOROOT: %w", err)
	}
	return Words(filepath.Join(strings.TrimSpace(string(root)), "src", "testdata", "Isaac.Newton-Opticks.txt"))
}

// Words returns the white-space separated words of a text file, in lower case
// and without punctuation around them.
func Words(path string) ([]string, error) {
	return scan(path, bufio.ScanWords, func(word string) string {
		return strings.ToLower(strings.Trim(word, ".,;:!?()[]{}\"'`*_-"))
	})
}

// Lines returns the lines of a file, each a key. Empty lines are left out.
func Lines(path string) ([]string, error) {
	return scan(path, bufio.ScanLines, func(line string) string { return line })
}

// Uint32s returns the keys of a file of 32-bit little-endian integers.
func Uint32s(path string) ([]uint64, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("stream: %s: %w", path, err)
	}
	if len(data)%4 != 0 {
		return nil, fmt.Errorf("stream: %s: %d bytes: not a multiple of 4", path, len(data))
	}
	keys := make([]uint64, len(data)/4)
	for i := range keys {
		keys[i] = uint64(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return keys, nil
}

// Find returns path, or where there is no such file and path is relative, path
// as seen from the folder base. Tests do not run in the folder where a user
// named the file.
func Find(path, base string) string {
	if _, err := os.Stat(path); err == nil || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// scan returns the tokens of a file after clean, without the empty ones. Equal
// tokens share one string.
func scan(path string, split bufio.SplitFunc, clean func(string) string) ([]string, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var tokens []string
	seen := map[string]string{}
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	scanner.Split(split)
	for scanner.Scan() {
		token := clean(scanner.Text())
		if token == "" {
			continue
		}
		if known, ok := seen[token]; ok {
			token = known
		} else {
			seen[token] = token
		}
		tokens = append(tokens, token)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("stream: %s: %w", path, err)
	}
	return tokens, nil
}

// open opens a file and, if its name ends in .gz, unpacks it.
func open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	if !strings.HasSuffix(path, ".gz") {
		return f, nil
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("stream: %s: %w", path, err)
	}
	return unpacked{z, f}, nil
}

type unpacked struct {
	*gzip.Reader
	file *os.File
}

func (u unpacked) Close() error { return u.file.Close() }

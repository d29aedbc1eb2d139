package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/heavykeeper-go/heavykeeper"
)

// maxSketch is the size of the largest file that is taken for a sketch.
const maxSketch = 1 << 30

// readSketch returns the sketch in a file.
func readSketch(name string) (*heavykeeper.HeavyKeeper[string], error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSketch+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSketch {
		return nil, fmt.Errorf("%s: more than %d bytes: not a sketch of -save", name, maxSketch)
	}
	h := new(heavykeeper.HeavyKeeper[string])
	if err := h.UnmarshalBinary(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return h, nil
}

// writeSketch writes a sketch to a file: all of it, or else the file remains
// what it was. Its mode does in any case, and so do links to it.
func writeSketch(name string, h *heavykeeper.HeavyKeeper[string]) error {
	data, err := h.MarshalBinary()
	if err != nil {
		return err
	}
	if len(data) > maxSketch {
		return fmt.Errorf("%s: the sketch has %d bytes, more than the %d that -load reads", name, len(data), maxSketch)
	}
	info, err := os.Stat(name)
	switch exists := err == nil; {
	case exists && !info.Mode().IsRegular():
		return writeInto(name, os.O_WRONLY, 0, data) // a pipe or device cannot be replaced
	case exists:
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	case isLink(name): // to what is to be made
		return writeInto(name, os.O_WRONLY|os.O_CREATE, 0o666, data)
	}
	part := name + "." + strconv.Itoa(os.Getpid()) + ".part"
	mode := os.FileMode(0o666)
	if info != nil { // nor can others read the part of a file that they cannot
		mode = info.Mode().Perm()
	}
	err = writeInto(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode, data)
	if err == nil && info != nil {
		err = os.Chmod(part, mode) // it was created without what the umask takes
	}
	if err == nil {
		err = os.Rename(part, name)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		os.Remove(part)
	}
	return err
}

func isLink(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

func writeInto(name string, flags int, mode os.FileMode, data []byte) error {
	f, err := os.OpenFile(name, flags, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if flags&os.O_CREATE != 0 && err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

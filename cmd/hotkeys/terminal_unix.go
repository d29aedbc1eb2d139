//go:build linux || darwin || freebsd || netbsd || dragonfly

package main

import (
	"os"
	"syscall"
	"unsafe"
)

// windowSize asks the terminal that f is for its size. Only terminals answer.
func windowSize(f *os.File) (size, bool) {
	var w struct{ lines, columns, _, _ uint16 }
	raw, err := f.SyscallConn()
	if err != nil {
		return size{}, false
	}
	var failed syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&w)))
	})
	return size{int(w.columns), int(w.lines)}, err == nil && failed == 0
}

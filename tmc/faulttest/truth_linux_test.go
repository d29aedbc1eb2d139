package faulttest

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	hotKeys  = 12
	versions = 1 << 15 // of a key
)

// truth is memory that all processes share: when the write of each version of
// each hot key was acknowledged, in nanoseconds since 1970. Each key has one
// writer.
type truth struct{ at []int64 }

// openTruth maps a file, and makes it if there is none.
func openTruth(path string) (*truth, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const size = hotKeys * versions * 8
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &truth{unsafe.Slice((*int64)(unsafe.Pointer(&data[0])), hotKeys*versions)}, nil
}

// acknowledge says that a version of a key is what everybody should read.
func (t *truth) acknowledge(key, version int) {
	atomic.StoreInt64(&t.at[key*versions+version], time.Now().UnixNano())
}

// latest returns the latest version of a key that was acknowledged, 0 if none.
func (t *truth) latest(key int) int {
	low, high := 0, versions-1 // versions are acknowledged in order
	for low < high {
		mid := (low + high + 1) / 2
		if atomic.LoadInt64(&t.at[key*versions+mid]) != 0 {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// staleness returns how long before start the version was overwritten that a
// read returned which began then; 0 if it was not.
func (t *truth) staleness(key, version int, start time.Time) time.Duration {
	if version+1 >= versions {
		return 0
	}
	at := atomic.LoadInt64(&t.at[key*versions+version+1])
	if at == 0 {
		return 0
	}
	return max(0, time.Duration(start.UnixNano()-at))
}

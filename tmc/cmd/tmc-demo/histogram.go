package main

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts times in buckets that are a sixteenth of a power of two
// wide. It is safe for concurrent use.
type histogram struct {
	buckets [64 * 16]atomic.Uint64
}

func (h *histogram) add(d time.Duration) { h.buckets[bucket(uint64(max(d, 0)))].Add(1) }

func bucket(n uint64) int {
	if n < 16 {
		return int(n)
	}
	shift := bits.Len64(n) - 5
	return shift*16 + int(n>>shift)
}

// least returns the least time in a bucket.
func least(i int) time.Duration {
	if i < 32 {
		return time.Duration(i)
	}
	shift := i/16 - 1
	return time.Duration(uint64(i%16+16) << shift)
}

// take returns the counts and begins anew.
func (h *histogram) take() (c counts) {
	for i := range h.buckets {
		c[i] = h.buckets[i].Swap(0)
	}
	return c
}

// counts are those of a histogram.
type counts [64 * 16]uint64

func (c *counts) add(other *counts) {
	for i, n := range other {
		c[i] += n
	}
}

func (c *counts) total() (n uint64) {
	for _, each := range c {
		n += each
	}
	return n
}

// quantile returns the time that a share q of all do not exceed by more than
// a sixteenth.
func (c *counts) quantile(q float64) time.Duration {
	left := uint64(q * float64(c.total()))
	for i, n := range c {
		if n > left {
			return least(i)
		}
		left -= n
	}
	return 0
}

// Package heavykeeper finds the most frequent keys of a stream (the top K, the
// hot keys) in fixed memory, with bounds on every count.
package heavykeeper

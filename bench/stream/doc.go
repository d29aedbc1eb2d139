// Package stream makes and reads the key streams that the benchmarks run on.
//
// Made streams are the same on every machine and in every run for equal
// arguments. All are slices in memory, so that reading them costs a benchmark
// next to nothing.
package stream

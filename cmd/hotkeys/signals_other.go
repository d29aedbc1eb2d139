//go:build !unix

package main

import (
	"os"
	"syscall"
)

var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

func catchStop() <-chan os.Signal { return nil }

func suspend() {}

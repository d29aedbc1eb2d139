//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

func catchStop() <-chan os.Signal {
	stop := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(stop, syscall.SIGTSTP)
	}
	return stop
}

// suspend stops the program until it is continued. Where no shell could do that
// (in an orphaned process group) the system ignores the signal, and suspend
// returns after a moment.
//
// The signal is not SIGTSTP, which Go swallows for good once it was caught, nor
// SIGSTOP, which stops orphans too.
func suspend() {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	defer signal.Stop(goOn)
	syscall.Kill(syscall.Getpid(), syscall.SIGTTIN)
	select { // the stop comes a little later than Kill returns
	case <-goOn:
	case <-time.After(100 * time.Millisecond):
	}
}

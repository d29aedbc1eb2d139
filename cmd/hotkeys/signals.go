package main

import (
	"os"
	"os/signal"
)

// signals are those that the program catches once it counts. Before, they do
// what they do to any program, even while it waits for a file to load.
type signals struct {
	end     <-chan os.Signal // the first of those that end it early; the next kills it
	stop    <-chan os.Signal // from the terminal, to stop until it is told to go on
	suspend func()           // stops, and returns when it is told to go on
}

// catch catches signals; those to stop only if there is a screen to give back.
func catch(screen bool) *signals {
	caught, first := make(chan os.Signal, 1), make(chan os.Signal, 1)
	for _, s := range endSignals {
		if !signal.Ignored(s) { // as nohup and shells in the background have it
			signal.Notify(caught, s)
		}
	}
	go func() { // the program may be writing to a pipe that nobody reads
		s := <-caught
		signal.Stop(caught)
		first <- s
	}()
	s := &signals{end: first, suspend: suspend}
	if screen {
		s.stop = catchStop()
	}
	return s
}

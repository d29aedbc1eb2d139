package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"
)

// Exit statuses. A signal adds its number to statusSignal, as in a shell.
const (
	statusOK     = 0
	statusFailed = 1
	statusUsage  = 2
	statusSignal = 128
	statusPipe   = statusSignal + 13 // SIGPIPE
)

// process is what the program has of the world.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	catch          func(screen bool) *signals
	terminal       func(w any) (size, bool)
}

func main() {
	p := process{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, catch: catch, terminal: terminalOf}
	os.Exit(p.run(os.Args[1:]))
}

// run does what the arguments say and returns the exit status.
func (p *process) run(args []string) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err = io.WriteString(p.stdout, manual)
		return p.fail(err)
	case err != nil:
		return p.refuse(err)
	case o.version:
		_, err = fmt.Fprintln(p.stdout, "hotkeys", version())
		return p.fail(err)
	case o.merge:
		return p.merge(o)
	}
	return p.count(o)
}

// refuse says what is wrong with the arguments.
func (p *process) refuse(err error) int {
	fmt.Fprintf(p.stderr, "hotkeys: %v\nusage: %s\nTry 'hotkeys -h'.\n", err, synopsis)
	return statusUsage
}

// fail says what went wrong, if anything did, and returns the exit status for
// it. That nobody reads the output any more is no news to the user.
func (p *process) fail(err error) int {
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe):
		return statusPipe
	}
	p.complain(err)
	return statusFailed
}

// warnFew says so if k is more than the sketch in a file can tell.
func (p *process) warnFew(k int, f *frame) {
	if n := len(f.items); !f.windowed && !f.exact && n < k {
		fmt.Fprintf(p.stderr, "hotkeys: -k %d: the sketch tells the hottest %s keys and no more\n", k, grouped(uint64(n)))
	}
}

func (p *process) complain(err error) { fmt.Fprintf(p.stderr, "hotkeys: %v\n", err) }

// version is what the go command has recorded of the build.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(unknown version)"
}

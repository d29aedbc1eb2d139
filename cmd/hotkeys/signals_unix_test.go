//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asStopped makes the test binary a program that suspends itself.
const asStopped = "HOTKEYS_TEST_AS_STOPPED"

// patience is what a process has to end in that should.
const patience = 20 * time.Second

// ends waits for a process to end, and kills it if it does not.
func ends(t *testing.T, c *exec.Cmd) {
	t.Helper()
	timer := time.AfterFunc(patience, func() { c.Process.Kill() })
	c.Wait()
	require.True(t, timer.Stop(), "it had to be killed")
}

// A signal ends the command wherever it waits: for a sketch to load or to
// merge, for input, or for somebody to read its output.
func TestCommandInterruptedWhileWaiting(t *testing.T) {
	inFolder(t, nil)
	require.NoError(t, syscall.Mkfifo("fifo", 0o666))
	for _, args := range []string{"merge fifo", "-load fifo", "fifo"} {
		c := command(t, strings.Fields(args)...)
		require.NoError(t, c.Start())
		fifo, err := os.OpenFile("fifo", os.O_WRONLY, 0) // waits for the command to open it
		require.NoError(t, err)
		require.NoError(t, c.Process.Signal(syscall.SIGTERM))
		ends(t, c)
		fifo.Close()
		if args != "fifo" { // where what was counted is shown
			require.Equal(t, syscall.SIGTERM, c.ProcessState.Sys().(syscall.WaitStatus).Signal(), args)
		}
	}

	var line strings.Builder // of more keys than a pipe holds
	for i := range 40 {
		line.WriteString(strings.Repeat(string(rune('A'+i)), maxKey) + " ")
	}
	for args, endless := range map[string]bool{"-all -k 40": false, "-all -k 40 -window 100ms -slots 1": true} {
		c := command(t, strings.Fields(args)...)
		c.Stdin = strings.NewReader(line.String() + "\n")
		if endless {
			stdin, w, err := os.Pipe()
			require.NoError(t, err)
			defer w.Close()
			c.Stdin = stdin
			go io.WriteString(w, line.String()+"\n")
		}
		stdout, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		_, err = io.ReadFull(stdout, make([]byte, 1)) // and no more
		require.NoError(t, err)
		// A second one ends it at once. Signals that come together are one.
		require.NoError(t, c.Process.Signal(syscall.SIGTERM))
		time.Sleep(200 * time.Millisecond)
		require.NoError(t, c.Process.Signal(syscall.SIGTERM))
		ends(t, c)
		require.Equal(t, syscall.SIGTERM, c.ProcessState.Sys().(syscall.WaitStatus).Signal(), args)
	}
}

// A hang-up is an end like others: what was counted is saved.
func TestCommandHangUp(t *testing.T) {
	inFolder(t, nil)
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			t.Logf("%v is ignored here, as under nohup, and so by the command", s)
			continue
		}
		c := command(t, "-save", "sketch")
		stdin, err := c.StdinPipe()
		require.NoError(t, err)
		var stdout bytes.Buffer
		c.Stdout = &stdout
		require.NoError(t, c.Start())
		_, err = io.WriteString(stdin, strings.Repeat("hotter\n", 1<<15))
		require.NoError(t, err)
		require.NoError(t, c.Process.Signal(s))
		ends(t, c)
		require.Equal(t, statusSignal+int(s), c.ProcessState.ExitCode())
		require.Contains(t, stdout.String(), "hotter")
		require.Equal(t, stdout.String(), run("", "merge", "sketch").stdout)
		require.NoError(t, os.Remove("sketch"))
	}
}

// A process that suspends itself stops until it is continued, and does not where
// nobody would continue it: in a session of its own.
func TestSuspend(t *testing.T) {
	for _, orphan := range []bool{false, true} {
		c := command(t)
		c.Env = append(os.Environ(), asStopped+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: !orphan, Setsid: orphan}
		require.NoError(t, c.Start())
		timer := time.AfterFunc(patience, func() { c.Process.Kill() })
		var status syscall.WaitStatus
		wait := func() {
			for {
				_, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil)
				if err != syscall.EINTR {
					require.NoError(t, err)
					return
				}
			}
		}
		wait()
		if !orphan {
			require.True(t, status.Stopped(), "%v", status)
			require.NoError(t, syscall.Kill(c.Process.Pid, syscall.SIGCONT))
			wait()
		}
		require.True(t, status.Exited(), "%v", status)
		require.Equal(t, statusOK, status.ExitStatus())
		timer.Stop()
		c.Process.Release()
	}
}

func init() {
	if os.Getenv(asStopped) != "" {
		suspend()
		os.Exit(statusOK)
	}
}

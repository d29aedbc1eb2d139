package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asCommand makes the test binary the command itself.
const asCommand = "HOTKEYS_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	time.Local = time.UTC
	os.Exit(m.Run())
}

// result is what a run leaves.
type result struct {
	status         int
	stdout, stderr string
}

// run runs the command in this process, with no terminal in sight.
func run(stdin string, args ...string) result {
	var stdout, stderr bytes.Buffer
	p := process{
		stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr,
		catch: catchNothing, terminal: func(any) (size, bool) { return size{}, false },
	}
	status := p.run(args)
	return result{status, stdout.String(), stderr.String()}
}

// catchNothing is for runs that no signal comes to.
func catchNothing(bool) *signals { return &signals{} }

// inFolder makes files in a folder, which becomes the current one.
func inFolder(t *testing.T, files map[string]string) {
	t.Chdir(t.TempDir())
	for name, text := range files {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
	}
}

var runsItself = sync.OnceValue(func() bool {
	self, err := os.Executable()
	return err == nil && !errors.Is(exec.Command(self, "-test.run=^$").Run(), syscall.ENOEXEC)
})

// command returns the command as a process of its own.
func command(t *testing.T, args ...string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	if !runsItself() {
		t.Skip("tests run in an emulator, and cannot run themselves")
	}
	return c
}

func TestCommandReadsRedirectedFile(t *testing.T) {
	inFolder(t, map[string]string{"log": "b\na\nb\n"})
	stdin, err := os.Open("log")
	require.NoError(t, err)
	defer stdin.Close()
	c := command(t, "-k", "1")
	c.Stdin = stdin
	got, err := c.CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "COUNT  ERROR   SHARE  KEY\n    2      0  66.67%  b\n", string(got))
}

func TestCommandStatus(t *testing.T) {
	inFolder(t, map[string]string{"log": "a\n"})
	for _, test := range []struct {
		args []string
		want int
	}{
		{[]string{"log"}, 0},
		{[]string{"-h"}, 0},
		{[]string{"no such file"}, 1},
		{[]string{"-no-such-flag"}, 2},
	} {
		c := command(t, test.args...)
		c.Run()
		require.Equal(t, test.want, c.ProcessState.ExitCode(), "%q", test.args)
	}
}

// A reader that goes away, as head does, ends the command without a word.
func TestCommandClosedPipe(t *testing.T) {
	inFolder(t, map[string]string{"log": "a\n"})
	r, w, err := os.Pipe()
	require.NoError(t, err)
	r.Close()
	c := command(t, "log", "-save", "sketch")
	var stderr bytes.Buffer
	c.Stdout, c.Stderr = w, &stderr
	err = c.Run()
	w.Close()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		require.Equal(t, "broken pipe", status.Signal().String())
	} else {
		require.Equal(t, statusPipe, exit.ExitCode())
	}
	require.Empty(t, stderr.String())
	require.FileExists(t, "sketch")
}

func TestCommandFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	c := command(t, "-all")
	c.Stdin, c.Stdout = strings.NewReader("a b\n"), full
	var stderr bytes.Buffer
	c.Stderr = &stderr
	c.Run()
	require.Equal(t, statusFailed, c.ProcessState.ExitCode())
	require.Contains(t, stderr.String(), "hotkeys: write")
}

func TestCommandInterrupted(t *testing.T) {
	inFolder(t, nil)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		c := command(t, "-save", "sketch")
		stdin, err := c.StdinPipe()
		require.NoError(t, err)
		var stdout bytes.Buffer
		c.Stdout = &stdout
		require.NoError(t, c.Start())
		// More than a pipe holds: when all is written, most is counted.
		// The size of no read is a multiple of a line's.
		_, err = io.WriteString(stdin, strings.Repeat("hotter\n", 1<<18))
		require.NoError(t, err)
		if err := c.Process.Signal(s); err != nil {
			c.Process.Kill()
			t.Skip(err)
		}
		c.Wait()
		require.Equal(t, statusSignal+int(s.(syscall.Signal)), c.ProcessState.ExitCode())
		require.Regexp(t, `^ +COUNT  ERROR    SHARE  KEY\n[0-9,]+      0  100\.00%  hotter\n$`, stdout.String(), "one key")
		got := run("", "merge", "sketch")
		require.Equal(t, stdout.String(), got.stdout)
		require.NoError(t, os.Remove(filepath.Join(".", "sketch")))
	}
}

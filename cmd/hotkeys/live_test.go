package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// live is a run whose input comes bit by bit, in a bubble of synctest.
type live struct {
	stdin          *io.PipeWriter
	signals, stops chan os.Signal
	resumes        chan struct{} // lets the program go on that has stopped
	stdout, stderr safeBuffer
	ended          chan int
}

// safeBuffer is written to by one goroutine and read by another.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// take returns what was written since the last time.
func (s *safeBuffer) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.b.Reset()
	return s.b.String()
}

func start(t *testing.T, screen size, args ...string) *live {
	l := &live{
		signals: make(chan os.Signal, 1), stops: make(chan os.Signal, 1),
		resumes: make(chan struct{}), ended: make(chan int, 1),
	}
	var stdin *io.PipeReader
	stdin, l.stdin = io.Pipe()
	p := process{
		stdin: stdin, stdout: &l.stdout, stderr: &l.stderr,
		catch: func(bool) *signals {
			return &signals{end: l.signals, stop: l.stops, suspend: func() { <-l.resumes }}
		},
		terminal: func(any) (size, bool) { return screen, screen != size{} },
	}
	t.Cleanup(func() { l.stdin.Close() })
	go func() { l.ended <- p.run(args) }()
	return l
}

// write writes a line, and waits until it is counted.
func (l *live) write(line string) {
	io.WriteString(l.stdin, line+"\n")
	synctest.Wait()
}

// until waits until a second of the minute in which the bubble begins.
func until(second float64) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	time.Sleep(time.Until(begin.Add(time.Duration(second * 1e9))))
	synctest.Wait()
}

func TestLivePipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until(0.5)
		l := start(t, size{}, "-window", "4s", "-slots", "4", "-k", "2")
		for range 3 {
			l.write("a")
		}
		l.write("b")
		l.write("c")
		require.Empty(t, l.stdout.take(), "not yet")
		until(1)
		require.Equal(t, "2000-01-01T00:00:01Z   1         3       6.0/s  a\n2000-01-01T00:00:01Z   2         1       2.0/s  b\n",
			l.stdout.take())
		until(1.5)
		l.write("b")
		until(2)
		require.Equal(t, "2000-01-01T00:00:02Z   1         3       2.0/s  a\n2000-01-01T00:00:02Z   2         2       1.3/s  b\n",
			l.stdout.take())
		until(4)
		l.stdout.take()
		until(5) // the first second has left
		require.Equal(t, "2000-01-01T00:00:05Z   1         1      0.25/s  b\n", l.stdout.take())
		until(7)
		l.stdout.take()
		until(60)
		require.Empty(t, l.stdout.take(), "nothing is hot")
		l.write("d")
		l.stdin.Close()
		require.Equal(t, 0, <-l.ended)
		require.Equal(t, "2000-01-01T00:01:00Z   1         1      0.33/s  d\n", l.stdout.take(), "the end")
		require.Empty(t, l.stderr.take())
	})
}

// What was shown is not shown again at the end.
func TestLiveEndsQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, size{}, "-window", "4s", "-slots", "4", "-o", "json")
		l.write("a")
		until(1)
		var frame jsonFrame
		line := l.stdout.take()
		require.NoError(t, json.Unmarshal([]byte(line), &frame))
		require.Equal(t, "2000-01-01T00:00:01Z", frame.Time)
		require.Equal(t, 1., frame.Span)
		require.Equal(t, []uint64{0, 0, 0, 1}, frame.Keys[0].Slots)
		require.Equal(t, 1., *frame.Keys[0].Rate)
		require.Nil(t, frame.Keys[0].Share)
		l.stdin.Close()
		require.Equal(t, 0, <-l.ended)
		require.Empty(t, l.stdout.take())
	})
}

func TestInterrupted(t *testing.T) {
	for _, test := range []struct {
		args   []string
		signal os.Signal
		want   string
		status int
	}{
		{nil, os.Interrupt, "COUNT  ERROR    SHARE  KEY\n    2      0  100.00%  a\n", 130},
		{nil, syscall.SIGTERM, "COUNT  ERROR    SHARE  KEY\n    2      0  100.00%  a\n", 143},
		{[]string{"-window", "10s"}, os.Interrupt, "2000-01-01T00:00:00.5Z   1         2       4.0/s  a\n", 130},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := start(t, size{}, test.args...)
			l.write("a\na")
			until(0.5)
			l.signals <- test.signal
			require.Equal(t, test.status, <-l.ended)
			require.Equal(t, test.want, l.stdout.take())
			l.stdin.Close()
		})
	}
}

func TestScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, size{80, 6}, "-window", "30s", "-slots", "10")
		for i := range 20 {
			for range 20 - i {
				l.write(fmt.Sprintf("key %02d \x1b[31m%s", i, strings.Repeat("long ", 20)))
			}
		}
		until(1)
		got := l.stdout.take()
		body, ok := strings.CutPrefix(got, enterScreen+home)
		require.True(t, ok, "%q", got)
		body, ok = strings.CutSuffix(body, clearRest)
		require.True(t, ok, "%q", got)
		rows := strings.Split(body, clearLine)
		require.Len(t, rows, 7)
		require.Equal(t, "hotkeys  2000-01-01 00:00:01  last 30s, 10 slots of 3s  0 lines/s  210 lines", rows[0])
		require.Equal(t, "\nCOUNT  ERROR  RATE/S       SLOTS  KEY", rows[2])
		require.Equal(t, "\n   20      0    20.0           █  key 00 \\x1b[31mlong long long long long long l", rows[3])
		require.Equal(t, "\n   18      0    18.0           █  key 02 \\x1b[31mlong long long long long long l", rows[5])
		require.Empty(t, rows[6])
		for _, row := range rows {
			require.LessOrEqual(t, len([]rune(strings.TrimPrefix(row, "\n"))), 80)
		}

		l.write("x\nx\nx")
		until(2)
		got = l.stdout.take()
		require.True(t, strings.HasPrefix(got, home), "it is redrawn in place, each second: %q", got)
		require.Contains(t, got, "3 lines/s  213 lines")

		l.signals <- os.Interrupt
		require.Equal(t, 130, <-l.ended)
		got = l.stdout.take()
		require.True(t, strings.HasPrefix(got, leaveScreen+"COUNT  ERROR  RATE/S  KEY\n   20      0    10.0  key 00"), "%q", got)
		require.Equal(t, 1+10, strings.Count(got, "\n"), "the terminal keeps the last list, in full")
		l.stdin.Close()
	})
}

// A screen is given back while the program is stopped, and drawn anew at once
// when it goes on, of a log too.
func TestScreenStops(t *testing.T) {
	for _, test := range []struct{ args, line string }{
		{"-window 10s", "a"},
		{"-window 10s -time 1 -f 2 -speed 1", "2026-01-01T00:00:02Z a"},
	} {
		synctest.Test(t, func(t *testing.T) {
			until(0.5)
			l := start(t, size{80, 24}, strings.Fields(test.args)...)
			l.write(test.line)
			if strings.Contains(test.args, "-time") {
				l.write("2026-01-01T00:00:03Z b")
				until(1.5)
			}
			until(2)
			require.Contains(t, l.stdout.take(), enterScreen)
			l.stops <- os.Interrupt // whichever it is
			synctest.Wait()
			require.Equal(t, leaveScreen, l.stdout.take())
			until(2.5)
			require.Empty(t, l.stdout.take(), "drawn while stopped")
			l.resumes <- struct{}{}
			synctest.Wait()
			got := l.stdout.take()
			require.True(t, strings.HasPrefix(got, enterScreen), "%q", got)
			require.Contains(t, got, "a"+clearLine)
			l.signals <- os.Interrupt
			require.Equal(t, 130, <-l.ended)
			require.True(t, strings.HasPrefix(l.stdout.take(), leaveScreen))
			l.stdin.Close()
		})
	}
}

// A terminal of any size is not written beyond.
func TestSmallScreens(t *testing.T) {
	for _, screen := range []size{{1, 1}, {10, 2}, {59, 3}, {60, 3}, {300, 100}} {
		synctest.Test(t, func(t *testing.T) {
			l := start(t, screen, "-window", "100s", "-slots", "100")
			l.write(strings.Repeat("x", 500))
			until(1)
			got := l.stdout.take()
			require.Less(t, strings.Count(got, "\n"), screen.lines)
			l.stdin.Close()
			<-l.ended
		})
	}
}

// A file that cannot be read does not spoil the screen.
func TestScreenHoldsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, size{80, 24}, "-window", "10s", "nothing", "-")
		l.write("a")
		until(1)
		require.Empty(t, l.stderr.take())
		l.stdin.Close()
		require.Equal(t, 1, <-l.ended)
		require.Contains(t, l.stderr.take(), "hotkeys: open nothing")
		require.Contains(t, l.stdout.take(), "KEY\n    1      0")
	})
}

const dayLog = `2026-01-01T00:00:01Z a
2026-01-01T00:00:02Z b
2026-01-01T00:00:09Z a
2026-01-01T00:00:11Z b
2026-01-01T00:00:08Z b
2026-01-01T00:10:00Z c
2026-01-01T00:00:00Z late
what is this
2026-01-01T00:10:01Z c
`

func TestReplay(t *testing.T) {
	inFolder(t, map[string]string{"log": dayLog})
	flags := []string{"-f", "2", "-window", "20s", "-slots", "4", "-time", "1"}
	got := run(dayLog, flags...)
	require.Equal(t, 0, got.status)
	require.Equal(t, `2026-01-01T00:00:05Z   1         1      0.25/s  a
2026-01-01T00:00:05Z   2         1      0.25/s  b
2026-01-01T00:00:10Z   1         2      0.22/s  a
2026-01-01T00:00:10Z   2         1      0.11/s  b
2026-01-01T00:00:15Z   1         3      0.21/s  b
2026-01-01T00:00:15Z   2         2      0.14/s  a
2026-01-01T00:10:01Z   1         2      0.12/s  c
`, got.stdout)
	require.Equal(t, "hotkeys: lines of 9 without a key, or a time, where it should be: 1\n"+
		"hotkeys: keys whose time had left the window when they came: 1\n", got.stderr)

	got = run("", append(flags, "-every", "10m", "-o", "csv", "-q", "log")...)
	require.Equal(t, `time,rank,key,count,lower,upper,rate_per_second
2026-01-01T00:10:01Z,1,c,2,2,2,0.125
`, got.stdout)
	require.Empty(t, got.stderr)
}

// At a speed, a log takes as long as it did, divided by that.
func TestReplaySpeed(t *testing.T) {
	for _, screen := range []size{{}, {80, 24}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			l := start(t, screen, "-f", "2", "-window", "20s", "-slots", "4", "-time", "1", "-speed", "10", "-q")
			io.WriteString(l.stdin, dayLog)
			l.stdin.Close()
			require.Equal(t, 0, <-l.ended)
			require.Equal(t, time.Minute, time.Since(began).Round(time.Second))
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := start(t, size{}, "-f", "2", "-window", "20s", "-slots", "4", "-time", "1", "-speed", "10", "-q")
		l.write(dayLog)
		until(0.9)
		l.signals <- os.Interrupt
		require.Equal(t, 130, <-l.ended, "a pause does not keep it")
		require.Equal(t, 4, strings.Count(l.stdout.take(), "\n"))
		l.stdin.Close()
	})
}

// Output that nobody reads any more ends a live view.
func TestLiveClosedPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdin, lines := io.Pipe()
		stdout, out := io.Pipe()
		stdout.Close()
		var stderr bytes.Buffer
		p := process{
			stdin: stdin, stdout: out, stderr: &stderr, catch: catchNothing,
			terminal: func(any) (size, bool) { return size{}, false },
		}
		ended := make(chan int)
		go func() { ended <- p.run([]string{"-window", "10s"}) }()
		io.WriteString(lines, "a\n")
		require.Equal(t, statusPipe, <-ended)
		require.Empty(t, stderr.String())
		lines.Close()
	})
}

func TestSparkline(t *testing.T) {
	require.Equal(t, " ▁▄█", sparkline([]uint64{0, 1, 50, 100}))
	require.Equal(t, "█▁", sparkline([]uint64{1<<64 - 1, 1}))
	require.Equal(t, "  ", sparkline([]uint64{0, 0}))
}

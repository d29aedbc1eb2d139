package main

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Nothing is counted any more once the reader has settled, though a read that
// was under way ends later: what is saved is what is shown.
func TestReaderSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := parse(nil)
		require.NoError(t, err)
		tally, err := newTally(o)
		require.NoError(t, err)
		stdin, lines := io.Pipe()
		r, err := newReader(o, newInput(nil, stdin), tally)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.run(ctx)
		}()
		io.WriteString(lines, "a\nb\nhalf a li")
		synctest.Wait()
		stop()
		r.settle()
		want, err := tally.all.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, uint64(2), tally.frame(3, r.arrived, 0, false).total)

		io.WriteString(lines, "ne\nc\nc\nd")
		<-done
		got, err := tally.all.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, uint64(2), tally.lines.Load())
	})
}

func TestReplayTime(t *testing.T) {
	require.Equal(t, time.Second, replayTime(time.Minute, 60))
	require.Equal(t, time.Duration(0), replayTime(0, leastSpeed))
	require.Equal(t, 1e6*time.Minute, replayTime(time.Minute, leastSpeed))
	const longest = 100 * 365 * 24 * time.Hour
	require.Equal(t, longest, replayTime(24*time.Hour, leastSpeed))
	require.Equal(t, longest, replayTime(latest.Sub(earliest), leastSpeed))
}

package main

import (
	"bufio"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Memory is the same for a few keys and for any number, with lines of any
// length: the most that the process ever had is measured.
func TestMemoryIsFlat(t *testing.T) {
	peak := func(lines, length int) int64 {
		c := command(t, "-k", "3", "-q")
		c.Env = append(c.Env, "GOGC=10") // little garbage, whenever it is that the collector runs
		stdin, err := c.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		w := bufio.NewWriter(stdin)
		padding := strings.Repeat("x", length)
		for i := range lines {
			w.WriteString(strconv.Itoa(i))
			w.WriteString(padding)
			w.WriteByte('\n')
		}
		require.NoError(t, w.Flush())
		require.NoError(t, stdin.Close())
		require.NoError(t, c.Wait())
		return int64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) >> 10
	}
	many := 2_000_000
	if testing.Short() {
		many = 200_000
	}
	few := peak(1000, 10)
	manyKeys, longLines := peak(many, 10), peak(20, 1<<20)
	t.Logf("peak memory: %d MB for 1000 keys, %d MB for %d, %d MB for lines of 1 MB", few, manyKeys, many, longLines)
	const allowance = 8 // the runtime's
	require.LessOrEqual(t, manyKeys, few+allowance)
	require.LessOrEqual(t, longLines, few+allowance)
}

package bench

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeapFiguresAreFoundAmongOtherMetrics(t *testing.T) {
	got, err := readAllocated(strings.NewReader(`# HELP go_memstats_alloc_bytes Bytes.
go_memstats_alloc_bytes 7
go_memstats_alloc_bytes_total 1.5e+09
go_memstats_mallocs_total 123456
holdfast_jobs{state="queued"} 3
`))
	require.NoError(t, err)
	require.Equal(t, allocated{Objects: 123456, Bytes: 1.5e9}, got)
}

func TestMetricsWithoutTheHeapAreAnError(t *testing.T) {
	for _, metrics := range []string{"", "go_memstats_mallocs_total 1\n", "go_memstats_mallocs_total many\n"} {
		_, err := readAllocated(strings.NewReader(metrics))
		require.Error(t, err, metrics)
	}
}

// kept stays on the heap.
var kept [][]byte

func TestHandlersReportTheirAllocations(t *testing.T) {
	// Not t.TempDir: the path of a socket must be short.
	directory, err := os.MkdirTemp("", "bench-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	none, err := allocatedIn(t.Context(), directory)
	require.NoError(t, err)
	require.Zero(t, none)

	listener, err := reportAllocated(directory)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	before, err := allocatedIn(t.Context(), directory)
	require.NoError(t, err)
	const objects, size = 100, 10_000
	for range objects {
		kept = append(kept, make([]byte, size))
	}
	now, err := allocatedIn(t.Context(), directory)
	require.NoError(t, err)
	grown := now.since(before)
	require.GreaterOrEqual(t, grown.Objects, float64(objects))
	require.GreaterOrEqual(t, grown.Bytes, float64(objects*size))

	ended, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(directory, "ended")})
	require.NoError(t, err)
	ended.SetUnlinkOnClose(false)
	require.NoError(t, ended.Close())
	_, err = allocatedIn(t.Context(), directory)
	require.NoError(t, err, "a process that has ended")
}

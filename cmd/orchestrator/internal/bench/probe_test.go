package bench

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// kept stays on the heap.
var kept [][]byte

// sockets is a directory for sockets. Not t.TempDir: their paths must be short.
func sockets(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "bench-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(directory)) })
	return directory
}

func listen(t *testing.T, p Probe) {
	t.Helper()
	listening, err := p.Listen()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listening.Close()) })
}

func TestProcessesReportTheirAllocations(t *testing.T) {
	directory := sockets(t)
	none, err := allocatedIn(t.Context(), directory, ofHandlers)
	require.NoError(t, err)
	require.Zero(t, none)

	listen(t, Probe{Of: ofHandlers, Directory: directory})
	before, err := allocatedIn(t.Context(), directory, ofHandlers)
	require.NoError(t, err)
	const objects, size = 100, 10_000
	for range objects {
		kept = append(kept, make([]byte, size))
	}
	now, err := allocatedIn(t.Context(), directory, ofHandlers)
	require.NoError(t, err)
	grown := now.since(before)
	require.GreaterOrEqual(t, grown.Objects, float64(objects))
	require.GreaterOrEqual(t, grown.Bytes, float64(objects*size))
	other, err := allocatedIn(t.Context(), directory, ofOrchestrator)
	require.NoError(t, err)
	require.Zero(t, other)

	ended, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(directory, "handlers-0.sock")})
	require.NoError(t, err)
	ended.SetUnlinkOnClose(false)
	require.NoError(t, ended.Close())
	_, err = allocatedIn(t.Context(), directory, ofHandlers)
	require.NoError(t, err, "a process that has ended")
	_, err = tell(t.Context(), directory, ofHandlers, "something else")
	require.ErrorContains(t, err, `handlers: asked for "something else"`)
}

func TestProfilesAreCollected(t *testing.T) {
	directory, to := sockets(t), Profiles{CPU: filepath.Join(t.TempDir(), "cpu"), Memory: filepath.Join(t.TempDir(), "memory")}
	require.NoError(t, to.prepare())
	listen(t, Probe{Of: ofOrchestrator, Directory: directory, CPU: true, Memory: true})
	for _, asked := range []order{beginProfiles, endProfiles} {
		_, err := tell(t.Context(), directory, ofOrchestrator, asked)
		require.NoError(t, err)
	}
	require.NoError(t, to.collect(directory, "submit, run 2, 64 clients"))
	for _, name := range []string{
		filepath.Join(to.CPU, "submit-run-2-64-clients-orchestrator.cpu.pprof"),
		filepath.Join(to.Memory, "submit-run-2-64-clients-orchestrator.memory.pprof"),
	} {
		profile, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotEmpty(t, profile)
	}
	left, err := filepath.Glob(filepath.Join(directory, "*.pprof"))
	require.NoError(t, err)
	require.Empty(t, left)
}

package osprocess

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

// openIn returns the files below the directory that this process has open.
func openIn(t *testing.T, directory string) (names []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && strings.HasPrefix(name, directory+"/") {
			names = append(names, filepath.Base(strings.TrimSuffix(name, " (deleted)")))
		}
	}
	return names
}

func TestTheWatchKeepsOneFileOpenUntilTheProcessIsGone(t *testing.T) {
	inCgroups(t, func(t *testing.T, tree *cgroup.Tree) {
		p := prepared(t, Spec{Args: []string{"-c", "read x"}, Limits: cgroup.Limits{Processes: 50}, Cgroups: tree})
		require.NoError(t, p.Start(t.Context()))
		file := "cgroup.threads"
		if tree.PIDs {
			file = "pids.events"
		}
		require.Eventually(t, func() bool { return len(openIn(t, tree.Path)) == 1 && openIn(t, tree.Path)[0] == file }, time.Minute, 10*time.Millisecond)
		for range 100 { // and not only for each look
			require.Equal(t, []string{file}, openIn(t, tree.Path))
		}
		p.CloseStdin()
		_ = death(t, p)
		require.True(t, p.Await(time.Minute))
		require.Empty(t, openIn(t, tree.Path))
	})
}

// A look at a process that has about as many threads as an idle plugin.
func BenchmarkALookAtAnIdleProcess(b *testing.B) {
	group, err := realTree(b).Make("1", cgroup.Limits{})
	require.NoError(b, err)
	for range 10 {
		cmd := exec.CommandContext(b.Context(), "sleep", "1000")
		require.NoError(b, cmd.Start())
		defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
		require.NoError(b, group.Add(cmd.Process.Pid))
	}
	w := &watch{limits: cgroup.Limits{Processes: 50}, group: group, meter: group.Meter()}
	defer w.meter.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, over := w.look(); over {
			b.Fatal("10 tasks are not too many")
		}
	}
}

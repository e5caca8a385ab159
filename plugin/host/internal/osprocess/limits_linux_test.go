package osprocess

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/internal/proctree"
)

// everywhere runs the test without cgroups, and with those that can be made here.
func everywhere(t *testing.T, test func(t *testing.T, tree *cgroup.Tree)) {
	t.Helper()
	t.Run("without cgroups", func(t *testing.T) { test(t, nil) })
	t.Run("with cgroups", func(t *testing.T) { inCgroups(t, test) })
}

// inCgroups runs the test with cgroups, which are gone afterwards.
func inCgroups(t *testing.T, test func(t *testing.T, tree *cgroup.Tree)) {
	t.Helper()
	tree := realTree(t)
	test(t, tree)
	groups, err := filepath.Glob(tree.Path + "/plugin*")
	require.NoError(t, err)
	require.Empty(t, groups)
}

// realTree makes a tree in the kernel's own file system, if this user may.
func realTree(t testing.TB) *cgroup.Tree {
	t.Helper()
	tree, err := cgroup.Open(cgroup.Auto, "hf-child-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		t.Skip("no cgroup can be made here: ", err)
	}
	t.Cleanup(func() { require.NoError(t, tree.Remove()) })
	return tree
}

func TestAForkBombIsKilledWithAllItsProcesses(t *testing.T) {
	everywhere(t, func(t *testing.T, tree *cgroup.Tree) {
		// If nothing contained it, it would end at a thousand processes.
		bomb := `f() { [ $1 -gt 0 ] || exec sleep 60; f $(($1-1)) & f $(($1-1)) & wait; }; f 9`
		p := prepared(t, Spec{Args: []string{"-c", bomb}, Limits: cgroup.Limits{Processes: 50}, Cgroups: tree})
		require.NoError(t, p.Start(t.Context()))
		died := death(t, p)
		require.Equal(t, TooManyProcesses, died.Cause)
		require.EqualError(t, died, "killed: more than 50 processes and threads")
		require.True(t, p.LeftByItself())
		requireNobody(t, p)
	})
}

func TestProcessesInOtherSessionsCountToo(t *testing.T) {
	everywhere(t, func(t *testing.T, tree *cgroup.Tree) {
		script := `for i in $(seq 60); do setsid sleep 60 & done; wait`
		p := prepared(t, Spec{Args: []string{"-c", script}, Limits: cgroup.Limits{Processes: 50}, Cgroups: tree})
		require.NoError(t, p.Start(t.Context()))
		require.Equal(t, TooManyProcesses, death(t, p).Cause)
		requireNobody(t, p)
	})
}

func TestMemoryIsBoundedForAllProcessesTogether(t *testing.T) {
	everywhere(t, func(t *testing.T, tree *cgroup.Tree) {
		// Each of the two is below the limit. tail keeps a line until its end.
		script := `hold() { (head -c 100000000 /dev/zero; sleep 60) | tail -n 1; }; hold & hold & wait`
		p := prepared(t, Spec{Args: []string{"-c", script}, Limits: cgroup.Limits{MemoryBytes: 150 << 20}, Cgroups: tree})
		require.NoError(t, p.Start(t.Context()))
		died := death(t, p)
		require.Equal(t, OutOfMemory, died.Cause)
		require.ErrorContains(t, died, "killed: out of memory: the process and its children together took more than 150 MiB")
		requireNobody(t, p)
	})
}

func TestAProcessBelowItsLimitsIsNotHarmed(t *testing.T) {
	everywhere(t, func(t *testing.T, tree *cgroup.Tree) {
		script := `for i in 1 2 3; do sleep 0.5 & done; head -c 30000000 /dev/zero | tail -n 1 >/dev/null; wait; exit 7`
		p := prepared(t, Spec{Args: []string{"-c", script}, Limits: cgroup.Limits{MemoryBytes: 150 << 20, Processes: 20}, Cgroups: tree})
		require.NoError(t, p.Start(t.Context()))
		require.Equal(t, Death{Code: 7}, death(t, p))
	})
}

func TestCPUIsBoundedByAffinityWhereThereIsNoController(t *testing.T) {
	p := prepared(t, Spec{Args: []string{"-c", `read x; grep Cpus_allowed_list /proc/self/status; cut -d' ' -f19 /proc/self/stat`}, Limits: cgroup.Limits{CPUs: 0.5}})
	require.NoError(t, p.Start(t.Context()))
	p.CloseStdin()
	require.Equal(t, Death{}, death(t, p))
	require.True(t, p.Await(time.Second))
	words := strings.Fields(p.Output().Excerpt())
	require.Len(t, words, 3)
	_, err := strconv.Atoi(words[1])
	require.NoError(t, err, "it has one processor: %s", words[1])
	require.Equal(t, strconv.Itoa(lowPriority), words[2])
}

func TestEnforcedSaysHowLimitsAreEnforced(t *testing.T) {
	limits := cgroup.Limits{MemoryBytes: 1, CPUs: 1.5, Processes: 1, OpenFiles: 1}
	by := func(tree *cgroup.Tree, identity *Identity) (words []string) {
		for _, e := range Enforced(limits, tree, identity) {
			require.Equal(t, e.By == byCgroup || e.Limit == "open_files", e.Gap == "", e.Limit)
			words = append(words, e.Limit+"="+e.By)
		}
		return words
	}
	somebody := &Identity{UID: 12345, GID: 12345}
	require.Equal(t, []string{"memory=rlimit and watch", "cpus=affinity and niceness", "processes=rlimit and watch", "open_files=rlimit"}, by(nil, somebody))
	require.Equal(t, []string{"memory=rlimit and watch", "cpus=cgroup", "processes=watch", "open_files=rlimit"}, by(&cgroup.Tree{CPU: true}, &Identity{}))
	require.Equal(t, []string{"memory=cgroup", "cpus=cgroup", "processes=cgroup", "open_files=rlimit"}, by(&cgroup.Tree{Memory: true, CPU: true, PIDs: true}, nil))
	require.Empty(t, Enforced(cgroup.Limits{}, nil, nil))
}

// requireNobody checks that the process has left nothing behind.
func requireNobody(t *testing.T, p *Process) {
	t.Helper()
	for _, pid := range proctree.IDs() {
		require.False(t, marked(pid, []byte("\x00"+socketDirVariable+"="+p.SocketDir()+"\x00")), "%d is left", pid)
	}
}

func TestAScriptIsExecutedAsItWasCompared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nexit 5\n"), 0o755))
	spec := Spec{Binary: pin(t, path), Checksum: checksumOf(t, path)}
	p := prepared(t, spec)
	require.NoError(t, p.Start(t.Context()))
	require.Equal(t, 5, death(t, p).Code)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nexit 6\n"), 0o755))
	require.ErrorIs(t, prepared(t, spec).Start(t.Context()), binary.ErrChecksum)
}

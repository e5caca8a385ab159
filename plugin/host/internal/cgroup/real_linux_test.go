package cgroup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// realTree makes a tree in the kernel's own file system, if this user may.
func realTree(t *testing.T) *Tree {
	t.Helper()
	tree, err := Open(Auto, "hf-test-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err != nil {
		t.Skip("no cgroup can be made here: ", err)
	}
	t.Cleanup(func() { require.NoError(t, tree.Remove()) })
	return tree
}

func TestAGroupContainsAndKillsAllThatItsMembersFork(t *testing.T) {
	tree := realTree(t)
	group, err := tree.Make("1", Limits{})
	require.NoError(t, err)
	dir, err := group.Open()
	require.NoError(t, err)
	defer func() { _ = dir.Close() }()
	// The sleeper has its own session and environment, and no parent.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "env -i setsid -f sleep 1000; echo; exec sleep 1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		members, err := group.Members()
		return err == nil && len(members) == 2
	}, time.Minute, time.Millisecond)
	tasks, err := group.Tasks()
	require.NoError(t, err)
	require.EqualValues(t, 2, tasks)
	meter := group.Meter()
	defer meter.Close()
	tasks, err = meter.Tasks()
	require.NoError(t, err)
	require.EqualValues(t, 2, tasks)

	group.Kill()
	require.ErrorContains(t, cmd.Wait(), "signal: killed")
	require.Eventually(t, func() bool {
		members, err := group.Members()
		return err == nil && len(members) == 0
	}, time.Minute, time.Millisecond)
	tasks, err = meter.Tasks()
	require.NoError(t, err)
	require.Zero(t, tasks, "the same file says what is true now")
	require.NoError(t, group.Remove())
	require.NoError(t, group.Remove())
	require.NoDirExists(t, group.path)
	group.Kill()
	_, err = meter.Tasks()
	require.Error(t, err)
}

func TestATreeIsRemovedWithItsMembers(t *testing.T) {
	tree := realTree(t)
	group, err := tree.Make("1", Limits{})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, cmd.Start())
	require.NoError(t, group.Add(cmd.Process.Pid))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	require.NoError(t, Remove(tree.Path))
	require.ErrorContains(t, <-ended, "signal: killed")
	require.NoDirExists(t, tree.Path)
}

func TestTheKernelEnforcesTheLimitsThatHaveControllers(t *testing.T) {
	tree := realTree(t)
	if !tree.Memory || !tree.CPU || !tree.PIDs {
		t.Skipf("of memory, cpu and pids the cgroup %s has %q", tree.Path, strings.Join(available(filepath.Dir(tree.Path)), " "))
	}
	group, err := tree.Make("1", Limits{MemoryBytes: 64 << 20, CPUs: 1, Processes: 16})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read go; head -c 300000000 /dev/zero | tail -n 1; sleep 1000")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, group.Add(cmd.Process.Pid))
	require.NoError(t, in.Close())
	require.ErrorContains(t, cmd.Wait(), "signal: killed")
	require.True(t, group.OutOfMemory())
}

// moveTo is set in a process that must find a cgroup for its groups by itself.
const moveTo = "CGROUP_TEST_CONTROLLER"

func TestMain(m *testing.M) {
	controller := os.Getenv(moveTo)
	if controller == "" {
		os.Exit(m.Run())
	}
	controllers = []string{controller}
	tree, err := Open(Auto, "hf-1")
	if err != nil {
		panic(err)
	}
	group, err := tree.Make("1", Limits{})
	if err != nil {
		panic(err)
	}
	dir, err := group.Open()
	if err != nil {
		panic(err)
	}
	cmd := exec.CommandContext(context.Background(), "cat", "/proc/self/cgroup")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	theirs, err := cmd.Output()
	if err != nil {
		panic(err)
	}
	ours, _ := os.ReadFile("/proc/self/cgroup")
	_, _ = fmt.Fprintf(os.Stdout, "ours %s\ntheirs %s\nenabled %s\n", unified(ours), unified(theirs), strings.Join(words(tree.Path, "cgroup.subtree_control"), " "))
	os.Exit(0)
}

func unified(groups []byte) string {
	_, path, _ := strings.Cut(string(groups), "0::")
	return strings.TrimSpace(path)
}

func TestTheKernelAgreesWithTheMoveIntoALeaf(t *testing.T) {
	root := realTree(t)
	have := words(filepath.Dir(root.Path), "cgroup.controllers")
	if os.Geteuid() != 0 || len(have) == 0 || !isRoot(filepath.Dir(root.Path)) {
		t.Skip("the root of the hierarchy is not ours, or has no controllers")
	}
	// Any controller will do: this tests the rule about processes and children.
	if !slices.Contains(words(filepath.Dir(root.Path), "cgroup.subtree_control"), have[0]) {
		defer func() {
			require.NoError(t, root.Remove())
			require.NoError(t, write(filepath.Dir(root.Path), "cgroup.subtree_control", "-"+have[0]))
		}()
	}
	require.NoError(t, write(filepath.Dir(root.Path), "cgroup.subtree_control", "+"+have[0]))
	dir, err := os.Open(root.Path)
	require.NoError(t, err)
	defer func() { _ = dir.Close() }()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), moveTo+"="+have[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	base := "/" + filepath.Base(root.Path)
	require.Equal(t, "ours "+base+"/orchestrator\ntheirs "+base+"/hf-1/1\nenabled "+have[0]+"\n", string(out))
}

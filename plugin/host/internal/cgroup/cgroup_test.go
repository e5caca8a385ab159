package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const ourPID = 4711

// kernel is a directory tree that behaves like the part of cgroups that we use.
type kernel struct {
	t    *testing.T
	root string
	// written lists the writes in order, except those of process ids, as "group/file
	// text".
	written []string
	// deny is a file that nobody may write.
	deny string
}

// newKernel makes a root with all of our controllers, and below it /svc, which has the
// processes and is this process's own cgroup.
func newKernel(t *testing.T, procs ...int) (*kernel, system) {
	t.Helper()
	k := &kernel{t: t, root: filepath.Join(t.TempDir(), "cgroup")}
	writeFile, makeDir = k.write, k.mkdir
	t.Cleanup(func() { writeFile, makeDir = os.WriteFile, os.Mkdir })
	require.NoError(t, os.Mkdir(k.root, 0o700))
	k.put("", "cgroup.controllers", "cpuset cpu io memory pids")
	k.put("", "cgroup.subtree_control", "cpu memory pids")
	require.NoError(t, makeDir(filepath.Join(k.root, "svc"), 0o700))
	text := ""
	for _, pid := range procs {
		text += strconv.Itoa(pid) + "\n"
	}
	k.put("svc", "cgroup.procs", text)

	proc := t.TempDir()
	s := system{proc: proc, systemd: filepath.Join(proc, "no-systemd"), pid: ourPID}
	mounts := "24 1 0:22 / /proc rw - proc proc rw\n36 25 0:31 / " + k.root + " rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
	require.NoError(t, os.WriteFile(filepath.Join(proc, "mountinfo"), []byte(mounts), 0o600))
	k.reside(s, "/svc")
	return k, s
}

// reside moves this process into the cgroup.
func (k *kernel) reside(s system, path string) {
	require.NoError(k.t, os.WriteFile(filepath.Join(s.proc, "cgroup"), []byte("1:cpu:/elsewhere\n0::"+path+"\n"), 0o600))
}

func (k *kernel) put(group, file, text string) {
	require.NoError(k.t, os.WriteFile(filepath.Join(k.root, group, file), []byte(text), 0o600))
}

func (k *kernel) get(group, file string) string {
	text, err := os.ReadFile(filepath.Join(k.root, group, file))
	require.NoError(k.t, err)
	return strings.TrimSpace(string(text))
}

func (k *kernel) mkdir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil {
		return err
	}
	group, err := filepath.Rel(k.root, path)
	require.NoError(k.t, err)
	k.put(group, "cgroup.controllers", strings.Join(words(filepath.Dir(path), "cgroup.subtree_control"), " "))
	for _, file := range []string{"cgroup.subtree_control", "cgroup.procs", "cgroup.type"} {
		k.put(group, file, "")
	}
	return nil
}

func (k *kernel) write(path string, text []byte, mode fs.FileMode) error {
	dir, file := filepath.Split(path)
	group, err := filepath.Rel(k.root, dir)
	require.NoError(k.t, err)
	if file == k.deny {
		return &fs.PathError{Op: "write", Path: path, Err: unix.EACCES}
	}
	switch file {
	case "cgroup.procs":
		// A process is in one group at a time.
		require.NoError(k.t, filepath.WalkDir(k.root, func(at string, _ fs.DirEntry, err error) error {
			if filepath.Base(at) == file {
				left := slices.DeleteFunc(words(filepath.Dir(at), file), func(pid string) bool { return pid == string(text) })
				err = errors.Join(err, os.WriteFile(at, []byte(strings.Join(left, "\n")), mode))
			}
			return err
		}))
		return os.WriteFile(path, []byte(strings.Join(append(words(dir, file), string(text)), "\n")), mode)
	case "cgroup.subtree_control":
		name := strings.TrimPrefix(string(text), "+")
		if !slices.Contains(words(dir, "cgroup.controllers"), name) {
			return unix.ENOENT
		}
		if len(words(dir, "cgroup.procs")) > 0 {
			return unix.EBUSY
		}
		text = []byte(strings.Join(append(words(dir, file), name), " "))
	default:
		k.written = append(k.written, filepath.Join(filepath.Base(group), file)+" "+string(text))
	}
	return os.WriteFile(path, text, mode)
}

func TestAProcessThatIsAloneMovesIntoALeaf(t *testing.T) {
	k, s := newKernel(t, ourPID)
	tree, err := s.open(Auto, "hf-1")
	require.NoError(t, err)
	require.Equal(t, &Tree{Path: filepath.Join(k.root, "svc/hf-1"), Memory: true, CPU: true, PIDs: true}, tree)
	require.Equal(t, strconv.Itoa(ourPID), k.get("svc/orchestrator", "cgroup.procs"))
	require.Empty(t, k.get("svc", "cgroup.procs"))

	// A second orchestrator that was started in the leaf stays there.
	k.reside(s, "/svc/orchestrator")
	tree, err = s.open(Auto, "hf-2")
	require.NoError(t, err)
	require.Equal(t, &Tree{Path: filepath.Join(k.root, "svc/hf-2"), Memory: true, CPU: true, PIDs: true}, tree)
}

func TestAProcessWithNeighboursStaysAndHasNoControllers(t *testing.T) {
	k, s := newKernel(t, 1, ourPID)
	tree, err := s.open(Auto, "hf-1")
	require.NoError(t, err)
	require.Equal(t, &Tree{Path: filepath.Join(k.root, "svc/hf-1")}, tree)
	require.NoDirExists(t, filepath.Join(k.root, "svc/orchestrator"))
	require.Equal(t, "1\n4711", k.get("svc", "cgroup.procs"))
}

func TestAMoveThatDoesNotHelpIsUndone(t *testing.T) {
	k, s := newKernel(t, ourPID)
	k.deny = "cgroup.subtree_control"
	tree, err := s.open(Auto, "hf-1")
	require.NoError(t, err)
	require.Equal(t, &Tree{Path: filepath.Join(k.root, "svc/hf-1")}, tree)
	require.Equal(t, strconv.Itoa(ourPID), k.get("svc", "cgroup.procs"))
}

func TestACgroupThatSystemdHasNotDelegatedIsNotUsed(t *testing.T) {
	k, s := newKernel(t, ourPID)
	require.NoError(t, os.Mkdir(s.systemd, 0o700))
	_, err := s.open(Auto, "hf-1")
	require.EqualError(t, err, "systemd has not delegated "+k.root+"/svc (Delegate=yes)")
	require.Equal(t, strconv.Itoa(ourPID), k.get("svc", "cgroup.procs"))
}

func TestTheErrorSaysWhyThereIsNoCgroup(t *testing.T) {
	k, s := newKernel(t, ourPID)
	for setting, want := range map[string]string{
		None:            "cgroups are turned off",
		"somewhere":     `"somewhere" is neither auto nor none nor the absolute path of a cgroup`,
		k.root + "/not": k.root + "/not is not a cgroup",
	} {
		_, err := s.open(setting, "hf-1")
		require.ErrorContains(t, err, want)
	}
	k.reside(s, "/../elsewhere")
	_, err := s.open(Auto, "hf-1")
	require.ErrorContains(t, err, "is not in its namespace")
	require.NoError(t, os.WriteFile(filepath.Join(s.proc, "cgroup"), []byte("1:cpu:/\n"), 0o600))
	_, err = s.open(Auto, "hf-1")
	require.ErrorContains(t, err, "this process is in no cgroup v2")
}

func TestAConfiguredParentIsUsedAsItIs(t *testing.T) {
	k, s := newKernel(t, 1, ourPID)
	parent := filepath.Join(k.root, "given")
	require.NoError(t, makeDir(parent, 0o700))
	tree, err := s.open(parent, "hf-1")
	require.NoError(t, err)
	require.Equal(t, &Tree{Path: parent + "/hf-1", Memory: true, CPU: true, PIDs: true}, tree)
	// Operators who configure a cgroup rely on its controllers.
	_, err = s.open(filepath.Join(k.root, "svc"), "hf-1")
	require.ErrorIs(t, err, unix.EBUSY)
}

func TestLimitsAreSetBeforeTheGroupHasMembers(t *testing.T) {
	k, s := newKernel(t, ourPID)
	tree, err := s.open(Auto, "hf-1")
	require.NoError(t, err)
	_, err = tree.Make("7", Limits{MemoryBytes: 1 << 20, CPUs: 0.5, Processes: 64})
	require.NoError(t, err)
	_, err = tree.Make("8", Limits{CPUs: 0.001})
	require.NoError(t, err)
	require.Equal(t, []string{
		"7/memory.oom.group 1", "7/memory.max 1048576", "7/memory.swap.max 0", "7/cpu.max 50000 100000", "7/pids.max 64",
		"8/memory.oom.group 1", "8/cpu.max 1000 100000",
	}, k.written)
	k.deny = "memory.max"
	_, err = tree.Make("9", Limits{MemoryBytes: 1})
	require.ErrorContains(t, err, "limit memory")
	require.ErrorIs(t, err, fs.ErrPermission)
}

func TestEventsAreRead(t *testing.T) {
	k, s := newKernel(t, ourPID)
	tree, err := s.open(Auto, "hf-1")
	require.NoError(t, err)
	group, err := tree.Make("7", Limits{})
	require.NoError(t, err)
	require.False(t, group.OutOfMemory())
	meter := group.Meter()
	defer meter.Close()
	require.Zero(t, meter.Refused())
	k.put("svc/hf-1/7", "memory.events", "low 0\nhigh 0\nmax 17\noom 1\noom_kill 3\noom_group_kill 1\n")
	k.put("svc/hf-1/7", "pids.events", "max 12\n")
	require.True(t, group.OutOfMemory())
	require.EqualValues(t, 12, meter.Refused())
}

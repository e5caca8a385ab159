package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuPeriod is the period of cpu.max in microseconds, the kernel's default.
const cpuPeriod = 100_000

// Limits bound all members of a group together; 0 is no limit. A limit is not enforced
// if the tree lacks its controller. OpenFiles is never enforced here.
type Limits struct {
	MemoryBytes uint64
	// CPUs is how much processor time they may use: 0.5 is half a processor.
	CPUs float64
	// OpenFiles holds for each process by itself (RLIMIT_NOFILE).
	OpenFiles uint64
	// Processes counts processes and threads.
	Processes uint64
}

// Group is the cgroup of one plugin process.
type Group struct {
	path string
	tree *Tree
}

// Make makes an empty group in the tree and sets its limits.
func (t *Tree) Make(name string, limits Limits) (*Group, error) {
	g := &Group{path: filepath.Join(t.Path, name), tree: t}
	if err := makeDir(g.path, 0o755); err != nil {
		return nil, err
	}
	if err := g.bound(limits); err != nil {
		_ = os.Remove(g.path)
		return nil, err
	}
	return g, nil
}

// At returns a group that exists already, perhaps made by another process. You can add
// members to it and kill them.
func At(path string) *Group { return &Group{path: path} }

// Path is the group's directory.
func (g *Group) Path() string { return g.path }

func (g *Group) bound(limits Limits) error {
	if g.tree.Memory {
		// Kill all members together: a process that has lost a child is in an unknown
		// state.
		if err := write(g.path, "memory.oom.group", "1"); err != nil {
			return fmt.Errorf("limit memory: %w", err)
		}
	}
	if g.tree.Memory && limits.MemoryBytes > 0 {
		if err := write(g.path, "memory.max", strconv.FormatUint(limits.MemoryBytes, 10)); err != nil {
			return fmt.Errorf("limit memory: %w", err)
		}
		// Without this it could use swap as well. A kernel without swap has no such file.
		_ = write(g.path, "memory.swap.max", "0")
	}
	if g.tree.CPU && limits.CPUs > 0 {
		quota := max(int64(limits.CPUs*cpuPeriod), 1000)
		if err := write(g.path, "cpu.max", fmt.Sprintf("%d %d", quota, cpuPeriod)); err != nil {
			return fmt.Errorf("limit cpus: %w", err)
		}
	}
	if g.tree.PIDs && limits.Processes > 0 {
		if err := write(g.path, "pids.max", strconv.FormatUint(limits.Processes, 10)); err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
	}
	return nil
}

// Open opens the group's directory, to start a process in it.
func (g *Group) Open() (*os.File, error) { return os.Open(g.path) }

// Add moves a running process into the group, without its children.
func (g *Group) Add(pid int) error { return write(g.path, "cgroup.procs", strconv.Itoa(pid)) }

// Kill kills every member at once, even while they fork. It does not wait.
func (g *Group) Kill() {
	if err := write(g.path, "cgroup.kill", "1"); err == nil || errors.Is(err, fs.ErrNotExist) && g.gone() {
		return
	}
	// Linux before 5.14 has no such file.
	members, _ := g.Members()
	for _, pid := range members {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill()
		}
	}
}

func (g *Group) gone() bool {
	_, err := os.Stat(g.path)
	return err != nil
}

// Members are the process ids in the group.
func (g *Group) Members() ([]int, error) {
	text, err := os.ReadFile(filepath.Join(g.path, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Tasks counts the processes and threads in the group.
func (g *Group) Tasks() (uint64, error) {
	meter := g.Meter()
	defer meter.Close()
	return meter.Tasks()
}

// Memory returns how much memory is in use, in bytes; false if the tree lacks the
// controller.
func (g *Group) Memory() (uint64, bool) {
	found := words(g.path, "memory.current")
	if len(found) == 0 {
		return 0, false
	}
	used, err := strconv.ParseUint(found[0], 10, 64)
	return used, err == nil
}

// ProcessorTime returns how much the members have used so far, including those that have
// ended.
func (g *Group) ProcessorTime() time.Duration {
	return time.Duration(g.event("cpu.stat", "usage_usec")) * time.Microsecond //nolint:gosec // that is 290,000 years
}

// OutOfMemory reports whether the kernel has killed a member because memory ran out.
func (g *Group) OutOfMemory() bool { return g.event("memory.events", "oom_kill") > 0 }

func (g *Group) event(file, name string) uint64 {
	fields := words(g.path, file)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == name {
			n, _ := strconv.ParseUint(fields[i+1], 10, 64)
			return n
		}
	}
	return 0
}

// Remove kills all members and removes the group.
func (g *Group) Remove() error { return Remove(g.path) }

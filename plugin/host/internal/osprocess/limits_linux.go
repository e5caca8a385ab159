package osprocess

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/internal/proctree"
)

// How a limit can be enforced.
const (
	// byCgroup: the kernel bounds the sum, at once.
	byCgroup = "cgroup"
	// byRlimit: the kernel bounds each process by itself.
	byRlimit = "rlimit"
	// byWatch: the watch checks the sum several times a second.
	byWatch = "watch"
	// byAffinity: the processes get few processors, at a low priority.
	byAffinity = "affinity and niceness"
)

const (
	// lowPriority is the niceness of a process whose CPU time cannot be bounded. It
	// gets about a tenth of what competing processes get.
	lowPriority = 10
	// forkSlack is how many more processes the user may have before forks fail. It
	// leaves room for the user's other processes.
	forkSlack = 4096
)

// Enforced says how limits are enforced on this machine for a process of the user, in
// cgroups of the tree, or without cgroups if the tree is nil.
func Enforced(limits cgroup.Limits, tree *cgroup.Tree, identity *Identity) []v1.Enforcement {
	if tree == nil {
		tree = &cgroup.Tree{}
	}
	all := []v1.Enforcement{}
	add := func(limit string, value float64, bounded bool, otherwise v1.Enforcement) {
		if bounded {
			otherwise = v1.Enforcement{By: byCgroup}
		}
		otherwise.Limit, otherwise.Value = limit, value
		all = append(all, otherwise)
	}
	if limits.MemoryBytes > 0 {
		add("memory", float64(limits.MemoryBytes), tree.Memory, v1.Enforcement{
			By: byRlimit + " and " + byWatch, Gap: "children can exceed it for a moment; files in memory (tmpfs) do not count",
		})
	}
	if limits.CPUs > 0 {
		add("cpus", limits.CPUs, tree.CPU, v1.Enforcement{
			By: byAffinity, Gap: fmt.Sprintf("while the machine is idle it gets %d whole", processorsFor(limits.CPUs)),
		})
	}
	if limits.Processes > 0 {
		by := byRlimit + " and " + byWatch
		if uidOf(identity) == 0 {
			by = byWatch
		}
		add("processes", float64(limits.Processes), tree.PIDs, v1.Enforcement{By: by, Gap: "it can be exceeded for a moment"})
	}
	if limits.OpenFiles > 0 {
		add("open_files", float64(limits.OpenFiles), false, v1.Enforcement{By: byRlimit})
	}
	return all
}

func uidOf(identity *Identity) uint32 {
	if identity != nil {
		return identity.UID
	}
	return uint32(os.Geteuid())
}

// confine sets the limits of a running process that its cgroup does not set. It also
// makes the process the kernel's first choice when memory runs out.
func confine(pid int, spec *Spec) error {
	tree := spec.Cgroups
	if tree == nil {
		tree = &cgroup.Tree{}
	}
	data, forks := spec.Limits.MemoryBytes, uint64(0)
	if tree.Memory {
		// The cgroup counts memory in use. The rlimit counts reserved memory, and
		// some programs reserve much more than they use.
		data = 0
	}
	if uid := uidOf(spec.Identity); spec.Limits.Processes > 0 && !tree.PIDs && uid != 0 {
		// This bounds a fork bomb until the watch sees it.
		forks = proctree.TasksOf(uid) + spec.Limits.Processes + forkSlack
	}
	for _, limit := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"memory", unix.RLIMIT_DATA, data},
		{"open files", unix.RLIMIT_NOFILE, spec.Limits.OpenFiles},
		{"processes", unix.RLIMIT_NPROC, forks},
	} {
		if limit.value == 0 {
			continue
		}
		if err := bound(pid, limit.resource, limit.value); err != nil {
			return fmt.Errorf("limit %s: %w", limit.name, err)
		}
	}
	if spec.Limits.CPUs > 0 && !tree.CPU {
		lower(pid, spec.Limits.CPUs)
	}
	// Some sandboxes refuse this. It is not essential.
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("500"), 0)
	return nil
}

func bound(pid, resource int, value uint64) error {
	limit := &unix.Rlimit{Cur: value, Max: value}
	err := unix.Prlimit(pid, resource, limit, nil)
	if errors.Is(err, unix.EPERM) && resource == unix.RLIMIT_NPROC {
		// A lower limit is already in force, and cannot be raised.
		return nil
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// firstProcessor spreads the processes over the processors.
var firstProcessor atomic.Uint32

func processorsFor(cpus float64) int { return max(int(math.Ceil(cpus)), 1) }

// lower binds a process that has just started, and what it forks, to as many processors
// as the limit needs, at a low priority. Neither is essential.
func lower(pid int, cpus float64) {
	chosen := processors(processorsFor(cpus))
	done := make(map[string]bool)
	// New threads inherit both, so repeat until there is no new thread.
	for range 10 {
		_ = unix.Setpriority(unix.PRIO_PGRP, pid, lowPriority)
		threads, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
		before := len(done)
		for _, thread := range threads {
			if id, err := strconv.Atoi(thread.Name()); err == nil && chosen != nil && !done[thread.Name()] {
				_ = unix.SchedSetaffinity(id, chosen)
			}
			done[thread.Name()] = true
		}
		if len(done) == before {
			return
		}
	}
}

// processors chooses that many of the processors that this process may use; nil for all
// of them.
func processors(wanted int) *unix.CPUSet {
	var allowed, chosen unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil || wanted >= allowed.Count() {
		return nil
	}
	var list []int
	for i := range len(allowed) * 64 {
		if allowed.IsSet(i) {
			list = append(list, i)
		}
	}
	first := int(firstProcessor.Add(1))
	for i := range wanted {
		chosen.Set(list[(first+i)%len(list)])
	}
	return &chosen
}

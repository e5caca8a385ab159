package child

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/census"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// lowPriority is the niceness of a process whose share of CPU cannot be
	// bounded: against the rest of the machine it gets a tenth.
	lowPriority = 10
	// forkSlack is how many more processes the user may get while a handler
	// runs before its forks fail: those of others count as well.
	forkSlack = 4096
)

// Enforced says how limits are enforced on this machine, in the cgroups or
// without any, for a process of the user.
func Enforced(limits Limits, tree *cgroup.Tree, identity *Identity) []job.Enforcement {
	if tree == nil {
		tree = &cgroup.Tree{}
	}
	var all []job.Enforcement
	add := func(limit string, bounded bool, otherwise job.Enforcement) {
		otherwise.Limit = limit
		if bounded {
			otherwise = job.Enforcement{Limit: limit, By: ByCgroup}
		}
		all = append(all, otherwise)
	}
	if limits.MemoryBytes > 0 {
		add("memory", tree.Memory, job.Enforcement{
			By: ByRlimit + " and " + ByWatch, Gap: "children can exceed it for a moment; files in memory (tmpfs) do not count",
		})
	}
	if limits.CPUs > 0 {
		add("cpus", tree.CPU, job.Enforcement{
			By: ByAffinity, Gap: fmt.Sprintf("while the machine is idle it gets %d whole", processorsFor(limits.CPUs)),
		})
	}
	if limits.Processes > 0 {
		by := ByRlimit + " and " + ByWatch
		if uidOf(identity) == 0 {
			by = ByWatch
		}
		add("processes", tree.PIDs, job.Enforcement{By: by, Gap: "it can be exceeded for a moment"})
	}
	if limits.OpenFiles > 0 {
		add("open_files", false, job.Enforcement{By: ByRlimit})
	}
	return all
}

func uidOf(identity *Identity) uint32 {
	if identity != nil {
		return identity.UID
	}
	return uint32(os.Geteuid())
}

// confine sets those limits of a running process that its cgroup does not, and
// makes it the kernel's first choice when memory runs out.
func confine(pid int, spec *Spec) error {
	tree := spec.Cgroups
	if tree == nil {
		tree = &cgroup.Tree{}
	}
	data, forks := spec.Limits.MemoryBytes, uint64(0)
	if tree.Memory {
		// The kernel counts what is used, not what is asked for: some
		// programs ask for much more.
		data = 0
	}
	if uid := uidOf(spec.Identity); spec.Limits.Processes > 0 && !tree.PIDs && uid != 0 {
		// Until the watch has seen a fork bomb.
		forks = census.TasksOf(uid) + spec.Limits.Processes + forkSlack
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
	// Not essential, and refused in some sandboxes.
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("500"), 0)
	return nil
}

func bound(pid, resource int, value uint64) error {
	limit := &unix.Rlimit{Cur: value, Max: value}
	err := unix.Prlimit(pid, resource, limit, nil)
	if errors.Is(err, unix.EPERM) && resource == unix.RLIMIT_NPROC {
		// There is a lower one already, which nobody may raise.
		return nil
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// firstProcessor spreads processes that are bound to some processors.
var firstProcessor atomic.Uint32

func processorsFor(cpus float64) int { return max(int(math.Ceil(cpus)), 1) }

// lower binds a process that has just started to as many processors as the limit
// needs, at a low priority, and with it what it forks. Neither is essential.
func lower(pid int, cpus float64) {
	chosen := processors(processorsFor(cpus))
	done := make(map[string]bool)
	// Both are a thread's own and inherited, so it ends when a look finds
	// only threads that have them.
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

// processors chooses so many of those that we may use; nil when there are no more.
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

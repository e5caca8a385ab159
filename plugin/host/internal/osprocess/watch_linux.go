package osprocess

import (
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/internal/proctree"
)

const (
	// watchPeriod is how often to check a process.
	watchPeriod = 100 * time.Millisecond
	// recountPeriod is how often to search for its descendants even if the processes of
	// the machine seem unchanged. rescanPeriod is the least time between two searches
	// for new descendants, since a search reads a file for each process of the machine.
	recountPeriod = 10 * time.Second
	rescanPeriod  = 250 * time.Millisecond
	// sharedFor is how long to trust that a sum of memory was too large only because it
	// counts shared memory twice.
	sharedFor = time.Second
)

// watch enforces the limits on memory and on the number of processes and threads, where
// the kernel does not, or does not kill the process for them.
type watch struct {
	limits cgroup.Limits
	group  *cgroup.Group
	// meter is of the group; nil if there is none.
	meter *cgroup.Meter
	// keeper is the process whose descendants are the members.
	keeper int
	// bounded says that the kernel bounds the number of processes.
	bounded bool
	// memory says that the kernel does not bound memory.
	memory bool

	refused uint64
	// known are the members that the last scan found. There is none if there is a group.
	known []proctree.Process
	// scanned is when they were found, and last was the newest process at that time.
	scanned time.Time
	last    string
	// tasks counts the members' tasks at the last count, and machine all tasks of the
	// machine at that time.
	tasks, machine uint64
	counted        time.Time
	// shared is when a sum of memory was last too large only because of shared memory.
	shared time.Time
}

// newWatch returns nil if there is nothing to enforce.
func newWatch(spec *Spec, group *cgroup.Group, l launched) *watch {
	tree := spec.Cgroups
	w := &watch{
		limits: spec.Limits, group: group, keeper: l.KeeperPID(),
		bounded: tree != nil && tree.PIDs,
		memory:  spec.Limits.MemoryBytes > 0 && (tree == nil || !tree.Memory),
	}
	if !w.memory && w.limits.Processes == 0 {
		return nil
	}
	if group != nil {
		w.meter = group.Meter()
	}
	return w
}

// run checks the process until it is gone, and kills it if it exceeds a limit.
func (w *watch) run(c *Process) {
	ticks := time.NewTicker(watchPeriod)
	defer ticks.Stop()
	if w.meter != nil {
		defer w.meter.Close()
	}
	for {
		select {
		case <-c.gone:
			return
		case <-ticks.C:
		}
		if death, over := w.look(); over {
			c.endForLimit(death)
		}
	}
}

func (w *watch) look() (Death, bool) {
	if w.limits.Processes > 0 && w.tooMany() {
		return tooManyProcesses(w.limits.Processes), true
	}
	if w.memory {
		if used := w.memoryInUse(); used > w.limits.MemoryBytes {
			death := outOfMemory(w.limits.MemoryBytes)
			death.Detail += fmt.Sprintf(" (%s)", inMiB(used))
			return death, true
		}
	}
	return Death{}, false
}

func (w *watch) tooMany() bool {
	switch {
	case w.bounded:
		refused := w.meter.Refused()
		more := refused > w.refused
		w.refused = refused
		if !more {
			return false
		}
		// The limit that was reached may be that of a cgroup further up.
		tasks, err := w.meter.Tasks()
		return err == nil && tasks*10 >= w.limits.Processes*9
	case w.meter != nil:
		tasks, err := w.meter.Tasks()
		return err == nil && tasks > w.limits.Processes
	}
	// If the members exceed the limit, the machine has at least as many more tasks as
	// were left to the limit at the last count, unless other processes have ended
	// since. The recount covers that case.
	machine, _ := proctree.Machine()
	if machine < w.machine+w.limits.Processes-w.tasks && time.Since(w.counted) < recountPeriod {
		return false
	}
	w.scan()
	w.machine, w.counted = machine, time.Now()
	if w.tasks > w.limits.Processes {
		w.tasks = 0
		return true
	}
	return false
}

// members are the process and all that it has forked.
func (w *watch) members() []int {
	if w.group != nil {
		pids, _ := w.group.Members()
		return pids
	}
	_, last := proctree.Machine()
	if since := time.Since(w.scanned); since >= recountPeriod || last != w.last && since >= rescanPeriod {
		w.last = last
		w.scan()
	}
	pids := make([]int, 0, len(w.known))
	for _, p := range w.known {
		pids = append(pids, p.PID)
	}
	return pids
}

// scan looks for the members among all processes, and counts their threads.
func (w *watch) scan() {
	w.known, w.scanned = proctree.Descendants(w.keeper, watchPeriod/2), time.Now()
	w.tasks = 0
	for _, p := range w.known {
		w.tasks += p.Threads
	}
}

// memoryInUse is the memory of all members, in bytes. It computes the exact sum only if
// a rough sum exceeds the limit.
func (w *watch) memoryInUse() uint64 {
	pids := w.members()
	sum := sumOf(pids, proctree.Resident)
	if sum <= w.limits.MemoryBytes || time.Since(w.shared) < sharedFor {
		return 0
	}
	if sum = sumOf(pids, proctree.Proportional); sum <= w.limits.MemoryBytes {
		w.shared = time.Now()
	}
	return sum
}

func sumOf(pids []int, of func(int) uint64) uint64 {
	sum := uint64(0)
	for _, pid := range pids {
		sum += of(pid)
	}
	return sum
}

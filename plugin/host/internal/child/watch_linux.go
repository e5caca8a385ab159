package child

import (
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/census"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

const (
	// watchPeriod is how often a process is looked at.
	watchPeriod = 100 * time.Millisecond
	// recount is how often its children are counted even when the machine
	// does not seem to have more processes than before, and rescan how often
	// they are looked for at most: that reads a file for each process there is.
	recount = 10 * time.Second
	rescan  = 250 * time.Millisecond
	// doubtFor is how long a sum that was too large only because shared
	// memory counts twice is not looked into again.
	doubtFor = time.Second
)

// watch looks after what the kernel does not bound, or bounds without ending the
// process: memory and number of a process and all that it has forked.
type watch struct {
	limits Limits
	group  *cgroup.Group
	pid    int
	// keeper is the process that the orphans of the family come to; 0 for none.
	keeper int
	// bounded says that the kernel bounds the number.
	bounded bool
	memory  bool

	refused uint64
	// known are the members found before, by process id, where there is no
	// group to tell: who has been one stays one, wherever its parent goes.
	known map[int]string
	// scanned is when they were found, and last the newest process then.
	scanned time.Time
	last    string
	// tasks was the number at the last count, machine that of the machine.
	tasks, machine uint64
	counted        time.Time
	doubted        time.Time
}

// newWatch returns nil when there is nothing to look after.
func newWatch(spec *Spec, group *cgroup.Group, pid, keeper int) *watch {
	tree := spec.Cgroups
	w := &watch{
		limits: spec.Limits, group: group, pid: pid, keeper: keeper,
		bounded: tree != nil && tree.PIDs,
		memory:  spec.Limits.MemoryBytes > 0 && (tree == nil || !tree.Memory),
		known:   make(map[int]string),
	}
	if !w.memory && w.limits.Processes == 0 {
		return nil
	}
	return w
}

// stand looks until the process is gone, and condemns it when it is over a limit.
func (w *watch) stand(c *Process) {
	ticks := time.NewTicker(watchPeriod)
	defer ticks.Stop()
	for {
		select {
		case <-c.gone:
			return
		case <-ticks.C:
		}
		if death, over := w.look(); over {
			c.condemn(death)
		}
	}
}

func (w *watch) look() (Death, bool) {
	if w.limits.Processes > 0 && w.tooMany() {
		return tooManyProcesses(w.limits.Processes), true
	}
	if w.memory {
		if took := w.took(); took > w.limits.MemoryBytes {
			death := outOfMemory(w.limits.MemoryBytes)
			death.Detail += fmt.Sprintf(" (%s)", inMiB(took))
			return death, true
		}
	}
	return Death{}, false
}

func (w *watch) tooMany() bool {
	switch {
	case w.bounded:
		refused := w.group.Refused()
		more := refused > w.refused
		w.refused = refused
		if !more {
			return false
		}
		// It may have been the limit of a cgroup further up.
		tasks, err := w.group.Tasks()
		return err == nil && tasks*10 >= w.limits.Processes*9
	case w.group != nil:
		tasks, err := w.group.Tasks()
		return err == nil && tasks > w.limits.Processes
	}
	// The members cannot have become too many before the machine has as many
	// more as were missing, unless others went meanwhile.
	machine, _ := census.Machine()
	if machine < w.machine+w.limits.Processes-w.tasks && time.Since(w.counted) < recount {
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
	if _, last := census.Machine(); last != w.last && time.Since(w.scanned) >= rescan {
		w.last = last
		w.scan()
	}
	pids := make([]int, 0, len(w.known))
	for pid := range w.known {
		pids = append(pids, pid)
	}
	return pids
}

// scan looks for the members among all processes, and counts their threads.
func (w *watch) scan() {
	all := census.All(watchPeriod / 2)
	children := make(map[int][]int, len(all))
	found := make(map[int]census.Process, len(all))
	var queue []int
	for _, r := range all {
		children[r.Parent] = append(children[r.Parent], r.PID)
		found[r.PID] = r
		if r.PID == w.pid || r.Group == w.pid || w.keeper != 0 && r.Parent == w.keeper || w.known[r.PID] == r.Born {
			queue = append(queue, r.PID)
		}
	}
	known := make(map[int]string)
	w.tasks = 0
	for len(queue) > 0 {
		r := found[queue[0]]
		queue = queue[1:]
		if _, seen := known[r.PID]; seen {
			continue
		}
		known[r.PID] = r.Born
		w.tasks += r.Threads
		queue = append(queue, children[r.PID]...)
	}
	w.known, w.scanned = known, time.Now()
}

// took is the memory of all members, in bytes: a rough sum, and the exact one
// when the rough one is over the limit.
func (w *watch) took() uint64 {
	pids := w.members()
	sum := sumOf(pids, census.Resident)
	if sum <= w.limits.MemoryBytes || time.Since(w.doubted) < doubtFor {
		return 0
	}
	if sum = sumOf(pids, census.Proportional); sum <= w.limits.MemoryBytes {
		w.doubted = time.Now()
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

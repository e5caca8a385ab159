package census

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// latest is one look at all processes of the machine, shared by whoever needs
// one at about the same time: it reads a file for each process.
var latest struct {
	sync.Mutex
	at  time.Time
	all []Process
}

// Process is a process as its kinship has it.
type Process struct {
	// PID is its id, Parent its parent's, Group its process group's.
	PID, Parent, Group int
	Threads            uint64
	// Born tells it from another that gets its id later.
	Born string
}

// All returns all processes but zombies, as of at most maxAge ago.
func All(maxAge time.Duration) []Process {
	latest.Lock()
	defer latest.Unlock()
	if time.Since(latest.at) > maxAge {
		latest.all = latest.all[:0:0]
		for _, pid := range IDs() {
			if found, ok := Find(pid); ok {
				latest.all = append(latest.all, found)
			}
		}
		latest.at = time.Now()
	}
	return latest.all
}

// IDs returns the ids of all processes, zombies among them.
func IDs() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }()
	names, _ := proc.Readdirnames(-1)
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Find returns the process of that id; false when it is gone or a zombie.
func Find(pid int) (Process, bool) {
	found, state, ok := read(pid)
	return found, ok && state != zombie
}

// zombie is the state of a process that has exited and was not waited for, and of
// one whose first thread has exited while others run.
const zombie = "Z"

func read(pid int) (found Process, state string, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, "", false
	}
	// The name before the last parenthesis may contain anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return Process{}, "", false
	}
	found = Process{PID: pid, Born: fields[19]}
	found.Parent, _ = strconv.Atoi(fields[1])
	found.Group, _ = strconv.Atoi(fields[2])
	found.Threads, _ = strconv.ParseUint(fields[17], 10, 64)
	return found, fields[0], true
}

// Descendants returns those of the process that still run, parents first. Of
// processes that fork meanwhile it may miss some.
func Descendants(of int) []Process {
	children := make(map[int][]Process)
	ended := make(map[int]bool)
	for _, pid := range IDs() {
		if found, state, ok := read(pid); ok {
			children[found.Parent] = append(children[found.Parent], found)
			ended[pid] = state == zombie && found.Threads <= 1
		}
	}
	var running []Process
	for queue := children[of]; len(queue) > 0; queue = queue[1:] {
		if !ended[queue[0].PID] {
			running = append(running, queue[0])
		}
		queue = append(queue, children[queue[0].PID]...)
	}
	return running
}

// Is reports whether the id still belongs to that process.
func (p Process) Is() bool {
	now, _, ok := read(p.PID)
	return ok && now.Born == p.Born
}

// TasksOf counts the processes and threads of a user.
func TasksOf(uid uint32) uint64 {
	tasks := uint64(0)
	for _, p := range All(0) {
		info, err := os.Stat("/proc/" + strconv.Itoa(p.PID))
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == uid {
			tasks += p.Threads
		}
	}
	return tasks
}

// Machine tells, at the price of one file, how many processes and threads there
// are and the id of the one made last, which says whether there are new ones.
func Machine() (tasks uint64, last string) {
	// 0.20 0.18 0.12 1/80 11206
	text, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if len(fields) < 5 {
		return 0, ""
	}
	_, total, _ := strings.Cut(fields[3], "/")
	tasks, _ = strconv.ParseUint(total, 10, 64)
	return tasks, fields[4]
}

// Resident is the memory that a process has in use, shared or not, in bytes.
func Resident(pid int) uint64 {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// Proportional is a process's part of the memory that it shares with others, and
// all that it has to itself, without what lies in files, in bytes. It is the
// exact figure, and a dear one.
func Proportional(pid int) uint64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return Resident(pid)
	}
	bytes := uint64(0)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "Pss_Anon:" && fields[0] != "Pss_Shmem:" {
			continue
		}
		kib, _ := strconv.ParseUint(fields[1], 10, 64)
		bytes += kib << 10
	}
	return bytes
}

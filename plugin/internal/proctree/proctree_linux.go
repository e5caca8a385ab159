// Package proctree reads the tree of the machine's processes from /proc, and how much
// memory each of them uses. It works on Linux only.
package proctree

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// latest is one look at all processes of the machine. It is shared, since it reads a file
// for each process.
var latest struct {
	sync.Mutex
	at  time.Time
	all []Process
}

// Process is a process and its relations.
type Process struct {
	// Parent is the id of its parent.
	PID, Parent int
	Threads     uint64
	// Born is its start time, which distinguishes it from a later process with the same
	// id.
	Born string
	// Ended says that it has exited and is not collected.
	Ended bool
}

// All returns all processes, as they were at most maxAge ago.
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

// IDs returns the ids of all processes, zombies included.
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

// Find returns the process with that id; false if it is gone.
func Find(pid int) (Process, bool) {
	fields := statOf(pid)
	if len(fields) < 20 {
		return Process{}, false
	}
	found := Process{PID: pid, Born: fields[19]}
	found.Parent, _ = strconv.Atoi(fields[1])
	found.Threads, _ = strconv.ParseUint(fields[17], 10, 64)
	// A process whose first thread has exited while others run is in this state too.
	found.Ended = fields[0] == "Z" && found.Threads <= 1
	return found, true
}

// statOf returns the fields of a process from its state on; nil if it is gone.
func statOf(pid int) []string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// The name before the last parenthesis may contain anything.
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// Descendants returns the running descendants of a process, parents first, as they were
// at most maxAge ago. It may miss some if they fork in the meantime.
func Descendants(of int, maxAge time.Duration) []Process {
	children := make(map[int][]Process)
	for _, p := range All(maxAge) {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var running []Process
	for queue := children[of]; len(queue) > 0; queue = queue[1:] {
		if !queue[0].Ended {
			running = append(running, queue[0])
		}
		queue = append(queue, children[queue[0].PID]...)
	}
	return running
}

// Is reports whether the id still belongs to that process.
func (p Process) Is() bool {
	now, ok := Find(p.PID)
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

// Machine counts all processes and threads. It also returns the id of the newest one,
// which shows whether there are new ones. It reads one file only.
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

// ticksPerSecond is the unit of processor time in /proc, the same on all platforms of Go.
const ticksPerSecond = 100

// ProcessorTime returns how much a process has used, with those of its children that have
// ended and were collected.
func ProcessorTime(pid int) time.Duration {
	fields := statOf(pid)
	if len(fields) < 15 {
		return 0
	}
	ticks := int64(0)
	for _, field := range fields[11:15] { // of itself in user and kernel mode, and of its children
		n, _ := strconv.ParseInt(field, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / ticksPerSecond)
}

// Resident returns the memory that a process uses, including shared memory, in bytes.
func Resident(pid int) uint64 {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// Proportional returns the memory of a process, in bytes, with its proportional part of
// shared memory and without files. It is exact, but expensive.
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

package child

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// census is one look at all processes of the machine, shared by whoever needs
// one at about the same time: it reads a file for each process.
var census struct {
	sync.Mutex
	at  time.Time
	all []relative
}

// relative is a process as its kinship has it.
type relative struct {
	pid, parent, group int
	threads            uint64
	// born tells it from another that gets its id later.
	born string
}

// everybody returns all processes, as of at most maxAge ago.
func everybody(maxAge time.Duration) []relative {
	census.Lock()
	defer census.Unlock()
	if time.Since(census.at) > maxAge {
		census.all = census.all[:0:0]
		for _, pid := range processIDs() {
			if found, ok := relativeOf(pid); ok {
				census.all = append(census.all, found)
			}
		}
		census.at = time.Now()
	}
	return census.all
}

func processIDs() []int {
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

func relativeOf(pid int) (relative, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return relative{}, false
	}
	// The name before the last parenthesis may contain anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return relative{}, false
	}
	r := relative{pid: pid, born: fields[19]}
	r.parent, _ = strconv.Atoi(fields[1])
	r.group, _ = strconv.Atoi(fields[2])
	r.threads, _ = strconv.ParseUint(fields[17], 10, 64)
	return r, true
}

// tasksOf counts the processes and threads of a user.
func tasksOf(uid uint32) uint64 {
	tasks := uint64(0)
	for _, r := range everybody(0) {
		info, err := os.Stat("/proc/" + strconv.Itoa(r.pid))
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == uid {
			tasks += r.threads
		}
	}
	return tasks
}

// machine tells, at the price of one file, how many processes and threads there
// are and the id of the one made last, which says whether there are new ones.
func machine() (tasks uint64, last string) {
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

// resident is the memory that a process has in use, shared or not, in bytes.
func resident(pid int) uint64 {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// proportional is a process's part of the memory that it shares with others, and
// all that it has to itself, without what lies in files, in bytes. It is the
// exact figure, and a dear one.
func proportional(pid int) uint64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return resident(pid)
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

package bench

import (
	"errors"
	"time"

	"github.com/prometheus/procfs"
)

// errUnknown says that this system does not have a figure.
var errUnknown = errors.New("not known here")

// usage is the processor time that processes have used.
type usage struct {
	// own is the time of the process, and below that of all its descendants, alive or
	// not.
	own, below time.Duration
}

// usageOf reads what a process and its descendants have used so far. Without /proc, as
// on macOS, the error is errUnknown.
func usageOf(root int) (usage, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return usage{}, errUnknown
	}
	stats := make(map[int]procfs.ProcStat, len(processes))
	for _, process := range processes {
		if stat, err := process.Stat(); err == nil {
			stats[process.PID] = stat
		}
	}
	top, ok := stats[root]
	if !ok {
		return usage{}, errUnknown
	}
	used := usage{own: ticks(top.UTime + top.STime), below: ticksOfChildren(top)}
	for pid, stat := range stats {
		if pid != root && descends(stats, pid, root) {
			used.below += ticks(stat.UTime+stat.STime) + ticksOfChildren(stat)
		}
	}
	return used, nil
}

// ticksOfChildren is the time of children that have ended.
func ticksOfChildren(of procfs.ProcStat) time.Duration {
	return ticks(uint(max(of.CUTime, 0) + max(of.CSTime, 0)))
}

// ticks converts the kernel's hundredths of a second: USER_HZ is 100 on every
// architecture that Go supports.
func ticks(n uint) time.Duration { return time.Duration(n) * 10 * time.Millisecond }

func descends(stats map[int]procfs.ProcStat, pid, root int) bool {
	for up := stats[pid].PPID; up > 0; up = stats[up].PPID {
		if up == root {
			return true
		}
	}
	return false
}

// peakMemory is the peak resident memory of a process, in bytes.
func peakMemory(pid int) (uint64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, errUnknown
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0, errUnknown
	}
	return status.VmHWM, nil
}

// parentOf is the process that started the given one.
func parentOf(pid int) (int, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, errUnknown
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, errUnknown
	}
	return stat.PPID, nil
}

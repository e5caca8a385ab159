package rig

import (
	"time"

	"github.com/prometheus/procfs"
)

// CPUTime returns the processor time that a process and its descendants have used so
// far, including those that have ended. The time is unknown without /proc.
func CPUTime(root int) (used time.Duration, known bool) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, false
	}
	stats := make(map[int]procfs.ProcStat, len(processes))
	for _, process := range processes {
		if stat, err := process.Stat(); err == nil {
			stats[process.PID] = stat
		}
	}
	for pid, stat := range stats {
		for up := pid; up > 0; up = stats[up].PPID {
			if up == root {
				ticks := int(stat.UTime+stat.STime) + max(stat.CUTime, 0) + max(stat.CSTime, 0)
				used += time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100
				break
			}
		}
	}
	_, known = stats[root]
	return used, known
}

// Parent returns the parent of a process.
func Parent(pid int) (int, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, err
	}
	return stat.PPID, nil
}

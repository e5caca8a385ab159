package osprocess

import (
	"math"
	"sync"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/proctree"
)

// useEvery is how often to measure what a process uses, at most.
const useEvery = 5 * time.Second

// gauge remembers the latest measurement of a process.
type gauge struct {
	mu sync.Mutex
	at time.Time
	// busy is the processor time until then.
	busy time.Duration
	last v1.PluginUse
}

// Use is what the process and all that it has forked use, as measured at most useEvery ago;
// false if the process is gone. Figures are rounded, so that those of an idle process stay
// the same.
func (c *Process) Use() (v1.PluginUse, bool) {
	c.mu.Lock()
	pid, launched, up := c.pid, c.launched, c.pid != 0 && !c.reaped
	c.mu.Unlock()
	if !up {
		return v1.PluginUse{}, false
	}
	g := &c.gauge
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if since := now.Sub(g.at); since >= useEvery {
		used := c.measure(launched.KeeperPID())
		use := v1.PluginUse{PID: pid, Memory: int64((used.memory+1<<20-1)>>20) << 20, Processes: int64(used.tasks)} //nolint:gosec // no machine has as much
		if !g.at.IsZero() {
			use.CPUs = math.Round(max((used.busy-g.busy).Seconds(), 0)/since.Seconds()*100) / 100
		}
		g.at, g.busy, g.last = now, used.busy, use
	}
	return g.last, g.last.Processes > 0
}

type used struct {
	memory, tasks uint64
	busy          time.Duration
}

func (c *Process) measure(keeper int) (u used) {
	var pids []int
	counted := false
	if c.group != nil {
		pids, _ = c.group.Members()
		u.tasks, _ = c.group.Tasks()
		u.busy = c.group.ProcessorTime()
		u.memory, counted = c.group.Memory()
	} else {
		for _, p := range proctree.Descendants(keeper, time.Second) {
			pids = append(pids, p.PID)
			u.tasks += p.Threads
			u.busy += proctree.ProcessorTime(p.PID)
		}
	}
	if !counted {
		u.memory = sumOf(pids, proctree.Resident)
	}
	return u
}

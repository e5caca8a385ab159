//go:build linux

package main

import (
	"context"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

const (
	// tick is the pause between two looks at the machine's lag.
	tick = 10 * time.Millisecond
	// notable is the lag from which on a stall is recorded.
	notable = 50 * time.Millisecond
)

// lag measures how late this process is run: nothing that the run judges may depend on how
// fast the machine is, and what it measures is worth little on a busy one.
type lag struct {
	now func() history.Nanos
	// late counts ticks by milliseconds; the last entry is for all that are later.
	late   [2000]int
	ticks  int
	most   time.Duration
	stalls []history.Stall
}

// watch measures until ctx ends.
func (l *lag) watch(ctx context.Context) {
	for ctx.Err() == nil {
		due := l.now() + history.Nanos(tick)
		time.Sleep(tick)
		now := l.now()
		late := time.Duration(now - due)
		l.ticks++
		l.late[min(max(late.Milliseconds(), 0), int64(len(l.late)-1))]++
		l.most = max(l.most, late)
		if late >= notable {
			l.stalls = append(l.stalls, history.Stall{From: due, To: now})
		}
	}
}

// measured is what was measured, after watch has returned.
func (l *lag) measured() history.Lag {
	found := history.Lag{Most: l.most, Stalls: l.stalls}
	for ms, below := 0, 0; ms < len(l.late); ms++ {
		if below += l.late[ms]; below*100 >= l.ticks*99 {
			found.P99 = min(time.Duration(ms+1)*time.Millisecond, l.most)
			break
		}
	}
	return found
}

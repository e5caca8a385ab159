package runtime

import (
	"context"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// crowdInterval is how often to count the processes that do the same as this one.
const crowdInterval = 20 * time.Second

// crowd counts them, so that they need not all do it.
type crowd struct {
	store Store
	// plugins is nil without the role of a worker.
	plugins Plugins
	pace    *jobs.Pace
}

func (c *crowd) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.look(ctx)
		loop.Pause(ctx, loop.Jittered(crowdInterval))
	}
}

// look makes room for those who are alive: for nobody if they are not known.
func (c *crowd) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	live, err := c.store.LiveWorkers(ctx)
	if err != nil {
		live = nil // the other loops say what is wrong with the database
	}
	var types []string
	if c.plugins != nil {
		for _, pool := range c.plugins.Pools() {
			types = append(types, pool.Types...)
		}
	}
	c.pace.Know(job.CrowdOf(live, types))
}

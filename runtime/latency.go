package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

// mostAfterSlot bounds how long after the end of a slot it is written. The middle of what is
// written stays in the slot, since it is less than half of it.
const mostAfterSlot = job.LatencySlot / 4

// latencyRecorder writes, once a slot, how long jobs have waited and run. What cannot be
// written is lost, so that nothing is counted twice.
type latencyRecorder struct {
	store   Store
	metrics *metrics.Metrics
	pace    *jobs.Pace
	log     *slog.Logger
}

func (l *latencyRecorder) run(ctx context.Context) {
	since := time.Now()
	next := job.LatencySlot // until a slot ends, as far as is known
	for ctx.Err() == nil {
		loop.Pause(ctx, next)
		taken, now := l.metrics.TakeLatencies(), time.Now()
		middle := since.Add(now.Sub(since) / 2)
		next, since = job.LatencySlot, now
		if len(taken) == 0 {
			continue
		}
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		passed, err := l.store.RecordLatencies(try, time.Since(middle), taken)
		cancel()
		if err != nil {
			l.log.Warn("latencies of the last seconds are lost", slog.Any("error", err))
			continue
		}
		// A crowd that wrote the same rows at once would wait for one another.
		next += l.pace.TurnWithin(job.RoleWorker, mostAfterSlot) - passed
	}
}

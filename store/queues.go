package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// openJobs is how many jobs of a type wait, run or are dead, that were charged a number of attempts.
type openJobs struct {
	JobType string
	State   job.State
	// Held is set for created jobs that wait to be released.
	Held bool
	// Attempt is 0 for dead jobs.
	Attempt int
	// Reason is what queued jobs wait for at a gate; empty if they are ready.
	Reason job.WaitReason
	Jobs   int64
	// OldestSeconds is how long the oldest ready job has been due.
	OldestSeconds float64
}

// readOpen counts exactly, so it takes longer the more jobs are open: about half a second for a
// million.
func readOpen(ctx context.Context, tx pgx.Tx) ([]openJobs, error) {
	return postgres.Rows(ctx, tx, "open_jobs", pgx.RowToStructByName[openJobs])
}

// Queues returns the jobs that wait, run or are dead, by job type: of all types that have any, or
// that a live worker serves. It reads them as Metrics does, which takes longer the more there are.
func (s *Store) Queues(ctx context.Context) (queues []v1.Queue, err error) {
	err = s.figures(ctx, "queues", func(tx pgx.Tx) error {
		open, err := readOpen(ctx, tx)
		if err != nil {
			return err
		}
		queues, err = queuesOf(ctx, tx, open)
		return err
	})
	return queues, err
}

// queuesOf sorts open jobs by their types, and reads which of them are served and paused.
func queuesOf(ctx context.Context, tx pgx.Tx, open []openJobs) ([]v1.Queue, error) {
	type row struct {
		JobType string
		Served  bool
	}
	types, err := postgres.Rows(ctx, tx, "types_served", pgx.RowToStructByName[row])
	if err != nil {
		return nil, err
	}
	queues := make(map[string]*v1.Queue)
	of := func(jobType string) *v1.Queue {
		if queues[jobType] == nil {
			queues[jobType] = &v1.Queue{JobType: jobType}
		}
		return queues[jobType]
	}
	parked := make(map[string]map[job.WaitReason]int64)
	for _, row := range open {
		row.addTo(of(row.JobType))
		if row.Reason != "" {
			if parked[row.JobType] == nil {
				parked[row.JobType] = make(map[job.WaitReason]int64)
			}
			parked[row.JobType][row.Reason] += row.Jobs
		}
	}
	paused := make(map[string]bool)
	for _, row := range types {
		if row.Served {
			of(row.JobType).Served = true
		} else {
			paused[row.JobType] = true
		}
	}
	sorted := make([]v1.Queue, 0, len(queues))
	for _, q := range slices.SortedFunc(maps.Values(queues), func(a, b *v1.Queue) int { return cmp.Compare(a.JobType, b.JobType) }) {
		q.Paused = paused[q.JobType] || paused[""]
		q.CountWaiting(parked[q.JobType])
		sorted = append(sorted, *q)
	}
	return sorted, nil
}

func (o openJobs) addTo(q *v1.Queue) {
	switch {
	case o.State == job.Queued:
		q.Queued += o.Jobs
		q.OldestQueuedSeconds = max(q.OldestQueuedSeconds, o.OldestSeconds)
	case o.State == job.Created && o.Held:
		q.Held += o.Jobs
	case o.State == job.Created:
		q.Scheduled += o.Jobs
	case o.State == job.Retry:
		q.Retrying += o.Jobs
	case o.State == job.Running:
		q.Running += o.Jobs
	case o.State == job.Dead:
		q.Dead += o.Jobs
	}
}

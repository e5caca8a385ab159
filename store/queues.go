package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Queues says what waits and runs, by job type. It counts exactly, and so takes
// longer the more jobs wait: about 0.2 s for a million.
func (s *Store) Queues(ctx context.Context) (queues []job.Queue, err error) {
	err = s.atOneMoment(ctx, "queues", func(tx pgx.Tx) error {
		queues, err = readQueues(ctx, tx)
		return err
	})
	return queues, err
}

func readQueues(ctx context.Context, tx pgx.Tx) ([]job.Queue, error) {
	type row struct {
		JobType   string
		Queued    int64
		Oldest    time.Duration
		Scheduled int64
		Held      int64
		Retrying  int64
		Running   int64
		Dead      int64
		Served    bool
	}
	found, err := read(ctx, tx, queuesSQL, pgx.RowToStructByName[row])
	if err != nil {
		return nil, err
	}
	queues := make([]job.Queue, len(found))
	for i, row := range found {
		queues[i] = job.Queue{
			Type: row.JobType, Queued: row.Queued, Oldest: row.Oldest,
			Scheduled: row.Scheduled, Held: row.Held, Retrying: row.Retrying,
			Running: row.Running, Dead: row.Dead, Served: row.Served,
		}
	}
	return queues, nil
}

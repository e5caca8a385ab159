package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// RegisterWorker writes down that a worker's incarnation has begun and counts as alive
// for the duration; Renew prolongs it.
func (s *Store) RegisterWorker(ctx context.Context, worker job.Worker, aliveFor time.Duration) error {
	err := s.exec(ctx, s.worker, enlistSQL,
		worker.ID, interval(aliveFor), worker.Host, worker.PID, worker.PIDStarted)
	return translate("enlist", err)
}

// DescribeWorker writes down, as JSON, what a worker serves.
func (s *Store) DescribeWorker(ctx context.Context, worker string, plugins json.RawMessage) error {
	return translate("describe worker", s.exec(ctx, s.worker, describeWorkerSQL, worker, string(plugins)))
}

// Workers lists the workers that are known, alive or not, the newest first.
// They are forgotten a day after they were last heard of.
func (s *Store) Workers(ctx context.Context) (workers []job.WorkerView, err error) {
	err = s.atOneMoment(ctx, "workers", func(tx pgx.Tx) error {
		workers, err = readWorkers(ctx, tx)
		return err
	})
	return workers, err
}

func readWorkers(ctx context.Context, tx pgx.Tx) ([]job.WorkerView, error) {
	type row struct {
		WorkerID    string
		Host        string
		PID         int
		Condition   string
		StartedAt   time.Time
		HeartbeatAt time.Time
		StoppedAt   *time.Time
		Plugins     []byte
	}
	found, err := read(ctx, tx, workersSQL, pgx.RowToStructByName[row])
	if err != nil {
		return nil, err
	}
	jobs, err := readByWorker(ctx, tx)
	if err != nil {
		return nil, err
	}
	workers := make([]job.WorkerView, len(found))
	for i, row := range found {
		workers[i] = job.WorkerView{
			ID: row.WorkerID, Host: row.Host, PID: row.PID, Condition: job.Condition(row.Condition),
			StartedAt: row.StartedAt, HeartbeatAt: row.HeartbeatAt, StoppedAt: row.StoppedAt,
			Plugins: row.Plugins, Jobs: jobs[row.WorkerID],
		}
		if workers[i].Jobs == nil {
			workers[i].Jobs = make(map[job.State]int64)
		}
	}
	return workers, nil
}

// WorkersOnHost returns the workers on a host, other than the one named, that
// have not signed off and may still hold leases.
func (s *Store) WorkersOnHost(ctx context.Context, host, except string) ([]job.Worker, error) {
	rows, err := s.worker.Query(ctx, neighboursSQL, host, except)
	if err != nil {
		return nil, translate("neighbours", err)
	}
	type row struct {
		WorkerID   string
		PID        int
		PIDStarted int64 `db:"pid_started"`
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return nil, translate("neighbours", err)
	}
	workers := make([]job.Worker, len(found))
	for i, row := range found {
		workers[i] = job.Worker{ID: row.WorkerID, Host: host, PID: row.PID, PIDStarted: row.PIDStarted}
	}
	return workers, nil
}

// ExpireWorkers writes down that workers have ended and lets the leases that they
// still hold expire at once. It returns how many leases those were. The caller
// must know for certain that the workers, and their handlers, have ended.
func (s *Store) ExpireWorkers(ctx context.Context, workers []string) (int, error) {
	leases, err := only(changed(ctx, s, s.worker, pgx.RowTo[int], dischargeSQL, workers))
	return leases, translate("discharge", err)
}

// ReleaseUnanswered lets go of the leases of a worker that are not among those it knows
// of, and returns how many there were. They are what remains of claims whose
// answers were lost. The worker must not have a claim in flight.
//
// A claim that waits for a standby shows no lease yet. ReleaseUnanswered waits for the standby
// first, so that it does not miss the leases of claims that have waited so far.
func (s *Store) ReleaseUnanswered(ctx context.Context, worker string, known []job.LeaseID) (int, error) {
	if err := s.exec(ctx, s.worker, barrierSQL); err != nil {
		return 0, translate("disown", err)
	}
	disowned, err := s.writeOnce(ctx, s.worker, disownSQL, worker,
		column(known, func(id job.LeaseID) pgtype.UUID { return uuid(id) }))
	return len(disowned), translate("disown", err)
}

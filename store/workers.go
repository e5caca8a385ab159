package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// RegisterWorker records that a worker has started and counts as alive for the
// duration. Renew extends it.
func (s *Store) RegisterWorker(ctx context.Context, worker job.Worker, aliveFor time.Duration) error {
	return s.db.Worker.Do(ctx, "register_worker",
		worker.ID, postgres.Interval(aliveFor), worker.Host, worker.PID, worker.PIDStarted, worker.Roles.Names())
}

// DescribeWorker records what a worker serves, as JSON.
func (s *Store) DescribeWorker(ctx context.Context, worker string, plugins json.RawMessage) error {
	return s.db.Worker.Do(ctx, "describe_worker", worker, string(plugins))
}

// DrainWorker asks a worker to take no more jobs, which it learns from Rules. Errors:
// job.ErrNoWorker.
func (s *Store) DrainWorker(ctx context.Context, worker string) error {
	return s.askWorker(ctx, "drain_worker", worker)
}

// ResumeWorker lets a worker take jobs again. Errors: job.ErrNoWorker.
func (s *Store) ResumeWorker(ctx context.Context, worker string) error {
	return s.askWorker(ctx, "resume_worker", worker)
}

func (s *Store) askWorker(ctx context.Context, statement, worker string) error {
	asked, err := postgres.Confirm(ctx, s.db.Submissions, statement, pgx.RowTo[string], worker)
	if err == nil && len(asked) == 0 {
		return fmt.Errorf("%s: %w", worker, job.ErrNoWorker)
	}
	return err
}

// WorkerDrained records that a worker which was asked to take no more jobs has none any
// more. If it was not asked, nothing changes.
func (s *Store) WorkerDrained(ctx context.Context, worker string) error {
	return s.db.Worker.Do(ctx, "worker_drained", worker)
}

// Workers lists all known workers, alive or not, newest first. A worker is deleted
// a day after its last heartbeat.
func (s *Store) Workers(ctx context.Context) (workers []v1.Worker, err error) {
	err = s.currentFigures(ctx, "workers", func(tx pgx.Tx) error {
		workers, err = postgres.Rows(ctx, tx, "workers", pgx.RowToStructByNameLax[v1.Worker])
		if err != nil {
			return err
		}
		jobs, err := jobsByWorker(ctx, tx)
		for i := range workers {
			w := &workers[i]
			if w.Jobs = jobs[w.WorkerID]; w.Jobs == nil {
				w.Jobs = make(map[job.State]int64)
			}
			w.StartedAt, w.LastHeartbeat = w.StartedAt.UTC(), w.LastHeartbeat.UTC()
			if w.StoppedAt != nil {
				w.StoppedAt = new(w.StoppedAt.UTC())
			}
		}
		return err
	})
	return workers, err
}

// LiveWorkers returns the live processes, by what they do. Those that are asked to take no
// more jobs are left out.
func (s *Store) LiveWorkers(ctx context.Context) ([]job.Peers, error) {
	rows, err := postgres.Read(ctx, s.db.Worker, "live_workers", pgx.RowToStructByName[liveWorkersRow])
	if err != nil {
		return nil, err
	}
	live := make([]job.Peers, len(rows))
	for i, row := range rows {
		live[i] = job.Peers{Processes: int(row.Processes), Types: row.types()}
		for _, role := range row.Roles {
			live[i].Roles = append(live[i].Roles, job.Role(role))
		}
	}
	return live, nil
}

type liveWorkersRow struct {
	Roles     []string
	Plugins   pgtype.Text
	Processes int32
}

// types are sorted. Those of a worker that has not described its plugins, or not so that this
// version understands it, are unknown.
func (r liveWorkersRow) types() []string {
	var pools []job.Pool
	if !r.Plugins.Valid || json.Unmarshal([]byte(r.Plugins.String), &pools) != nil {
		return nil
	}
	var types []string
	for _, pool := range pools {
		types = append(types, pool.Types...)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// WorkersOnHost returns the workers on a host, except the one named, that have not
// signed off and may still hold leases.
func (s *Store) WorkersOnHost(ctx context.Context, host, except string) ([]job.Worker, error) {
	return postgres.Read(ctx, s.db.Worker, "workers_on_host", pgx.RowToStructByName[job.Worker], host, except)
}

// ExpireWorkers records that workers have ended, and expires the leases that they
// still hold. It returns how many leases those were. The caller must know for
// certain that the workers and their plugin processes have ended.
func (s *Store) ExpireWorkers(ctx context.Context, workers []string) (int, error) {
	return postgres.ChangeOne[int](ctx, s.db.Worker, "expire_workers", workers)
}

// ReleaseUnanswered releases the leases that a worker holds without knowing it,
// because the answers to its claims were lost. known are the leases that it knows. It
// returns how many leases it released. The worker must not have a claim in flight.
//
// A claim that waits for a standby shows no lease yet. ReleaseUnanswered waits for
// the standby first, so that it sees the leases of all earlier claims.
func (s *Store) ReleaseUnanswered(ctx context.Context, worker string, known []job.LeaseID) (int, error) {
	if err := s.db.Worker.Do(ctx, "barrier"); err != nil {
		return 0, err
	}
	released, err := postgres.Change(ctx, s.db.Worker, "release_unanswered", pgx.RowTo[job.ID], worker,
		postgres.Column(known, func(id job.LeaseID) pgtype.UUID { return postgres.UUID(id) }))
	return len(released), err
}

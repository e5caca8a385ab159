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

// Surroundings returns what a worker on a host must know of the others.
func (s *Store) Surroundings(ctx context.Context, host, worker string) (job.Surroundings, error) {
	rows, err := postgres.Read(ctx, s.db.Worker, "surroundings", pgx.RowToStructByName[surroundingsRow], host, worker)
	if err != nil {
		return job.Surroundings{}, err
	}
	found := job.Surroundings{LeaseExpired: rows[0].LeaseExpired, TypesVersion: rows[0].TypesVersion}
	for _, live := range rows[0].Live {
		found.Live = append(found.Live, job.Peers{Processes: live.Processes, Roles: live.Roles, Types: live.types()})
	}
	for _, w := range rows[0].Neighbours {
		found.Neighbours = append(found.Neighbours, job.Worker(w))
	}
	return found, nil
}

type surroundingsRow struct {
	Live         []livePeers
	Neighbours   []neighbour
	LeaseExpired bool
	TypesVersion int64
}

// neighbour is a job.Worker as the statement has it.
type neighbour struct {
	ID         string
	Host       string
	PID        int
	PIDStarted int64 `json:"pid_started"`
	Roles      job.Roles
}

type livePeers struct {
	Roles     job.Roles
	Plugins   *string
	Processes int
}

// types are sorted. Those of a worker that has not described its plugins, or not so that this
// version understands it, are unknown.
func (p livePeers) types() []string {
	var pools []job.Pool
	if p.Plugins == nil || json.Unmarshal([]byte(*p.Plugins), &pools) != nil {
		return nil
	}
	var types []string
	for _, pool := range pools {
		types = append(types, pool.Types...)
	}
	slices.Sort(types)
	return slices.Compact(types)
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

package store

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// Each verb works while all connections of the other pools are taken.
func TestEachVerbWaitsForConnectionsOfItsPoolOnly(t *testing.T) {
	s, err := Open(t.Context(), Config{URL: pgtest.URL(t), MaxConnections: 3})
	require.NoError(t, err)
	defer s.Close()
	uses := map[string]string{
		"renew": "heartbeat",

		"claim": "worker", "settle": "worker", "note": "worker", "keep logs": "worker", "reap": "worker", "promote": "worker",
		"next due": "worker", "outlook": "worker", "unserved": "worker", "ended": "worker", "declare types": "worker", "catalog": "worker",
		"enlist": "worker", "describe worker": "worker", "surroundings": "worker", "discharge": "worker", "disown": "worker",
		"fold tallies": "worker", "age tallies": "worker", "send": "worker", "record latencies": "worker",

		"submit": "submission", "submit all": "submission", "known": "submission", "ping": "submission", "cancel": "submission",
		"hold": "submission", "release": "submission", "requeue": "submission", "redrive": "submission",

		"get": "read", "detail": "read", "logs": "read", "list": "read", "dead letters": "read", "types": "read",
		"workers": "read", "worker totals": "read", "queues": "read", "metrics": "read", "series": "read", "diagnose": "read",
	}
	all := everyVerb(t, s)
	for name, verb := range all {
		t.Run(name, func(t *testing.T) {
			for pool, connections := range pools(s) {
				if pool != uses[name] {
					defer occupy(t, connections)()
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := verb(ctx); err != nil {
				require.ErrorIs(t, err, job.ErrNotFound)
			}
		})
	}
	require.Len(t, uses, len(all))
}

// occupy takes all connections of a pool, and returns a function that returns them.
func occupy(t *testing.T, pool *postgres.Pool) (release func()) {
	t.Helper()
	taken := make([]*pgxpool.Conn, pool.Config().MaxConns)
	for i := range taken {
		var err error
		taken[i], err = pool.Acquire(t.Context())
		require.NoError(t, err)
	}
	return func() {
		for _, conn := range taken {
			conn.Release()
		}
	}
}

// everyVerb adds to verbs the calls that do not wait for a locked table.
func everyVerb(t *testing.T, s *Store) map[string]func(context.Context) error {
	t.Helper()
	all := verbs(t, s)
	id := newID(t)
	maps.Copy(all, map[string]func(context.Context) error{
		"submit all": func(ctx context.Context) error { _, err := s.SubmitAll(ctx, submissions(t, 2)); return err },
		"known":      func(ctx context.Context) error { _, err := s.Known(ctx, submission(t)); return err },
		"hold":       func(ctx context.Context) error { _, err := s.Hold(ctx, id); return err },
		"keep logs": func(ctx context.Context) error {
			_, err := s.SaveLogs(ctx, []job.Report{{Lease: job.Lease{JobID: id}, Log: &job.AttemptLog{Number: 1}}})
			return err
		},
		"ended":        func(ctx context.Context) error { _, err := s.Ended(ctx, []job.ID{id}); return err },
		"disown":       func(ctx context.Context) error { _, err := s.ReleaseUnanswered(ctx, worker, nil); return err },
		"fold tallies": func(ctx context.Context) error { _, err := s.RollUpTallies(ctx, 1); return err },
		"age tallies":  s.AgeTallies,
		"record latencies": func(ctx context.Context) error {
			_, err := s.RecordLatencies(ctx, 0, []job.TypeLatencies{{Waits: job.Latencies{1}}})
			return err
		},
		"send":    func(ctx context.Context) error { return s.Send(ctx, job.Notice{Hint: job.JobsReady}) },
		"ping":    s.Ping,
		"detail":  func(ctx context.Context) error { _, err := s.Detail(ctx, id); return err },
		"logs":    func(ctx context.Context) error { _, err := s.Logs(ctx, id, job.LogFilter{Limit: 1}); return err },
		"list":    func(ctx context.Context) error { _, err := s.List(ctx, job.Filter{Limit: 1}); return err },
		"workers": func(ctx context.Context) error { _, err := s.Workers(ctx); return err },
		"worker totals": func(ctx context.Context) error {
			_, err := s.WorkerTotals(ctx, time.Minute)
			return err
		},
		"queues":   func(ctx context.Context) error { _, err := s.Queues(ctx); return err },
		"metrics":  func(ctx context.Context) error { _, err := s.Metrics(ctx, time.Minute); return err },
		"series":   func(ctx context.Context) error { _, err := s.Series(ctx, v1.Hour, ""); return err },
		"diagnose": func(ctx context.Context) error { _, err := s.Diagnose(ctx); return err },
	})
	return all
}

// Any number of lists leaves connections for lookups and figures.
func TestListsLeaveOtherReadsTheirConnections(t *testing.T) {
	s := open(t)
	id := given(t, s)
	release, running := make(chan struct{}), make(chan struct{}, 10)
	const lists = 2 // of the six connections for reads
	var waits []func() error
	for range lists + 3 {
		waits = append(waits, after(func() error {
			return s.db.Lists.Read(context.Background(), "list", func(postgres.Querier) error { running <- struct{}{}; <-release; return nil })
		}))
	}
	require.Eventually(t, func() bool { return len(running) == lists }, patience, time.Millisecond)
	get(t, s, id)
	_, err := s.Detail(t.Context(), id)
	require.NoError(t, err)
	_, err = s.Metrics(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Len(t, running, lists)
	close(release)
	for _, wait := range waits {
		require.NoError(t, wait())
	}
}

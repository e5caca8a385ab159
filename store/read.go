package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Get returns the public view of a job, or job.ErrNotFound.
func (s *Store) Get(ctx context.Context, id job.ID) (view job.View, err error) {
	err = s.lookups.read(ctx, "get", func(conn *pgxpool.Conn) (err error) {
		view, err = viewOf(ctx, conn, id)
		return err
	})
	return view, err
}

func viewOf(ctx context.Context, from querier, id job.ID) (job.View, error) {
	rows, err := from.Query(ctx, getSQL, uuid(id))
	if err != nil {
		return job.View{}, translate("get", err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[viewRow])
	if err != nil {
		return job.View{}, translate("get", err)
	}
	return found.view(), nil
}

// Ended returns those of the jobs whose state is final. It uses the worker's
// connections: its loop asks for all clients that wait.
func (s *Store) Ended(ctx context.Context, ids []job.ID) ([]job.View, error) {
	rows, err := s.worker.Query(ctx, endedSQL, column(ids, func(id job.ID) pgtype.UUID { return uuid(id) }))
	if err != nil {
		return nil, translate("ended", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[viewRow])
	return views(found), translate("ended", err)
}

// DeadLetters returns the dead jobs that the filter chooses, the newest first.
func (s *Store) DeadLetters(ctx context.Context, filter job.DeadLetterFilter) ([]job.DeadLetter, error) {
	after := pgtype.UUID{Bytes: filter.After.ID, Valid: !filter.After.DeadAt.IsZero()}
	type row struct {
		JobID     [16]byte
		JobType   string
		Tenant    string
		DeadAt    time.Time
		Attempt   int
		LastError string
	}
	var found []row
	err := s.lists.read(ctx, "dead letters", func(conn *pgxpool.Conn) (err error) {
		found, err = read(ctx, conn, deadLettersSQL, pgx.RowToStructByName[row],
			filter.Limit, filter.Type, filter.Tenant, instant(filter.After.DeadAt), after)
		return translate("dead letters", err)
	})
	if err != nil {
		return nil, err
	}
	letters := make([]job.DeadLetter, len(found))
	for i, row := range found {
		letters[i] = job.DeadLetter{
			ID: row.JobID, Type: row.JobType, Tenant: row.Tenant, DeadAt: row.DeadAt,
			Attempts: row.Attempt, LastError: row.LastError,
		}
	}
	return letters, nil
}

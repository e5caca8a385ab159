package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Claim makes the worker the owner of up to limit queued jobs of the types,
// each under a lease of its own for the duration, and returns them most
// urgent first. It never waits for another claimer.
func (s *Store) Claim(ctx context.Context, worker string, types []string, limit int, lease time.Duration) ([]job.Claimed, error) {
	found, err := s.take(ctx, claimArguments(s.marks.stretches(types, time.Now()), worker, limit, lease)...)
	if err != nil {
		return nil, translate("claim", err)
	}
	claimed := make([]job.Claimed, len(found))
	for i, row := range found {
		claimed[i] = row.claimed()
	}
	s.marks.advance(claimed, time.Now())
	return claimed, nil
}

func claimArguments(stretches []stretch, worker string, limit int, lease time.Duration) []any {
	return []any{
		column(stretches, func(s stretch) string { return s.jobType }),
		column(stretches, func(s stretch) int16 { return s.urgency }),
		column(stretches, func(s stretch) pgtype.Timestamptz { return s.runAt }),
		column(stretches, func(s stretch) int32 { return s.until }),
		limit, worker, interval(lease),
	}
}

func (s *Store) take(ctx context.Context, args ...any) ([]claimedRow, error) {
	rows, err := s.work.Query(ctx, claimSQL, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[claimedRow])
}

type claimedRow struct {
	JobID         [16]byte
	LeaseID       [16]byte
	Fence         int64
	JobType       string
	Tenant        string
	Payload       []byte
	Attempt       int
	MaxAttempts   int
	Interruptions int
	Timeout       time.Duration
	Checkpoint    []byte
	TraceParent   string
	TraceState    string
	CreatedAt     time.Time
	Priority      int16
	RunAt         time.Time
	ClaimedAt     time.Time
}

func (r claimedRow) claimed() job.Claimed {
	return job.Claimed{
		Lease:         job.Lease{JobID: r.JobID, ID: r.LeaseID, Fence: r.Fence},
		Type:          r.JobType,
		Tenant:        r.Tenant,
		Payload:       r.Payload,
		Attempt:       r.Attempt,
		MaxAttempts:   r.MaxAttempts,
		Interruptions: r.Interruptions,
		Timeout:       r.Timeout,
		Checkpoint:    r.Checkpoint,
		Trace:         job.Trace{Parent: r.TraceParent, State: r.TraceState},
		CreatedAt:     r.CreatedAt,
		Priority:      r.Priority,
		RunAt:         r.RunAt,
		ClaimedAt:     r.ClaimedAt,
	}
}

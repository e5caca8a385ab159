package store

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Claim makes the worker the owner of up to limit queued jobs of the types,
// each under a lease of its own for the duration, and returns them most
// urgent first. It never waits for another claimer.
func (s *Store) Claim(ctx context.Context, worker string, types []string, limit int, lease time.Duration) ([]job.Claimed, error) {
	search := s.marks.search(types, time.Now())
	claimed, err := s.take(ctx, claimArguments(search.stretches, worker, limit, lease))
	if err != nil {
		return nil, translate("claim", err)
	}
	s.marks.found(search, claimed, limit, time.Now())
	return claimed, nil
}

func claimArguments(stretches []stretch, worker string, limit int, lease time.Duration) []any {
	return []any{
		column(stretches, func(s stretch) string { return s.jobType }),
		column(stretches, func(s stretch) int16 { return s.urgency }),
		column(stretches, func(s stretch) pgtype.Timestamptz { return s.from.due() }),
		column(stretches, func(s stretch) pgtype.UUID { return uuid(s.from.id) }),
		column(stretches, func(s stretch) int32 { return s.until }),
		limit, worker, interval(lease), newLeaseIDs(limit),
	}
}

// newLeaseIDs are random UUIDs (RFC 9562, version 4).
func newLeaseIDs(n int) pgtype.ArrayGetter {
	random := make([]byte, 16*n)
	_, _ = rand.Read(random) // never fails
	ids := make(pointers[pgtype.UUID], n)
	for i := range ids {
		id := [16]byte(random[16*i:])
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		ids[i] = uuid(id)
	}
	return ids
}

// take runs the statement. All rows are read through one, which takes half of what
// a new one for each takes.
func (s *Store) take(ctx context.Context, args []any) ([]job.Claimed, error) {
	rows, err := s.work.Query(ctx, claimSQL, args...)
	if err != nil {
		return nil, err
	}
	var r claimedRow
	var claimed []job.Claimed
	columns := r.columns()
	targets := make([]any, len(rows.FieldDescriptions()))
	for i, field := range rows.FieldDescriptions() {
		targets[i] = columns[field.Name]
	}
	_, err = pgx.ForEachRow(rows, targets, func() error {
		claimed = append(claimed, r.claimed())
		return nil
	})
	return claimed, err
}

type claimedRow struct {
	jobID, leaseID                      pgtype.UUID
	fence                               int64
	jobType, tenant                     string
	payload                             []byte
	attempt, maxAttempts, interruptions int32
	timeout                             pgtype.Interval
	checkpoint                          []byte
	traceParent, traceState             string
	createdAt                           pgtype.Timestamptz
	priority                            int16
	runAt, claimedAt                    pgtype.Timestamptz
}

// columns are where the statement's columns go.
func (r *claimedRow) columns() map[string]any {
	return map[string]any{
		"job_id": &r.jobID, "lease_id": &r.leaseID, "fence": &r.fence, "job_type": &r.jobType, "tenant": &r.tenant,
		"payload": &r.payload, "attempt": &r.attempt, "max_attempts": &r.maxAttempts, "interruptions": &r.interruptions,
		"timeout": &r.timeout, "checkpoint": &r.checkpoint, "trace_parent": &r.traceParent, "trace_state": &r.traceState,
		"created_at": &r.createdAt, "priority": &r.priority, "run_at": &r.runAt, "claimed_at": &r.claimedAt,
	}
}

func (r *claimedRow) claimed() job.Claimed {
	return job.Claimed{
		Lease:         job.Lease{JobID: r.jobID.Bytes, ID: r.leaseID.Bytes, Fence: r.fence},
		Type:          r.jobType,
		Tenant:        r.tenant,
		Payload:       r.payload,
		Attempt:       int(r.attempt),
		MaxAttempts:   int(r.maxAttempts),
		Interruptions: int(r.interruptions),
		Timeout:       duration(r.timeout),
		Checkpoint:    r.checkpoint,
		Trace:         job.Trace{Parent: r.traceParent, State: r.traceState},
		CreatedAt:     r.createdAt.Time,
		Priority:      r.priority,
		RunAt:         r.runAt.Time,
		ClaimedAt:     r.claimedAt.Time,
	}
}

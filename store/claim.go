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
	if _, err := s.lookBehind(ctx, s.marks.due(types, time.Now(), false)); err != nil {
		return nil, translate("claim", err)
	}
	claimed, err := s.claim(ctx, worker, types, limit, lease)
	if err != nil || len(claimed) > 0 {
		return claimed, translate("claim", err)
	}
	found, err := s.lookBehind(ctx, s.marks.due(types, time.Now(), true))
	if err != nil || !found {
		return nil, translate("claim", err)
	}
	claimed, err = s.claim(ctx, worker, types, limit, lease)
	return claimed, translate("claim", err)
}

// claim claims from the marks on.
func (s *Store) claim(ctx context.Context, worker string, types []string, limit int, lease time.Duration) ([]job.Claimed, error) {
	claimed, err := s.take(ctx, claimArguments(s.marks.stretches(types), worker, limit, lease))
	if err != nil {
		return nil, err
	}
	s.marks.claimed(claimed, time.Now())
	return claimed, nil
}

// lookBehind moves marks back to the jobs that wait before them. It reports whether
// there were any.
func (s *Store) lookBehind(ctx context.Context, glances []glance) (found bool, err error) {
	if len(glances) == 0 {
		return false, nil
	}
	rows, err := s.worker.Query(ctx, lookBehindSQL,
		column(glances, func(g glance) string { return g.jobType }),
		column(glances, func(g glance) int16 { return g.urgency }),
		column(glances, func(g glance) pgtype.Timestamptz { return g.before.due() }),
		column(glances, func(g glance) pgtype.UUID { return uuid(g.before.id) }))
	if err != nil {
		return false, err
	}
	answers, err := pgx.CollectRows(rows, pgx.RowToStructByName[lookBehindRow])
	if err != nil || len(answers) == 0 {
		return false, err
	}
	// What they took together is what counts: they are due together.
	took, now := duration(answers[len(answers)-1].Took), time.Now()
	for i, answer := range answers {
		if s.marks.looked(glances[i], answer.place(), took, now) {
			found = true
		}
	}
	return found, nil
}

type lookBehindRow struct {
	RunAt pgtype.Timestamptz
	JobID pgtype.UUID
	Took  pgtype.Interval
}

// place is nil where no job waits.
func (r lookBehindRow) place() *place {
	if !r.JobID.Valid {
		return nil
	}
	return &place{runAt: r.RunAt.Time, id: r.JobID.Bytes}
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
	return write(ctx, s, s.worker, func(ctx context.Context, conn *pgx.Conn) (claimed []job.Claimed, err error) {
		rows, err := conn.Query(ctx, claimSQL, args...)
		if err != nil {
			return nil, err
		}
		var r claimedRow
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
	})
}

type claimedRow struct {
	jobID, leaseID                      pgtype.UUID
	fence                               int64
	jobType, tenant                     string
	payload                             []byte
	attempt, maxAttempts, interruptions int32
	crashes                             int16
	timeout                             pgtype.Interval
	checkpoint                          []byte
	traceParent, traceState             string
	createdAt                           pgtype.Timestamptz
	priority                            int16
	runAt, claimedAt, lastEndedAt       pgtype.Timestamptz
	lastOutcome                         pgtype.Text
}

// columns are where the statement's columns go.
func (r *claimedRow) columns() map[string]any {
	return map[string]any{
		"job_id": &r.jobID, "lease_id": &r.leaseID, "fence": &r.fence, "job_type": &r.jobType, "tenant": &r.tenant,
		"payload": &r.payload, "attempt": &r.attempt, "max_attempts": &r.maxAttempts, "interruptions": &r.interruptions,
		"crashes": &r.crashes, "timeout": &r.timeout, "checkpoint": &r.checkpoint, "trace_parent": &r.traceParent, "trace_state": &r.traceState,
		"created_at": &r.createdAt, "priority": &r.priority, "run_at": &r.runAt, "claimed_at": &r.claimedAt,
		"last_ended_at": &r.lastEndedAt, "last_outcome": &r.lastOutcome,
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
		Crashes:       int(r.crashes),
		Timeout:       duration(r.timeout),
		Checkpoint:    r.checkpoint,
		Trace:         traceContext(r.traceParent, r.traceState),
		CreatedAt:     r.createdAt.Time,
		Priority:      r.priority,
		RunAt:         r.runAt.Time,
		ClaimedAt:     r.claimedAt.Time,
		Last:          lastAttempt(r.lastEndedAt, r.lastOutcome),
	}
}

func lastAttempt(endedAt pgtype.Timestamptz, outcome pgtype.Text) *job.LastAttempt {
	if !endedAt.Valid {
		return nil
	}
	return &job.LastAttempt{EndedAt: endedAt.Time, Outcome: job.OutcomeKind(outcome.String)}
}

package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// Claim makes the worker the owner of up to limit queued jobs of the types and
// returns them, most urgent first. Each has its own lease, which lasts for the
// duration. Claim never waits for another claimer. After an error, others than it returns
// may be claimed too.
func (s *Store) Claim(ctx context.Context, worker string, types []string, limit int, lease time.Duration) ([]job.Claimed, error) {
	now := time.Now()
	if _, err := s.lookBehind(ctx, s.marks.due(types, now, false)); err != nil {
		return nil, err
	}
	claimed, err := s.claim(ctx, worker, types, limit, lease)
	if err != nil || len(claimed) > 0 {
		return claimed, err
	}
	// With the same time, so that what has just been looked at is not due.
	found, err := s.lookBehind(ctx, s.marks.due(types, now, true))
	if err != nil || !found {
		return nil, err
	}
	return s.claim(ctx, worker, types, limit, lease)
}

// claim claims jobs from the low-water marks on. After an error, others than it returns may
// be claimed too: those of which it could not read what they come after.
func (s *Store) claim(ctx context.Context, worker string, types []string, limit int, lease time.Duration) ([]job.Claimed, error) {
	claimed, err := s.claimInOrder(ctx, worker, types, limit, lease)
	if err != nil {
		return nil, err
	}
	s.marks.claimed(claimed, time.Now())
	s.soles.claimed(types, claimed, limit)
	if err := s.predecessors(ctx, claimed); err != nil {
		return slices.DeleteFunc(claimed, func(c job.Claimed) bool { return c.Followed }), err
	}
	return claimed, nil
}

// claimInOrder claims the most urgent jobs of all types. It must know beforehand how many there
// are of each: a row that is locked and not claimed would be hidden from other claimers. If one
// type had all jobs last time, the claim itself finds out whether it still has. What was found
// may be claimed by others meanwhile; then it looks again, once. It claims nothing more for a
// caller that has given up, and would never hear of it.
func (s *Store) claimInOrder(caller context.Context, worker string, types []string, limit int, lease time.Duration) ([]job.Claimed, error) {
	ranges := s.marks.ranges(types)
	return postgres.Write(caller, s.db.Worker, "claim", func(ctx context.Context, conn *pgx.Conn) ([]job.Claimed, error) {
		if len(types) == 1 {
			return claimShares(ctx, conn, upTo(limit, types[0], ranges), worker, limit, lease)
		}
		if sole := s.soles.among(types, time.Now()); sole != "" {
			claimed, err := claimShares(ctx, conn, upTo(limit, sole, ranges), worker, limit, lease)
			if err != nil || len(claimed) > 0 {
				return claimed, err
			}
			s.soles.wrong(sole, time.Now())
		}
		for range 2 {
			shares, err := sharesOf(ctx, conn, ranges, limit)
			if err != nil || len(shares) == 0 {
				return nil, err
			}
			if err := caller.Err(); err != nil {
				return nil, err
			}
			claimed, err := claimShares(ctx, conn, shares, worker, limit, lease)
			if err != nil || len(claimed) > 0 {
				return claimed, err
			}
		}
		return nil, nil
	})
}

// share says how many jobs of a range to claim at most; see claim.sql for 0.
type share struct {
	queueRange
	jobs int
}

// upTo are shares for the limit of jobs of one type, if the other types have none.
func upTo(limit int, jobType string, ranges []queueRange) []share {
	all := make([]share, len(ranges))
	for i, r := range ranges {
		all[i].queueRange = r
		if r.jobType == jobType {
			all[i].jobs = limit
		}
	}
	return all
}

// sharesOf returns the ranges that the most urgent jobs are in, with how many of these there are
// in each.
func sharesOf(ctx context.Context, conn *pgx.Conn, ranges []queueRange, limit int) ([]share, error) {
	rows, err := postgres.Rows(ctx, conn, "shares", pgx.RowToStructByName[shareRow], append(rangeColumns(ranges), limit)...)
	all := make([]share, len(rows))
	for i, row := range rows {
		all[i] = share{queueRange: ranges[row.Nth-1], jobs: int(row.Jobs)}
	}
	return all, err
}

type shareRow struct{ Nth, Jobs int32 }

// lookBehind moves marks back to the jobs that wait below them. It reports whether any
// mark moved.
func (s *Store) lookBehind(ctx context.Context, marks []lowWaterMark) (found bool, err error) {
	if len(marks) == 0 {
		return false, nil
	}
	answers, err := postgres.Read(ctx, s.db.Worker, "look_behind", pgx.RowToStructByName[lookBehindRow],
		postgres.Column(marks, func(m lowWaterMark) string { return m.jobType }),
		postgres.Column(marks, func(m lowWaterMark) int16 { return m.urgency }),
		postgres.Column(marks, func(m lowWaterMark) pgtype.Timestamptz { return m.at.due() }),
		postgres.Column(marks, func(m lowWaterMark) pgtype.UUID { return postgres.UUID(m.at.id) }))
	if err != nil || len(answers) == 0 {
		return false, err
	}
	// The times of all searches add up, because they are due together.
	took, now := postgres.Duration(answers[len(answers)-1].Took), time.Now()
	for i, answer := range answers {
		if s.marks.looked(marks[i], answer.position(), took, now) {
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

// position is nil if no job waits.
func (r lookBehindRow) position() *position {
	if !r.JobID.Valid {
		return nil
	}
	return &position{runAt: r.RunAt.Time, id: r.JobID.Bytes}
}

func claimArguments(shares []share, worker string, limit int, lease time.Duration) []any {
	ranges := make([]queueRange, len(shares))
	for i, s := range shares {
		ranges[i] = s.queueRange
	}
	return append(rangeColumns(ranges), limit, worker, postgres.Interval(lease), newLeaseIDs(limit),
		postgres.Column(shares, func(s share) int32 { return int32(s.jobs) }))
}

func rangeColumns(ranges []queueRange) []any {
	return []any{
		postgres.Column(ranges, func(r queueRange) string { return r.jobType }),
		postgres.Column(ranges, func(r queueRange) int16 { return r.urgency }),
		postgres.Column(ranges, func(r queueRange) pgtype.Timestamptz { return r.from.due() }),
		postgres.Column(ranges, func(r queueRange) pgtype.UUID { return postgres.UUID(r.from.id) }),
		postgres.Column(ranges, func(r queueRange) int32 { return r.until }),
	}
}

// newLeaseIDs are random UUIDs (RFC 9562, version 4).
func newLeaseIDs(n int) pgtype.ArrayGetter {
	random := make([]byte, 16*n)
	_, _ = rand.Read(random) // never fails
	ids := make(postgres.Pointers[pgtype.UUID], n)
	for i := range ids {
		id := [16]byte(random[16*i:])
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		ids[i] = postgres.UUID(id)
	}
	return ids
}

// few is how many jobs a claim brings before there is room for all that it asked for: it mostly
// gets about as many, and jobs are too large to be copied often.
const few = 32

// claimShares claims jobs of the shares. It reads all rows into the same struct: a new one for each
// row would take twice the time. It sorts them, too: the server would copy whole rows, which
// are mostly in order.
func claimShares(ctx context.Context, conn *pgx.Conn, shares []share, worker string, limit int, lease time.Duration) (claimed []job.Claimed, err error) {
	rows, err := conn.Query(ctx, sql.Text("claim"), claimArguments(shares, worker, limit, lease)...)
	if err != nil {
		return nil, err
	}
	var r claimedRow
	_, err = pgx.ForEachRow(rows, targets(rows, r.columns()), func() error {
		if len(claimed) == few {
			claimed = slices.Grow(claimed, limit-few)
		}
		claimed = append(claimed, r.claimed())
		return nil
	})
	slices.SortFunc(claimed, byUrgency)
	return claimed, err
}

// byUrgency is the order of a queue.
func byUrgency(a, b job.Claimed) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Position().Compare(b.Position()), bytes.Compare(a.JobID[:], b.JobID[:]))
}

// targets are the places where the columns of the rows go, by their names. There are none
// if the statement has failed.
func targets(rows pgx.Rows, columns map[string]any) []any {
	if rows.Err() != nil {
		return nil
	}
	fields := rows.FieldDescriptions()
	all := make([]any, len(fields))
	for i, field := range fields {
		all[i] = columns[field.Name]
	}
	return all
}

type claimedRow struct {
	jobID, leaseID                      pgtype.UUID
	fence                               int64
	jobType, tenant                     postgres.SameText
	payload                             []byte
	attempt, maxAttempts, interruptions int32
	crashes                             int16
	timeout                             pgtype.Interval
	checkpoint                          []byte
	traceParent, traceState             string
	createdAt                           pgtype.Timestamptz
	priority                            int16
	runAt                               pgtype.Timestamptz
	position                            pgtype.Timestamptz // null if it is runAt
	gates                               []string           // nil for none
	followed                            pgtype.Bool
	admittedAt, expiresAt               pgtype.Timestamptz
	claimedAt, lastEndedAt              pgtype.Timestamptz
	lastOutcome                         pgtype.Text
}

// columns says where each column of the statement goes.
func (r *claimedRow) columns() map[string]any {
	return map[string]any{
		"job_id": &r.jobID, "lease_id": &r.leaseID, "fence": &r.fence, "job_type": &r.jobType, "tenant": &r.tenant,
		"payload": &r.payload, "attempt": &r.attempt, "max_attempts": &r.maxAttempts, "interruptions": &r.interruptions,
		"crashes": &r.crashes, "timeout": &r.timeout, "checkpoint": &r.checkpoint, "trace_parent": &r.traceParent, "trace_state": &r.traceState,
		"created_at": &r.createdAt, "priority": &r.priority, "run_at": &r.runAt, "position": &r.position,
		"admitted_at": &r.admittedAt, "gates": &r.gates, "followed": &r.followed, "expires_at": &r.expiresAt, "claimed_at": &r.claimedAt,
		"last_ended_at": &r.lastEndedAt, "last_outcome": &r.lastOutcome,
	}
}

func (r *claimedRow) claimed() job.Claimed {
	return job.Claimed{
		Lease:         job.Lease{JobID: r.jobID.Bytes, ID: r.leaseID.Bytes, Fence: r.fence, Gated: r.gates != nil, Followed: r.followed.Bool},
		Type:          string(r.jobType),
		Tenant:        string(r.tenant),
		Payload:       r.payload,
		Attempt:       int(r.attempt),
		MaxAttempts:   int(r.maxAttempts),
		Interruptions: int(r.interruptions),
		Crashes:       int(r.crashes),
		Timeout:       postgres.Duration(r.timeout),
		Checkpoint:    r.checkpoint,
		Trace:         traceContext(r.traceParent, r.traceState),
		CreatedAt:     r.createdAt.Time,
		Priority:      r.priority,
		RunAt:         r.runAt.Time,
		ClaimedAt:     r.claimedAt.Time,
		ExpiresAt:     r.expiresAt.Time,
		Passed:        r.passed(),
		Last:          lastAttempt(r.lastEndedAt, r.lastOutcome),
	}
}

// passed is nil for a job that is ready without having been admitted.
func (r *claimedRow) passed() *job.Passed {
	if r.gates == nil && !r.admittedAt.Valid && !r.position.Valid {
		return nil
	}
	passed := &job.Passed{Gates: gates(r.gates), AdmittedAt: r.admittedAt.Time, Position: r.runAt.Time}
	if r.position.Valid {
		passed.Position = r.position.Time
	}
	return passed
}

// gates is nil without names.
func gates(names []string) []job.Gate {
	if len(names) == 0 {
		return nil
	}
	all := make([]job.Gate, len(names))
	for i, name := range names {
		all[i] = job.Gate(name)
	}
	return all
}

func lastAttempt(endedAt pgtype.Timestamptz, outcome pgtype.Text) *job.LastAttempt {
	if !endedAt.Valid {
		return nil
	}
	return &job.LastAttempt{EndedAt: endedAt.Time, Outcome: job.OutcomeKind(outcome.String)}
}

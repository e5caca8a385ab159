package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// Settle writes the settlements and returns the result of each, in the order
// given. Each is fenced by its lease; those that lead to the same state share one
// statement. After an error, nothing is known about the settlements: settle all of
// them again, which is safe.
func (s *Store) Settle(ctx context.Context, batch []job.Settlement) ([]job.SettleResult, error) {
	results := make([]job.SettleResult, len(batch))
	byState := make(map[job.State][]int)
	for i, settlement := range batch {
		if len(settlement.FollowUps) > 0 {
			return nil, errors.New("settle: a settlement has follow-ups, which would be lost")
		}
		byState[settlement.To] = append(byState[settlement.To], i)
	}
	for _, verb := range settleVerbs {
		indexes := byState[verb.to]
		delete(byState, verb.to)
		if err := s.settleAs(ctx, verb, batch, indexes, results); err != nil {
			return nil, err
		}
	}
	for state := range byState {
		return nil, fmt.Errorf("settle: a running job cannot become %s", state)
	}
	return results, nil
}

// settleVerb is one way out of running.
type settleVerb struct {
	statement string
	to        job.State
	columns   func([]*job.Settlement) []any
}

var settleVerbs = []settleVerb{
	{"succeed", job.Succeeded, succeedColumns},
	{"retry", job.Retry, retryColumns},
	{"dead_letter", job.Dead, deadColumns},
	{"release_claim", job.Queued, releaseColumns},
	{"confirm_cancel", job.Canceled, unsuccessfulColumns},
}

// statementFor is the statement for the settlements. All but succeed are rare enough to do
// without a second one for jobs with gates and jobs that are followed.
func (v settleVerb) statementFor(part []*job.Settlement) string {
	if v.to == job.Succeeded && !allPlain(part) {
		return "succeed_gated"
	}
	return v.statement
}

// allPlain reports whether nobody but the ledger needs to know of the settlements.
func allPlain(batch []*job.Settlement) bool {
	return !slices.ContainsFunc(batch, func(s *job.Settlement) bool { return s.Gated || s.Followed })
}

// settleAs writes the settlements at the indexes with one verb. It halves them as
// long as they contain a value that cannot be stored.
func (s *Store) settleAs(ctx context.Context, verb settleVerb, batch []job.Settlement, indexes []int, results []job.SettleResult) error {
	if len(indexes) == 0 {
		return nil
	}
	// Every statement takes its locks in the order of the jobs.
	slices.SortFunc(indexes, func(a, b int) int { return bytes.Compare(batch[a].JobID[:], batch[b].JobID[:]) })
	part := make([]*job.Settlement, len(indexes)) // a settlement is large
	for i, index := range indexes {
		part[i] = &batch[index]
	}
	written, err := s.changedIDs(ctx, verb.statementFor(part), verb.columns(part)...)
	switch {
	case errors.Is(err, job.ErrBadData) && len(indexes) == 1:
		results[indexes[0]] = job.Refused
		return nil
	case errors.Is(err, job.ErrBadData):
		half := len(indexes) / 2
		return errors.Join(
			s.settleAs(ctx, verb, batch, indexes[:half], results),
			s.settleAs(ctx, verb, batch, indexes[half:], results))
	case err != nil:
		return err
	}
	leases := make([]job.Lease, len(part))
	for i := range part {
		leases[i] = part[i].Lease
	}
	return s.explain(ctx, written, leases, indexes, results)
}

// Park takes claimed jobs back that may not start, and returns the result of each, in the
// order given: Settled, Canceling, Held or Lost, as of a settlement. Each is fenced by its
// lease. After an error, nothing is known about them: park all of them again, which is
// safe. Those that the first try has parked are then Lost.
func (s *Store) Park(ctx context.Context, batch []job.Parking) ([]job.SettleResult, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	results := make([]job.SettleResult, len(batch))
	indexes := make([]int, len(batch))
	for i := range indexes {
		indexes[i] = i
	}
	slices.SortFunc(indexes, func(a, b int) int { return bytes.Compare(batch[a].JobID[:], batch[b].JobID[:]) })
	sorted, leases := make([]job.Parking, len(batch)), make([]job.Lease, len(batch))
	for i, index := range indexes {
		sorted[i], leases[i] = batch[index], batch[index].Lease
	}
	written, err := s.changedIDs(ctx, "park_claim", parkColumns(sorted)...)
	if err != nil {
		return nil, err
	}
	return results, s.explain(ctx, written, leases, indexes, results)
}

func parkColumns(batch []job.Parking) []any {
	return append(leaseColumns(batch, func(p job.Parking) job.Lease { return p.Lease }),
		postgres.Column(batch, func(p job.Parking) pgtype.Text { return jsonArray(p.Gates) }))
}

// explain fills in the results at the indexes, whose leases these are. It finds out why
// leases were not written. It waits until the standby has the commits that its result
// depends on: an earlier try may have been committed on the primary alone.
func (s *Store) explain(
	ctx context.Context, written map[[16]byte]struct{}, leases []job.Lease, indexes []int, results []job.SettleResult,
) error {
	var unwritten []int
	for i, index := range indexes {
		if _, ok := written[leases[i].ID]; ok {
			results[index] = job.Settled
		} else {
			unwritten = append(unwritten, i)
		}
	}
	if len(unwritten) == 0 {
		return nil
	}
	found, err := postgres.Confirm(ctx, s.db.Worker, "settle_result", pgx.RowTo[job.SettleResult],
		postgres.Column(unwritten, func(i int) pgtype.UUID { return postgres.UUID(leases[i].JobID) }),
		postgres.Column(unwritten, func(i int) pgtype.UUID { return postgres.UUID(leases[i].ID) }),
		postgres.Column(unwritten, func(i int) int64 { return leases[i].Fence }))
	for i, result := range found { // one for each, in the order asked
		results[indexes[unwritten[i]]] = result
	}
	return err
}

// changedIDs runs a statement that returns the ids of the jobs or leases that it
// wrote.
func (s *Store) changedIDs(ctx context.Context, statement string, args ...any) (map[[16]byte]struct{}, error) {
	ids, err := postgres.Change(ctx, s.db.Worker, statement, postgres.RowToUUID(), args...)
	written := make(map[[16]byte]struct{}, len(ids))
	for _, id := range ids {
		written[id] = struct{}{}
	}
	return written, err
}

func leaseColumns[T any](batch []T, lease func(T) job.Lease) []any {
	return []any{
		postgres.Column(batch, func(t T) pgtype.UUID { return postgres.UUID(lease(t).JobID) }),
		postgres.Column(batch, func(t T) pgtype.UUID { return postgres.UUID(lease(t).ID) }),
	}
}

// milliseconds is a time of an attempt as the database keeps it; null if it is not known. It
// has room for 24 days.
func milliseconds(t job.SinceClaim) pgtype.Int4 {
	return pgtype.Int4{Int32: int32(min(t.Time.Milliseconds(), math.MaxInt32)), Valid: t.Known}
}

func leaseOfSettlement(s *job.Settlement) job.Lease { return s.Lease }

func succeedColumns(batch []*job.Settlement) []any {
	return append(leaseColumns(batch, leaseOfSettlement),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Text { return postgres.Document(s.Result) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Text { return postgres.Text(s.Plugin) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Text { return postgres.Text(s.Version) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Text { return postgres.Text(s.SpanID) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Int4 { return milliseconds(s.Began) }))
}

func unsuccessfulColumns(batch []*job.Settlement) []any {
	return append(leaseColumns(batch, leaseOfSettlement),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Text { return postgres.Text(s.Plugin) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Text { return postgres.Text(s.Version) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Text { return postgres.Text(s.SpanID) }),
		postgres.Column(batch, func(s *job.Settlement) string { return string(s.Kind) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Text { return postgres.Text(s.Code) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Text { return postgres.Text(s.Error) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Text { return postgres.Text(s.Stack) }),
		postgres.Column(batch, func(s *job.Settlement) int32 { return int32(s.Number) }),
		postgres.Column(batch, func(s *job.Settlement) int32 { return int32(s.Attempt) }),
		postgres.Column(batch, func(s *job.Settlement) int32 { return int32(s.Interruptions) }),
		postgres.Column(batch, func(s *job.Settlement) int32 { return int32(s.Crashes) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Int4 { return milliseconds(s.Began) }),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Int4 { return milliseconds(s.Done) }))
}

func releaseColumns(batch []*job.Settlement) []any {
	return append(unsuccessfulColumns(batch),
		postgres.Column(batch, func(s *job.Settlement) bool { return s.Started }))
}

func deadColumns(batch []*job.Settlement) []any {
	return append(unsuccessfulColumns(batch),
		postgres.Column(batch, func(s *job.Settlement) string { return job.Fingerprint(s.Code, s.Error) }))
}

func retryColumns(batch []*job.Settlement) []any {
	return append(unsuccessfulColumns(batch),
		postgres.Column(batch, func(s *job.Settlement) pgtype.Interval { return postgres.Interval(s.Delay) }))
}

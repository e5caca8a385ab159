package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Settle writes the settlements and returns the fate of each, in the order
// given. Each is fenced by its lease; those that pass to the same state share
// one statement. An error means that nothing is known of the settlements it
// came with: settle all of them again, which is safe.
func (s *Store) Settle(ctx context.Context, batch []job.Settlement) ([]job.SettleResult, error) {
	fates := make([]job.SettleResult, len(batch))
	byState := make(map[job.State][]int)
	for i, settlement := range batch {
		byState[settlement.To] = append(byState[settlement.To], i)
	}
	for _, verb := range settleVerbs {
		places := byState[verb.to]
		delete(byState, verb.to)
		if err := s.settleAs(ctx, verb, batch, places, fates); err != nil {
			return nil, translate(verb.name, err)
		}
	}
	for state := range byState {
		return nil, fmt.Errorf("settle: a running job cannot become %s", state)
	}
	return fates, nil
}

// settleVerb is one way out of running.
type settleVerb struct {
	name    string
	to      job.State
	sql     string
	columns func([]job.Settlement) []any
}

var settleVerbs = []settleVerb{
	{"succeed", job.Succeeded, succeedSQL, succeedColumns},
	{"retry", job.Retry, retrySQL, retryColumns},
	{"bury", job.Dead, burySQL, unsuccessfulColumns},
	{"give back", job.Queued, giveBackSQL, unsuccessfulColumns},
	{"confirm cancel", job.Canceled, confirmCancelSQL, unsuccessfulColumns},
}

// settleAs writes the settlements at the places with one verb, halving them
// as long as a value among them cannot be stored.
func (s *Store) settleAs(ctx context.Context, verb settleVerb, batch []job.Settlement, places []int, fates []job.SettleResult) error {
	if len(places) == 0 {
		return nil
	}
	// Everybody locks in job order.
	slices.SortFunc(places, func(a, b int) int { return bytes.Compare(batch[a].JobID[:], batch[b].JobID[:]) })
	part := make([]job.Settlement, len(places))
	for i, place := range places {
		part[i] = batch[place]
	}
	written, err := s.writeOnce(ctx, s.worker, verb.sql, verb.columns(part)...)
	switch {
	case errors.Is(translate(verb.name, err), job.ErrBadData) && len(places) == 1:
		fates[places[0]] = job.Refused
		return nil
	case errors.Is(translate(verb.name, err), job.ErrBadData):
		half := len(places) / 2
		return errors.Join(
			s.settleAs(ctx, verb, batch, places[:half], fates),
			s.settleAs(ctx, verb, batch, places[half:], fates))
	case err != nil:
		return err
	}
	var missing []int
	for i, place := range places {
		if _, ok := written[part[i].Lease.ID]; ok {
			fates[place] = job.Settled
		} else {
			missing = append(missing, place)
		}
	}
	return s.learnFates(ctx, batch, missing, fates)
}

// learnFates finds out why settlements were not written. It waits until the standby
// has what it tells: one that was settled before may have been so on the primary alone.
func (s *Store) learnFates(ctx context.Context, batch []job.Settlement, places []int, fates []job.SettleResult) error {
	if len(places) == 0 {
		return nil
	}
	type row struct {
		JobID [16]byte
		Fate  string
	}
	found, err := confirmed(ctx, s, s.worker, pgx.RowToStructByName[row], fateSQL,
		column(places, func(place int) pgtype.UUID { return uuid(batch[place].JobID) }),
		column(places, func(place int) pgtype.UUID { return uuid(batch[place].Lease.ID) }),
		column(places, func(place int) int64 { return batch[place].Fence }))
	if err != nil {
		return err
	}
	for i, row := range found { // one row for each place, in the order asked
		fates[places[i]] = job.SettleResult(row.Fate)
	}
	return nil
}

// writeOnce runs a statement that returns the ids of the jobs or leases it
// wrote, again if it lost a deadlock.
func (s *Store) writeOnce(ctx context.Context, on *pgxpool.Pool, sql string, args ...any) (map[[16]byte]struct{}, error) {
	for {
		ids, err := changed(ctx, s, on, pgx.RowTo[[16]byte], sql, args...)
		if err == nil {
			written := make(map[[16]byte]struct{}, len(ids))
			for _, id := range ids {
				written[id] = struct{}{}
			}
			return written, nil
		}
		if !worthAnotherTry(err) {
			return nil, err
		}
	}
}

func leaseColumns(batch []job.Settlement) []any {
	return []any{
		column(batch, func(s job.Settlement) pgtype.UUID { return uuid(s.JobID) }),
		column(batch, func(s job.Settlement) pgtype.UUID { return uuid(s.Lease.ID) }),
	}
}

func succeedColumns(batch []job.Settlement) []any {
	return append(leaseColumns(batch),
		column(batch, func(s job.Settlement) pgtype.Text { return document(s.Result) }),
		column(batch, func(s job.Settlement) pgtype.Text { return text(s.Plugin) }),
		column(batch, func(s job.Settlement) pgtype.Text { return text(s.Version) }),
		column(batch, func(s job.Settlement) pgtype.Text { return text(s.SpanID) }))
}

func unsuccessfulColumns(batch []job.Settlement) []any {
	return append(leaseColumns(batch),
		column(batch, func(s job.Settlement) pgtype.Text { return text(s.Plugin) }),
		column(batch, func(s job.Settlement) pgtype.Text { return text(s.Version) }),
		column(batch, func(s job.Settlement) pgtype.Text { return text(s.SpanID) }),
		column(batch, func(s job.Settlement) string { return string(s.Kind) }),
		column(batch, func(s job.Settlement) pgtype.Text { return text(s.Code) }),
		column(batch, func(s job.Settlement) pgtype.Text { return text(s.Error) }),
		column(batch, func(s job.Settlement) pgtype.Text { return text(s.Stack) }),
		column(batch, func(s job.Settlement) int32 { return int32(s.Number) }),
		column(batch, func(s job.Settlement) int32 { return int32(s.Attempt) }),
		column(batch, func(s job.Settlement) int32 { return int32(s.Interruptions) }),
		column(batch, func(s job.Settlement) int32 { return int32(s.Crashes) }))
}

func retryColumns(batch []job.Settlement) []any {
	return append(unsuccessfulColumns(batch),
		column(batch, func(s job.Settlement) pgtype.Interval { return interval(s.Delay) }))
}

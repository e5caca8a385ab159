package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

const (
	// groupSamples is how many jobs of a group are named.
	groupSamples = 3
	// groupVersions is how many of the latest jobs of a group are looked at for the versions of
	// the plugin.
	groupVersions = 100
	// groupTimes is how many of the latest jobs of a group are looked at for the times of death.
	groupTimes = 1000
)

// DeadLetters returns the dead jobs that the filter selects, newest first.
func (s *Store) DeadLetters(ctx context.Context, filter job.DeadLetterFilter) ([]job.DeadLetter, error) {
	after := pgtype.UUID{Bytes: filter.After.ID, Valid: !filter.After.DeadAt.IsZero()}
	return postgres.Read(ctx, s.db.StaleLists, "dead_letters", pgx.RowToStructByName[job.DeadLetter],
		filter.Limit, filter.Type, filter.Tenant, postgres.Instant(filter.After.DeadAt), after, filter.Code, filter.Fingerprint)
}

type groupRow struct {
	Type        string
	Code        string
	Fingerprint string
	Jobs        int
	job.DeadLetterTimes
	Versions []string
	Samples  []job.ID
	Error    string
	Recent   []int64
}

// DeadLetterGroups returns the groups of the dead letters that the filter selects by type
// and tenant, those with the latest death first. It returns up to the filter's limit, and
// whether there are more; then which ones are missing has nothing to do with their time. It reads
// up to 100 rows of each group, and 11,000 entries of an index, so many groups take seconds on a
// busy server.
func (s *Store) DeadLetterGroups(ctx context.Context, filter job.DeadLetterFilter) (groups []job.DeadLetterGroup, more bool, err error) {
	args := []any{filter.Type, filter.Limit, job.MaxCount + 1, groupSamples, groupVersions, groupTimes}
	var found []groupRow
	err = s.db.StaleFigures.Snapshot(ctx, "dead letter groups", withTimeForFigures, func(tx pgx.Tx) (err error) {
		if filter.Tenant == "" {
			found, err = postgres.Rows(ctx, tx, "dead_letter_groups", pgx.RowToStructByName[groupRow], args...)
		} else {
			found, err = postgres.Rows(ctx, tx, "dead_letter_groups_of_tenant", pgx.RowToStructByName[groupRow], append(args, filter.Tenant)...)
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	more = len(found) > filter.Limit
	for _, row := range found[:min(len(found), filter.Limit)] {
		groups = append(groups, job.DeadLetterGroup{
			Type: row.Type, Code: row.Code, Fingerprint: row.Fingerprint, Count: job.CountOf(row.Jobs),
			DeadLetterTimes: row.DeadLetterTimes, Versions: row.Versions, Samples: row.Samples, Message: job.ErrorPattern(row.Error), Recent: row.Recent,
		})
	}
	slices.SortStableFunc(groups, func(a, b job.DeadLetterGroup) int { return b.LastDeadAt.Compare(a.LastDeadAt) })
	return groups, more, nil
}

// Fingerprint fills in the fingerprints of up to limit dead letters that have none, and
// returns how many it has found. Any number of processes may call it at once.
func (s *Store) Fingerprint(ctx context.Context, limit int) (found int, err error) {
	type row struct {
		ID      job.ID
		Code    string
		Error   string
		Version string
	}
	rows, err := postgres.Read(ctx, s.db.Worker, "unprinted", pgx.RowToStructByName[row], limit)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	_, err = s.changedIDs(ctx, "fingerprint",
		postgres.Column(rows, func(r row) pgtype.UUID { return postgres.UUID(r.ID) }),
		postgres.Column(rows, func(r row) string { return r.Code }),
		postgres.Column(rows, func(r row) string { return job.Fingerprint(r.Code, r.Error) }),
		postgres.Column(rows, func(r row) string { return r.Version }))
	return len(rows), err
}

package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// Rules returns all limits and all pauses. Expired says that there are pauses that are over,
// which are not among them: call EndExpiredPauses.
//
// A change of a limit wakes lanes in the transaction that makes it. A round that takes these
// wakes may still decide by older rules, so each process wakes all lanes once it knows new
// ones: see WakeLanes.
func (s *Store) Rules(ctx context.Context) (rules *job.Rules, expired bool, err error) {
	rows, err := postgres.Read(ctx, s.db.Worker, "rules", pgx.RowToStructByName[ruleRow])
	if err != nil {
		return nil, false, err
	}
	rules, expired = rulesOf(rows)
	return rules, expired, nil
}

// ruleRow is a limit or a pause.
type ruleRow struct {
	IsPause     bool
	Scope       string
	Name        string
	Concurrency *int
	Rate        pgtype.Int4
	Period      pgtype.Interval
	Burst       pgtype.Int4
	OnConflict  pgtype.Text
	Weight      pgtype.Int4
	Fair        bool
	Configured  bool
	Reason      string
	By          string
	Since       time.Time
	Until       pgtype.Timestamptz
	Drain       bool
	Expired     bool
}

func rulesOf(rows []ruleRow) (rules *job.Rules, expired bool) {
	var limits []job.Limit
	var pauses []job.Pause
	for _, r := range rows {
		switch {
		case !r.IsPause:
			limits = append(limits, r.limit())
		case r.Expired:
			expired = true
		default:
			pauses = append(pauses, r.pause())
		}
	}
	return job.NewRules(limits, pauses), expired
}

func (r ruleRow) limit() job.Limit {
	limit := job.Limit{
		Scope: job.LimitScope(r.Scope), Name: r.Name, Concurrency: r.Concurrency, OnConflict: job.OnConflict(r.OnConflict.String),
		Weight: int(r.Weight.Int32), Fair: r.Fair, Configured: r.Configured, UpdatedBy: r.By, UpdatedAt: r.Since.UTC(),
	}
	if r.Rate.Valid {
		limit.Rate = &job.Rate{Count: int(r.Rate.Int32), Period: postgres.Duration(r.Period), Burst: max(int(r.Burst.Int32), 1)}
	}
	return limit
}

func (r ruleRow) pause() job.Pause {
	pause := job.Pause{
		Scope: job.PauseScope(r.Scope), Name: r.Name, Reason: r.Reason, By: r.By, Since: r.Since.UTC(), Drain: r.Drain,
	}
	if r.Until.Valid {
		pause.Until = r.Until.Time.UTC()
	}
	return pause
}

// SetLimit sets a limit, and wakes the lanes that it bounds. It returns the limit as it is
// stored. If the configuration has set the limit, the error is job.ErrConfigured.
func (s *Store) SetLimit(ctx context.Context, limit job.Limit) (job.Limit, error) {
	set, err := changeLimits(ctx, s.db.Submissions, "set_limit", pgx.RowTo[time.Time],
		func(time.Time) (limitName, bool) { return limitName{string(limit.Scope), limit.Name}, true },
		string(limit.Scope), limit.Name, bound(limit.Concurrency), rate(limit), period(limit), burst(limit),
		postgres.Text(string(limit.OnConflict)), weight(limit), limit.Fair, limit.UpdatedBy)
	switch {
	case err != nil:
		return job.Limit{}, err
	case len(set) == 0:
		return job.Limit{}, fmt.Errorf("set limit: %w", job.ErrConfigured)
	}
	limit.Configured, limit.UpdatedAt = false, set[0].UTC()
	return limit, nil
}

// DeleteLimit deletes a limit, and wakes the lanes that it bounded. Errors:
// job.ErrConfigured if the configuration has set it, job.ErrNoLimit if there is none.
func (s *Store) DeleteLimit(ctx context.Context, scope job.LimitScope, name string) error {
	deleted, err := changeLimits(ctx, s.db.Submissions, "delete_limit", pgx.RowTo[bool],
		func(deleted bool) (limitName, bool) { return limitName{string(scope), name}, deleted }, string(scope), name)
	switch {
	case err != nil:
		return err
	case len(deleted) == 0:
		return fmt.Errorf("delete limit: %w", job.ErrNoLimit)
	case !deleted[0]:
		return fmt.Errorf("delete limit: %w", job.ErrConfigured)
	}
	return nil
}

// SyncLimits makes these limits the ones that the configuration sets: it writes them, and
// deletes those that a configuration has set before and that are not among them. It wakes
// the lanes that this concerns, and returns the limits that have changed.
func (s *Store) SyncLimits(ctx context.Context, limits []job.Limit) ([]job.LimitChange, error) {
	limits = slices.SortedFunc(slices.Values(limits), func(a, b job.Limit) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name))
	})
	return changeLimits(ctx, s.db.Worker, "sync_limits", pgx.RowToStructByName[job.LimitChange],
		func(change job.LimitChange) (limitName, bool) {
			return limitName{string(change.Scope), change.Name}, true
		},
		postgres.Column(limits, func(l job.Limit) string { return string(l.Scope) }),
		postgres.Column(limits, func(l job.Limit) string { return l.Name }),
		postgres.Column(limits, func(l job.Limit) pgtype.Int4 { return bound(l.Concurrency) }),
		postgres.Column(limits, rate), postgres.Column(limits, period), postgres.Column(limits, burst),
		postgres.Column(limits, func(l job.Limit) pgtype.Text { return postgres.Text(string(l.OnConflict)) }),
		postgres.Column(limits, weight),
		postgres.Column(limits, func(l job.Limit) bool { return l.Fair }))
}

// limitName is the key of a limit.
type limitName struct{ Scope, Name string }

// changeLimits runs a statement, and wakes the lanes of the limits that its rows say have
// changed, in one transaction.
func changeLimits[T any](
	ctx context.Context, pool *postgres.Pool, statement string, row pgx.RowToFunc[T], changed func(T) (limitName, bool), args ...any,
) ([]T, error) {
	return postgres.Write(ctx, pool, strings.ReplaceAll(statement, "_", " "), func(ctx context.Context, conn *pgx.Conn) (found []T, err error) {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			found, err = postgres.Rows(ctx, tx, statement, row, args...)
			if err != nil {
				return err
			}
			var names []limitName
			for _, one := range found {
				if name, ok := changed(one); ok {
					names = append(names, name)
				}
			}
			batch := &pgx.Batch{}
			batch.Queue(sql.Text("wake_limited"),
				postgres.Column(names, func(n limitName) string { return n.Scope }),
				postgres.Column(names, func(n limitName) string { return n.Name }))
			postgres.QueueBarrier(batch)
			return tx.SendBatch(ctx, batch).Close()
		})
		return found, err
	})
}

func bound(n *int) pgtype.Int4 {
	if n == nil {
		return pgtype.Int4{}
	}
	return number(*n)
}

func rate(l job.Limit) pgtype.Int4 {
	if l.Rate == nil {
		return pgtype.Int4{}
	}
	return number(l.Rate.Count)
}

func period(l job.Limit) pgtype.Interval {
	if l.Rate == nil {
		return pgtype.Interval{}
	}
	return postgres.Interval(l.Rate.Period)
}

func burst(l job.Limit) pgtype.Int4 {
	if l.Rate == nil {
		return pgtype.Int4{}
	}
	return number(l.Rate.Burst)
}

func weight(l job.Limit) pgtype.Int4 {
	if l.Weight == 0 {
		return pgtype.Int4{}
	}
	return number(l.Weight)
}

func number(n int) pgtype.Int4 { return pgtype.Int4{Int32: int32(n), Valid: true} } //nolint:gosec // the border has checked it

// SetPause pauses what the pause names, until its end or, if lasts is above zero, for that
// long from now. A pause of the same is replaced. It returns the pause as it is stored.
func (s *Store) SetPause(ctx context.Context, pause job.Pause, lasts time.Duration) (job.Pause, error) {
	var period pgtype.Interval
	if lasts > 0 {
		period = postgres.Interval(lasts)
	}
	type row struct {
		Since time.Time
		Until pgtype.Timestamptz
	}
	set, err := postgres.Change(ctx, s.db.Submissions, "set_pause", pgx.RowToStructByName[row],
		string(pause.Scope), pause.Name, pause.Reason, pause.By, postgres.Instant(pause.Until), period, pause.Drain)
	if err != nil || len(set) == 0 {
		return job.Pause{}, cmp.Or(err, fmt.Errorf("set pause: %w", pgx.ErrNoRows))
	}
	pause.Since, pause.Until = set[0].Since.UTC(), time.Time{}
	if set[0].Until.Valid {
		pause.Until = set[0].Until.Time.UTC()
	}
	return pause, nil
}

// EndPause ends a pause, and wakes the lane of a tenant. If there is no such pause, the
// error is job.ErrNoPause.
func (s *Store) EndPause(ctx context.Context, scope job.PauseScope, name string) error {
	ended, err := postgres.Confirm(ctx, s.db.Submissions, "end_pause", pgx.RowTo[string], string(scope), name)
	if err == nil && len(ended) == 0 {
		return fmt.Errorf("end pause: %w", job.ErrNoPause)
	}
	return err
}

// EndExpiredPauses ends the pauses that are over, wakes the lanes of tenants, and returns
// what it has ended, without its reason.
func (s *Store) EndExpiredPauses(ctx context.Context) ([]job.Pause, error) {
	type row struct{ Scope, Name string }
	ended, err := postgres.Change(ctx, s.db.Worker, "end_expired_pauses", pgx.RowToStructByName[row])
	pauses := make([]job.Pause, len(ended))
	for i, one := range ended {
		pauses[i] = job.Pause{Scope: job.PauseScope(one.Scope), Name: one.Name}
	}
	return pauses, err
}

// SlotsUsed returns how many jobs hold a slot of each of the gates, as the admitter last
// counted them.
func (s *Store) SlotsUsed(ctx context.Context, gates []job.Gate) (map[job.Gate]int, error) {
	used := make(map[job.Gate]int, len(gates))
	if len(gates) == 0 {
		return used, nil
	}
	type row struct {
		Gate string
		Used int
	}
	rows, err := postgres.Read(ctx, s.db.Lists, "slots_used", pgx.RowToStructByName[row],
		postgres.Column(gates, func(g job.Gate) string { return string(g) }))
	for _, r := range rows {
		used[job.Gate(r.Gate)] = r.Used
	}
	return used, err
}

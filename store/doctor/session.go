package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// sessionRow is a setting that a session does not have as it should.
type sessionRow struct {
	Name   string
	Wanted string
	Has    string
}

// checkSession sees one session. Behind a pooler, others may differ.
func checkSession(ctx context.Context, d *Doctor, tx pgx.Tx) (job.Check, error) {
	if _, err := tx.Exec(ctx, undone); err != nil {
		return job.Check{}, err
	}
	names := slices.Sorted(maps.Keys(d.pool.Settings))
	values := postgres.Column(names, func(name string) string { return d.pool.Settings[name] })
	return judged("doctor_session", pgx.RowToStructByName[sessionRow], judgeSession, names, values)(ctx, d, tx)
}

func judgeSession(found []sessionRow) job.Check {
	check := job.Check{Severity: job.Fine}
	for _, row := range found {
		add(&check, job.Warning, "%s is %s, not %s", row.Name, row.Has, row.Wanted)
	}
	check.Summary = fmt.Sprintf("Sessions have %s that statements were not made for: they may be slow, or wait without a limit.",
		count(int64(len(found)), "setting"))
	return check
}

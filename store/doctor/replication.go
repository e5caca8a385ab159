package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// standbyRow is a connected standby, or no standby: then its fields are nil.
type standbyRow struct {
	Waits   string // synchronous_commit
	Names   string // synchronous_standby_names
	Standby *string
	State   *string // nil if the user may not see it
}

func judgeStandbys(found []standbyRow) job.Check {
	waits, names := found[0].Waits, found[0].Names
	check := job.Check{Severity: job.Fine, Summary: "No standby is connected."}
	standbys, synchronous, hidden := int64(0), int64(0), int64(0)
	for _, row := range found {
		if row.Standby == nil {
			continue
		}
		standbys++
		switch {
		case names == "":
			add(&check, job.Warning, "standby %s is asynchronous, since synchronous_standby_names is empty: "+
				"a failover to it loses accepted jobs that it does not have yet", *row.Standby)
		case row.State == nil:
			hidden++
		case *row.State == "sync" || *row.State == "quorum":
			synchronous++
		}
	}
	if standbys > 0 {
		check.Summary = fmt.Sprintf("%s connected, and commits wait for %d of them.", areConnected(standbys), synchronous)
	}
	if hidden > 0 {
		check.Summary = areConnected(standbys) + " connected, and the database user may not see whether commits wait for " + pronoun(standbys) + "."
		add(&check, job.Warning, "%s could not be examined", count(hidden, "standby"))
		check.Remedy = "Grant the role pg_monitor to the database user of the orchestrator."
	}
	if names == "" {
		return check
	}
	if synchronous == 0 && hidden == 0 {
		add(&check, job.Problem, "synchronous_standby_names is %s, and no such standby is connected: nothing can be accepted", names)
	}
	switch waits {
	case "off", "local":
		add(&check, job.Warning, "synchronous_commit is %s: no commit waits for the standby, and a failover loses accepted jobs", waits)
	case "remote_write":
		add(&check, job.Warning, "synchronous_commit is remote_write: a crash of the primary's machine and the standby's loses accepted jobs")
	}
	return check
}

func areConnected(standbys int64) string {
	if standbys == 1 {
		return "1 standby is"
	}
	return fmt.Sprintf("%d standbys are", standbys)
}

func pronoun(standbys int64) string {
	if standbys == 1 {
		return "it"
	}
	return "them"
}

// checkPrimary looks for a server that takes writes beside the one that is in use. After
// a failover, that is a primary which nobody has fenced.
func checkPrimary(ctx context.Context, d *Doctor, tx pgx.Tx) (job.Check, error) {
	used, err := postgres.Rows(ctx, tx, "server", pgx.RowToStructByName[postgres.Server])
	if err != nil {
		return job.Check{}, err
	}
	return judgePrimaries(used[0], d.pool.Servers(ctx)), nil
}

func judgePrimaries(used postgres.Server, reached []postgres.Reached) job.Check {
	check := job.Check{Severity: job.Fine, Summary: "Another server takes writes too, or new connections do not reach the one that is in use."}
	for _, other := range reached {
		switch {
		case other.Same(used) || other.Timeline == 0:
		case other.Cluster != used.Cluster:
			add(&check, job.Problem, "%s takes writes and is another database, no copy of the one that is in use", other.Address)
		case used.Timeline == 0:
			add(&check, job.Problem, "%s takes writes, and the server that is in use takes none", other.Address)
		case other.Timeline > used.Timeline:
			add(&check, job.Problem, "%s takes writes on timeline %d: the server that is in use, on timeline %d, was deposed",
				other.Address, other.Timeline, used.Timeline)
		default:
			add(&check, job.Problem, "%s still takes writes, on timeline %d: the primary is the server that is in use, on timeline %d",
				other.Address, other.Timeline, used.Timeline)
		}
	}
	if len(reached) > 0 && !slices.ContainsFunc(reached, func(r postgres.Reached) bool { return r.Same(used) }) {
		add(&check, job.Problem, "no new connection reaches the server that is in use, which started at %s", used.Started.UTC().Format("15:04:05 MST"))
	}
	return check
}

package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

const (
	// manyRows is the number of rows from which a table should have been analyzed: the
	// server does so within about a minute.
	manyRows = 10_000
	// manyDead is the number of dead rows from which they slow queries down, if they
	// outnumber the live ones.
	manyDead = 100_000
)

func checkStatistics(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	type row struct {
		Name       string
		Live       int64
		Dead       int64
		Analyzed   bool
		Unattended bool
	}
	found, err := postgres.Rows(ctx, tx, "doctor_statistics", pgx.RowToStructByName[row])
	check := job.Check{Severity: job.Fine, Summary: "Autovacuum keeps up with every table."}
	if err != nil {
		return check, err
	}
	tables := 0
	for _, row := range found {
		before := len(check.Details)
		if row.Unattended {
			check.Details = append(check.Details, row.Name+": autovacuum is off")
		}
		if !row.Analyzed && row.Live >= manyRows {
			check.Details = append(check.Details, fmt.Sprintf("%s: never analyzed, about %s", row.Name, count(row.Live, "row")))
		}
		if row.Dead >= manyDead && row.Dead > row.Live {
			check.Details = append(check.Details, fmt.Sprintf("%s: about %s beside %d others", row.Name, count(row.Dead, "dead row"), row.Live))
		}
		if len(check.Details) > before {
			tables++
		}
	}
	if tables > 0 {
		check.Severity = job.Warning
		check.Summary = fmt.Sprintf("Autovacuum does not keep up with %s of %d.", count(int64(tables), "table"), len(found))
		check.Remedy = "Turn autovacuum on, find what blocks it (see oldest_snapshot), or run VACUUM ANALYZE by hand."
	}
	return check, nil
}

// The age at which a snapshot becomes a warning or a problem.
const (
	snapshotWarning             = 10 * time.Minute
	snapshotProblem             = time.Hour
	snapshotProblemTransactions = 10_000_000
)

func checkSnapshots(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	found, err := postgres.Rows(ctx, tx, "doctor_snapshots", pgx.RowToStructByName[snapshotRow])
	return judgeSnapshots(found), err
}

type snapshotRow struct {
	Kind         string
	Holder       string
	Held         *time.Duration
	Transactions int64
}

func (r snapshotRow) severity() job.Severity {
	held := time.Duration(0)
	if r.Held != nil {
		held = *r.Held
	}
	switch {
	case held >= snapshotProblem || r.Transactions >= snapshotProblemTransactions:
		return job.Problem
	case held >= snapshotWarning:
		return job.Warning
	default:
		return job.Fine
	}
}

func (r snapshotRow) String() string {
	held := "for an unknown time"
	if r.Held != nil {
		held = "for " + rounded(*r.Held).String()
	}
	return fmt.Sprintf("%s %s: %s, %s", r.Kind, r.Holder, held, count(r.Transactions, "transaction"))
}

func judgeSnapshots(found []snapshotRow) job.Check {
	check := job.Check{Severity: job.Fine}
	var oldest time.Duration
	var age int64
	hidden := ""
	for _, row := range found {
		if row.Kind == "hidden" {
			hidden = row.Holder
			continue
		}
		if row.Held != nil {
			oldest = max(oldest, *row.Held)
		}
		age = max(age, row.Transactions)
		severity := row.severity()
		check.Severity = worse(check.Severity, severity)
		if severity != job.Fine && len(check.Details) < maxExamples {
			check.Details = append(check.Details, row.String())
		}
	}
	check.Summary = fmt.Sprintf("The oldest snapshot is %s and %s old.", rounded(oldest), count(age, "transaction"))
	if check.Severity != job.Fine {
		check.Remedy = "End the session (pg_terminate_backend), the prepared transaction (ROLLBACK PREPARED) or the slot " +
			"(pg_drop_replication_slot): until then, dead rows accumulate and everything slows down."
	}
	if hidden != "" {
		check.Severity = worse(check.Severity, job.Warning)
		check.Details = append(check.Details, "sessions of other users that could not be examined: "+hidden)
		check.Remedy = strings.TrimSpace(check.Remedy +
			" Grant the role pg_monitor to the database user of the orchestrator, to see all sessions.")
	}
	return check
}

func checkSettings(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	found, err := postgres.Rows(ctx, tx, "doctor_settings", pgx.RowToStructByName[settingsRow])
	if err != nil {
		return job.Check{}, err
	}
	return judgeSettings(found[0]), nil
}

type settingsRow struct {
	Fsync             bool
	FullPageWrites    bool
	SynchronousCommit bool
	Connections       int64
	Connected         int64
	MaxLog            int64 // bytes
	Log               int64 // bytes
}

// checkpointsEarly reports whether the log fills up before checkpoint_timeout has
// passed. The server starts a checkpoint when the log reaches about half of
// max_wal_size.
func (r settingsRow) checkpointsEarly() bool { return r.Log > r.MaxLog/2 }

func judgeSettings(set settingsRow) job.Check {
	check := job.Check{
		Severity: job.Fine, Summary: fmt.Sprintf("%d of %d connections are in use.", set.Connected, set.Connections),
	}
	for _, doubt := range []struct {
		applies  bool
		severity job.Severity
		detail   string
	}{
		{!set.Fsync, job.Problem, "fsync is off: a crash of the machine can lose or corrupt the whole database"},
		{!set.FullPageWrites, job.Warning, "full_page_writes is off: unless the file system writes pages atomically, a crash of the machine can corrupt tables"},
		{!set.SynchronousCommit, job.Warning, "synchronous_commit is off: a crash can lose jobs that were accepted"},
		{set.checkpointsEarly(), job.Warning, fmt.Sprintf("max_wal_size is %d MB, and about %d MB are written in checkpoint_timeout: "+
			"checkpoints come early, and after each one the server writes whole pages again", set.MaxLog>>20, set.Log>>20)},
		{set.Connected*100 >= set.Connections*80, job.Warning, "nearly all connections are in use"},
		{set.Connected*100 >= set.Connections*95, job.Problem, "almost no connections are left"},
	} {
		if doubt.applies {
			check.Severity = worse(check.Severity, doubt.severity)
			check.Details = append(check.Details, doubt.detail)
		}
	}
	if len(check.Details) > 0 {
		check.Remedy = "Change the server's settings (see docs/how-to/postgresql.md). A change of max_connections needs a restart; fewer orchestrators or smaller pools help too."
	}
	return check
}

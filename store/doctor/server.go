package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// manyRows is the number of rows from which a table should have been analyzed, if they are
	// also twice as many as the server waits for: it does so within about a minute.
	manyRows = 10_000
	// manyDead is the number of dead rows from which they slow queries down, if they
	// outnumber the live ones.
	manyDead = 100_000
)

type statisticsRow struct {
	Name         string
	Live         int64
	Dead         int64
	Analyzed     bool
	AnalyzeAfter int64
	Unattended   bool
}

func judgeStatistics(found []statisticsRow) job.Check {
	check := job.Check{Severity: job.Fine}
	tables := int64(0)
	for _, row := range found {
		before := len(check.Details)
		if row.Unattended {
			add(&check, job.Warning, "%s: autovacuum is off", row.Name)
		}
		if !row.Analyzed && row.Live >= max(manyRows, 2*row.AnalyzeAfter) {
			add(&check, job.Warning, "%s: never analyzed, about %s", row.Name, count(row.Live, "row"))
		}
		if row.Dead >= manyDead && row.Dead > row.Live {
			add(&check, job.Warning, "%s: about %s beside %d others", row.Name, count(row.Dead, "dead row"), row.Live)
		}
		if len(check.Details) > before {
			tables++
		}
	}
	check.Summary = fmt.Sprintf("Autovacuum does not keep up with %s of %d.", count(tables, "table"), len(found))
	return check
}

// The age at which a snapshot becomes a warning or a problem.
const (
	snapshotWarning             = 10 * time.Minute
	snapshotProblem             = time.Hour
	snapshotProblemTransactions = 10_000_000
)

type snapshotRow struct {
	Kind         string
	Holder       string
	Held         *time.Duration // nil if unknown
	Transactions int64
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
	var end, grant string // remedies
	for _, row := range found {
		if row.Kind == "hidden" {
			add(&check, job.Warning, "sessions of other users that could not be examined: %s", row.Holder)
			grant = "Grant the role pg_monitor to the database user of the orchestrator, to see all sessions."
			continue
		}
		held := time.Duration(0)
		if row.Held != nil {
			held = *row.Held
		}
		oldest, age = max(oldest, held), max(age, row.Transactions)
		switch {
		case held >= snapshotProblem || row.Transactions >= snapshotProblemTransactions:
			add(&check, job.Problem, "%s", row)
		case held >= snapshotWarning:
			add(&check, job.Warning, "%s", row)
		default:
			continue
		}
		end = "End the session (pg_terminate_backend), the prepared transaction (ROLLBACK PREPARED) or the slot " +
			"(pg_drop_replication_slot): until then, dead rows accumulate and everything slows down. "
	}
	check.Summary = fmt.Sprintf("The oldest snapshot is %s and %s old.", rounded(oldest), count(age, "transaction"))
	check.Remedy = strings.TrimSpace(end + grant)
	return check
}

type settingsRow struct {
	Writable          bool
	Fsync             bool
	FullPageWrites    bool
	SynchronousCommit bool
	Connections       int64
	Connected         int64
	MaxLog            int64 // bytes
	Log               int64 // bytes
}

func judgeSettings(found []settingsRow) job.Check {
	set := found[0]
	check := job.Check{
		Severity: job.Fine, Summary: fmt.Sprintf("%d of %d connections are in use.", set.Connected, set.Connections),
	}
	doubt := func(applies bool, severity job.Severity, format string, args ...any) {
		if applies {
			add(&check, severity, format, args...)
		}
	}
	doubt(!set.Writable, job.Problem, "the server takes no writes: it is a standby, or default_transaction_read_only is on")
	doubt(!set.Fsync, job.Problem, "fsync is off: a crash of the machine can lose or corrupt the whole database")
	doubt(!set.FullPageWrites, job.Warning,
		"full_page_writes is off: unless the file system writes pages atomically, a crash of the machine can corrupt tables")
	doubt(!set.SynchronousCommit, job.Warning, "synchronous_commit is off: a crash can lose jobs that were accepted")
	// The server starts a checkpoint when the log reaches about half of max_wal_size.
	doubt(set.Log > set.MaxLog/2, job.Warning, "max_wal_size is %d MB, and about %d MB are written in checkpoint_timeout: "+
		"checkpoints come early, and after each one the server writes whole pages again", set.MaxLog>>20, set.Log>>20)
	doubt(set.Connected*100 >= set.Connections*80, job.Warning, "nearly all connections are in use")
	doubt(set.Connected*100 >= set.Connections*95, job.Problem, "almost no connections are left")
	return check
}

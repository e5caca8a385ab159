package doctor

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func TestADiagnosisComparesTheCellOfTheDatabaseWithTheConfiguration(t *testing.T) {
	d, url := open(t)
	diagnosed := func(configured job.Cell) job.Check {
		t.Helper()
		d.cell = configured
		return diagnose(t, d)["cell"]
	}
	check := diagnosed(job.Cell{})
	require.Equal(t, job.Fine, check.Severity)
	require.Equal(t, "The database is no cell.", check.Summary)
	check = diagnosed(job.CellOf(3))
	require.Equal(t, job.Problem, check.Severity)
	require.Contains(t, check.Details[0], "database.cell is 3, and the database is no cell")

	require.NoError(t, postgres.TakeCell(t.Context(), url, job.CellOf(3)))
	check = diagnosed(job.CellOf(3))
	require.Equal(t, job.Fine, check.Severity, "%+v", check)
	require.Equal(t, "The database is cell 3.", check.Summary)
	check = diagnosed(job.CellOf(4))
	require.Equal(t, job.Problem, check.Severity)
	require.Contains(t, check.Details[0], "the database is cell 3, and database.cell is 4")
	check = diagnosed(job.Cell{})
	require.Equal(t, job.Problem, check.Severity)
	require.Contains(t, check.Details[0], "the database is cell 3, and database.cell is not set: set it to 3")
	require.Contains(t, check.Remedy, "Set database.cell")
}

func TestADiagnosisFindsJobsThatProxiesLookForElsewhere(t *testing.T) {
	d, url := open(t)
	d.cell = job.CellOf(3)
	conn := connect(t, url)
	made := func(cell job.Cell) {
		t.Helper()
		id := cell.Stamp(job.ID(uuid.Must(uuid.NewV7())))
		exec(t, conn, `insert into jobs (job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state, max_attempts, timeout, state, run_at)
			values ('`+id.String()+`', 'default', 'T', 0, '', '{}', '{}', '', '', 1, '1 s', 'queued', now())`)
	}
	made(job.Cell{})
	require.NoError(t, postgres.TakeCell(t.Context(), url, job.CellOf(3)))
	made(job.CellOf(3))
	require.Equal(t, job.Fine, diagnose(t, d)["cell"].Severity, "a job of before it was a cell is nothing wrong")

	made(job.Cell{})
	check := diagnose(t, d)["cell"]
	require.Equal(t, job.Warning, check.Severity)
	require.Contains(t, check.Details[0], "1 job of the newest 10000 carry no cell, although the database was one already")
	made(job.CellOf(4))
	made(job.CellOf(5))
	check = diagnose(t, d)["cell"]
	require.Equal(t, job.Problem, check.Severity)
	require.Contains(t, strings.Join(check.Details, "\n"), "2 jobs of the newest 10000 carry the number of another cell")
}

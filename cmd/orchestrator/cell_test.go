package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestServeMigrateAndDirectRefuseTheDatabaseOfAnotherCell(t *testing.T) {
	t.Chdir(t.TempDir())
	url := pgtest.URL(t)
	in := func(cell string, args ...string) outcome {
		t.Helper()
		environ := []string{"HOLDFAST_DATABASE__URL=" + url}
		if cell != "" {
			environ = append(environ, "HOLDFAST_DATABASE__CELL="+cell)
		}
		return executeWith(t, strings.NewReader(""), environ, args...)
	}
	refused := in("3", "list", "--direct")
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.stderr, "database.cell is 3, and the database is no cell: `orchestrator migrate up` makes it cell 3")

	up := in("3", "migrate", "up")
	require.Zero(t, up.code, up.stderr)
	require.Equal(t, "0 migrations applied\nthe database has become cell 3\n", up.stdout)
	require.Equal(t, "0 migrations applied\n", in("3", "migrate", "up").stdout)
	require.Zero(t, in("3", "list", "--direct").code)

	for cell, complaint := range map[string]string{
		"":  "the database is cell 3, and database.cell is not set: set it to 3, or use a database that is no cell",
		"4": "the database is cell 3, and database.cell is 4: set it to 3, or use the database of cell 4; a database never becomes another cell",
	} {
		for _, args := range [][]string{{"migrate", "up"}, {"list", "--direct"}, {"serve", "--set", "server.address=127.0.0.1:0"}} {
			refused := in(cell, args...)
			require.Equal(t, 1, refused.code, args)
			require.Contains(t, refused.stderr, complaint, args)
		}
	}
}

func TestJobsSubmittedDirectlyNameTheCell(t *testing.T) {
	t.Chdir(t.TempDir())
	l := newLedger(t)
	environ := []string{"HOLDFAST_DATABASE__URL=" + l.url, "HOLDFAST_DATABASE__CELL=7"}
	require.Zero(t, executeWith(t, strings.NewReader(""), environ, "migrate", "up").code)
	submitted := executeWith(t, strings.NewReader(""), environ, "submit", "ECHO", "--payload", `{"n":1}`, "--direct", "--key", "k", "--json")
	require.Zero(t, submitted.code, submitted.stderr)
	var accepted v1.Accepted
	require.NoError(t, json.Unmarshal([]byte(submitted.stdout), &accepted))
	require.Equal(t, job.CellOf(7), accepted.JobID.Cell())
}

// Package cells tests two cells, each a database with an orchestrator, behind the proxies
// that deploy/cells configures. With HOLDFAST_TEST_CELLS=full, 20,000 jobs are submitted
// while a cell is killed and comes back, and what a job costs is compared with cells without a proxy.
package cells

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const glance = 20 * time.Millisecond

// password is that of the operator in both cells: a client does not know which one answers.
const password = "one for all of the cells"

// bin is the directory of the tested binaries.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = rigtest.Build("../../bin/cells", "../../cmd/orchestrator", "../../cmd/handlers", "../../examples/handlers/echo"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// cell is a database and its orchestrator.
type cell struct {
	*rig.Orchestrator

	number uint8
	url    string
}

// start starts the two cells of the configurations, on one server.
func start(t *testing.T, settings ...string) []*cell {
	t.Helper()
	cells := make([]*cell, 2)
	for i := range cells {
		url := pgtest.URL(t)
		cells[i] = startCell(t, i, append([]string{"database.url=" + url}, settings...)...)
		cells[i].url = url
	}
	return cells
}

// startCell starts the cell with that number.
func startCell(t *testing.T, number int, settings ...string) *cell {
	t.Helper()
	o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(), append([]string{
		fmt.Sprintf("database.cell=%d", number), "security.password=" + password, "log.format=json", "log.level=warn",
		"plugins.0.name=echo", "plugins.0.path=" + filepath.Join(bin, "echo"),
	}, settings...)...)
	rigtest.Start(t, o)
	return &cell{Orchestrator: o, number: uint8(number)}
}

func addresses(cells []*cell) (all []string) {
	for _, c := range cells {
		all = append(all, c.Address)
	}
	return all
}

// jobs returns the ids of the jobs in the database, by their keys; by themselves if they have
// none.
func (c *cell) jobs(t *testing.T) map[string]job.ID {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	rows, err := conn.Query(t.Context(), "select job_id::text, coalesce(idempotency_key, job_id::text) from jobs")
	require.NoError(t, err)
	ids := make(map[string]job.ID)
	var text, key string
	_, err = pgx.ForEachRow(rows, []any{&text, &key}, func() error {
		id, err := job.ParseID(text)
		ids[key] = id
		return err
	})
	require.NoError(t, err)
	return ids
}

// answer is what a proxy or a cell has answered.
type answer struct {
	status int
	body   []byte
	header http.Header
}

// id is the job's that was submitted.
func (a answer) id(t testing.TB) job.ID {
	t.Helper()
	var accepted struct{ JobID, WorkflowID *job.ID }
	require.NoError(t, json.Unmarshal(a.body, &accepted), string(a.body))
	return *cmp.Or(accepted.JobID, accepted.WorkflowID)
}

// client keeps enough connections for all of a test's goroutines.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: rigtest.Patience}

// call sends a request; headers are names and values. The body is JSON, unless it is empty.
func call(ctx context.Context, method, url, body string, headers ...string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	request.SetBasicAuth("admin", password)
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, text, response.Header}, err
}

const echo = `{"jobType":"ECHO","payload":{"text":"hello"}}`

// These tests measure what jobs with payloads of several sizes take of the database,
// and compares it with the figures of `orchestrator capacity`.
//
// HOLDFAST_TEST_CAPACITY=full measures many jobs, processor time as well, and prints the
// table of docs/explanation/capacity.md.
package capacity_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/capacity"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

// full says that much is measured.
var full = os.Getenv("HOLDFAST_TEST_CAPACITY") == "full"

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	batch  = 500
	worker = "the test"
)

// taken is what a job takes from its submission to its end, and what stays of it.
type taken struct {
	disk, wal float64 // bytes
	cpu       float64 // microseconds of the server's processes; 0 if unknown
}

func TestTheFiguresAreThoseOfTheDatabase(t *testing.T) {
	jobs, sizes := 2000, []int{2, 500, 2000, 8000}
	if full {
		jobs, sizes = 20_000, []int{2, 100, 500, 1000, 2000, 4000, 8000, 32_000}
	}
	for _, size := range sizes {
		if size*jobs > 200<<20 {
			jobs = 200 << 20 / size
		}
		got := measure(t, jobs, size)
		said := capacity.Plan(capacity.Need{Rate: 1, Payload: int64(size), Keep: time.Second})
		t.Logf("| %d | %.0f | %.0f | %.1f | said: %d, %d", size, got.disk, got.wal, got.cpu, said.JobBytes, said.JobWAL)
		// The share of pages that are half full differs with the number of jobs.
		require.InEpsilon(t, got.disk, float64(said.JobBytes), 0.25, "bytes of a job with a payload of %d", size)
		require.InEpsilon(t, got.wal, float64(said.JobWAL), 0.25, "WAL of a job with a payload of %d", size)
	}
}

// measure submits and works so many jobs with a payload of so many bytes.
func measure(t *testing.T, jobs, size int) taken {
	t.Helper()
	url := pgtest.URL(t)
	s := storetest.Open(t, url, 3)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	ask := func(query string) (n int64) {
		require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&n))
		return n
	}
	const wal = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
	require.NoError(t, s.RegisterWorker(t.Context(), job.Worker{ID: worker}, time.Hour))
	round(t, s, min(jobs, batch), size) // connections and plans are made
	_, err = conn.Exec(t.Context(), "checkpoint")
	require.NoError(t, err)
	disk, log, cpu := ask("select pg_total_relation_size('jobs')"), ask(wal), backends(t, conn)
	for done := 0; done < jobs; done += batch {
		round(t, s, batch, size)
	}
	log, cpu = ask(wal)-log, backends(t, conn)-cpu
	disk = ask("select pg_total_relation_size('jobs')") - disk
	n := float64((jobs + batch - 1) / batch * batch)
	return taken{disk: float64(disk) / n, wal: float64(log) / n, cpu: cpu.Seconds() * 1e6 / n}
}

// round submits jobs and ends them.
func round(t *testing.T, s *store.Store, n, size int) {
	t.Helper()
	jobs := make([]job.Submission, n)
	for i := range jobs {
		id, err := uuid.NewV7()
		require.NoError(t, err)
		jobs[i] = job.Submission{
			ID: job.ID(id), Type: "ECHO", Tenant: job.DefaultTenant, Payload: payload(size), MaxAttempts: 4, Timeout: time.Minute,
			Trace: job.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		}
	}
	for _, stored := range s.Submit(t.Context(), jobs) {
		require.NoError(t, stored.Err)
	}
	claimed, err := s.Claim(t.Context(), worker, []string{"ECHO"}, n, time.Hour)
	require.NoError(t, err)
	require.Len(t, claimed, n)
	settlements := make([]job.Settlement, n)
	for i, c := range claimed {
		at := job.History{Attempt: c.Attempt, MaxAttempts: c.MaxAttempts}
		settlements[i] = job.Settlement{
			Lease: c.Lease, Decision: job.Decide(job.RetryPolicy{}, at, job.Outcome{Kind: job.Success}, 0), Number: c.Attempt,
			Plugin: "builtin", Version: "v1.0.0", SpanID: "00f067aa0ba902b7",
		}
	}
	_, err = s.Settle(t.Context(), settlements)
	require.NoError(t, err)
}

// payload is JSON that hardly compresses.
func payload(size int) json.RawMessage {
	if size <= 2 {
		return json.RawMessage("{}")
	}
	random := make([]byte, size)
	_, _ = rand.Read(random)
	return json.RawMessage(`"` + base64.StdEncoding.EncodeToString(random)[:size-2] + `"`)
}

// backends is the processor time of the store's connections, 0 where the system does not say.
func backends(t *testing.T, conn *pgx.Conn) (used time.Duration) {
	t.Helper()
	rows, err := conn.Query(t.Context(), "select pid from pg_stat_activity where datname = current_database() and application_name like 'holdfast %'")
	require.NoError(t, err)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	require.NoError(t, err)
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(text), " ")
		nanoseconds, err := strconv.ParseInt(first, 10, 64)
		require.NoError(t, err)
		used += time.Duration(nanoseconds)
	}
	return used
}

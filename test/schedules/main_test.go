// Package schedules tests schedules: real orchestrators on a real PostgreSQL, which are
// killed while ticks are due. With HOLDFAST_TEST_SCHEDULES=full the test has 1,000
// schedules for a minute, and measures what idle schedules cost.
package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

// full says that the test runs at full length.
var full = os.Getenv("HOLDFAST_TEST_SCHEDULES") == "full"

// bin is the directory of the tested program.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = rigtest.Build("../../bin/schedules", "../../cmd/orchestrator"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// database is one that the test looks into.
type database struct {
	*store.Store
	pool *pgxpool.Pool
	url  string
}

func open(t *testing.T) *database {
	t.Helper()
	url := pgtest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s := storetest.Open(t, url, 4)
	return &database{Store: s, pool: pool, url: url}
}

func (db *database) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, db.pool.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}

// launch starts an orchestrator without plugins: nobody runs the jobs.
func (db *database) launch(t *testing.T, id int) *rig.Orchestrator {
	t.Helper()
	o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(), "database.url="+db.url, fmt.Sprintf("worker.id=%d", id),
		"jobs.accept_unknown_types=true", "log.format=json")
	rigtest.Start(t, o)
	return o
}

// set sets so many schedules with a tick each period, of which the first comes at the time.
func (db *database) set(t *testing.T, n int, period time.Duration, first, last time.Time) {
	t.Helper()
	var setting errgroup.Group
	setting.SetLimit(4)
	for i := range n {
		setting.Go(func() error {
			return db.SetSchedule(context.WithoutCancel(t.Context()), job.Schedule{
				Tenant: "default", Name: fmt.Sprintf("s%05d", i), Timing: job.Timing{Every: period, Anchor: first, StartsAt: first, EndsAt: last},
				Overlap: job.OverlapAllow, CatchUp: job.CatchUpAll, CatchUpWindow: job.DefaultCatchUpWindow,
				Job: json.RawMessage(`{"jobType": "TICK", "payload": {}}`), NextAt: first,
			})
		})
	}
	require.NoError(t, setting.Wait())
}

// ahead is a whole second of the database that is so far away.
func (db *database) ahead(t *testing.T, by time.Duration) time.Time {
	t.Helper()
	now, err := db.Now(t.Context())
	require.NoError(t, err)
	return now.Add(by).Truncate(time.Second)
}

// Package gates tests limits, fair turns and pauses: real orchestrators on a real
// PostgreSQL, judged by what the handlers have written down. With HOLDFAST_TEST_GATES=full
// the tests run at full length, one after the other, and judge speeds as well.
package gates

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

const (
	patience = rigtest.Patience
	glance   = 20 * time.Millisecond
)

// full says that the tests run at full length.
var full = os.Getenv("HOLDFAST_TEST_GATES") == "full"

// bin is the directory of the tested binaries.
var bin string

func TestMain(m *testing.M) {
	// Parallel tests mostly wait. Speeds are measured alone.
	parallel := "3"
	if full {
		parallel = "1"
	}
	_ = flag.Set("test.parallel", parallel)
	var err error
	if bin, err = rigtest.Build("../../bin/gates", "../../cmd/orchestrator", "./visits"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// ofLength is a number for short tests, and another for those at full length.
func ofLength[T any](short, long T) T {
	if full {
		return long
	}
	return short
}

// scene is a database, and orchestrators on it whose handlers write one record.
type scene struct {
	orchestrators []*rig.Orchestrator
	db            *pgxpool.Pool
	store         *store.Store
	record        string
}

// newScene starts orchestrators with a short lease. The rules are set before they start.
func newScene(t *testing.T, orchestrators int, rules func(*store.Store), settings ...string) *scene {
	t.Helper()
	url := pgtest.URL(t)
	s := &scene{db: openPool(t, url), store: openStore(t, url), record: filepath.Join(t.TempDir(), "record")}
	if rules != nil {
		rules(s.store)
	}
	for i := range orchestrators {
		o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(), append([]string{
			"database.url=" + url,
			fmt.Sprintf("worker.id=%d", i),
			"worker.lease=5s",
			"worker.kill_grace=300ms",
			"worker.crash_policy=release",
			"log.format=json",
			"plugins.0.name=visits",
			"plugins.0.path=" + filepath.Join(bin, "visits"),
			"plugins.0.env.RECORD=" + s.record,
			"plugins.0.env.PLACES=" + filepath.Dir(s.record),
		}, settings...)...)
		s.orchestrators = append(s.orchestrators, o)
		rigtest.Start(t, o)
	}
	return s
}

func openPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	db, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db
}

func openStore(t *testing.T, url string) *store.Store {
	t.Helper()
	return storetest.Open(t, url, 2)
}

// visit is the payload of the handlers.
type visit struct {
	Millis int    `json:"millis"`
	Key    string `json:"key,omitempty"`
	Places int    `json:"places,omitempty"`
}

// visits are so many equal submissions.
func visits(jobs int, one rig.Submission) []rig.Submission {
	one.JobType = "VISIT"
	return slices.Repeat([]rig.Submission{one}, jobs)
}

func (s *scene) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, s.db.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}

// awaitNone waits until the query counts nothing.
func (s *scene) awaitNone(t *testing.T, query string, args ...any) {
	t.Helper()
	require.Eventually(t, func() bool { return s.count(t, query, args...) == 0 }, patience, glance, query)
}

// awaitAtLeast waits until the query counts so many.
func (s *scene) awaitAtLeast(t *testing.T, atLeast int, query string, args ...any) {
	t.Helper()
	require.Eventually(t, func() bool { return s.count(t, query, args...) >= atLeast }, patience, glance, query)
}

// nothingIsLeft checks, when all jobs have ended, that no slot is used, nothing is parked,
// and doctor finds nothing.
func (s *scene) nothingIsLeft(t *testing.T) {
	t.Helper()
	s.awaitNone(t, `select count(*) from wakes`)
	require.Zero(t, s.count(t, `select count(*) from slots where used > 0`), "slots that nobody has freed")
	require.Zero(t, s.count(t, `select (select count(*) from parked) + (select count(*) from ready) + (select count(*) from leases)`))
	checks, err := s.store.Diagnose(t.Context())
	require.NoError(t, err)
	looked := 0
	for _, check := range checks {
		switch check.Name {
		case "ledger_and_lists", "leases", "slots", "admission":
			looked++
			require.Equal(t, job.Fine, check.Severity, "%s: %s", check.Name, check.Details)
		}
	}
	require.Equal(t, 4, looked)
}

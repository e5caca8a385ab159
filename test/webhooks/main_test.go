// Package webhooks tests that clients learn of the ends of jobs, by webhooks and by events:
// real orchestrators and the built-in plugin, which are killed meanwhile.
package webhooks

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const (
	patience = rigtest.Patience
	glance   = 20 * time.Millisecond
	secret   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// bin is the directory of the tested binaries.
var bin string

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "3") // the tests mostly wait
	var err error
	if bin, err = rigtest.Build("../../bin/webhooks", "../../cmd/orchestrator", "../../cmd/handlers"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// scene is a database with orchestrators.
type scene struct {
	orchestrators []*rig.Orchestrator
	db            *pgxpool.Pool
}

func newScene(t *testing.T, orchestrators int, settings ...string) *scene {
	t.Helper()
	url := pgtest.URL(t)
	db, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	s := &scene{db: db}
	for i := range orchestrators {
		o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(), append([]string{
			"database.url=" + url,
			fmt.Sprintf("worker.id=%d", i),
			"worker.lease=3s",
			"worker.kill_grace=300ms",
			"worker.crash_policy=release",
			"jobs.default.max_crashes=100", // the jobs are not to blame for the kills
			"log.format=json",
			"plugins.0.name=builtin",
			"plugins.0.path=" + filepath.Join(bin, "handlers"),
			"plugins.0.env.WEBHOOK_SECRETS=" + secret,
		}, settings...)...)
		s.orchestrators = append(s.orchestrators, o)
		rigtest.Start(t, o)
	}
	return s
}

func (s *scene) shutDown(t *testing.T) {
	t.Helper()
	for _, o := range s.orchestrators {
		require.NoError(t, o.ShutDown(t.Context()))
	}
}

func (s *scene) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	_, err := s.db.Exec(t.Context(), query, args...)
	require.NoError(t, err)
}

// ask returns the one value of the query.
func ask[T any](t *testing.T, s *scene, query string, args ...any) (value T) {
	t.Helper()
	require.NoError(t, s.db.QueryRow(t.Context(), query, args...).Scan(&value))
	return value
}

// await waits until the query returns 0.
func (s *scene) await(t *testing.T, query string) {
	t.Helper()
	require.Eventually(t, func() bool { return ask[int](t, s, query) == 0 }, patience, glance, query)
}

func start(t *testing.T, o *rig.Orchestrator) {
	t.Helper()
	require.Eventually(t, func() bool { // the kernel may have given its port away meanwhile
		_, err := o.Start(t.Context())
		return err == nil
	}, patience, glance)
}

func cancel(t *testing.T, o *rig.Orchestrator, id string) {
	t.Helper()
	require.NoError(t, o.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/cancel", nil, http.StatusOK, nil))
}

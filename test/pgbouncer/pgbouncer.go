// Package pgbouncer puts a PgBouncer between tests and their PostgreSQL.
package pgbouncer

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/internal/pgbouncer"
	"github.com/holdfast-jobs/holdfast/test/loopback"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// patience limits the wait for a start.
const patience = time.Minute

// Find returns the path of a PgBouncer. It skips the test if there is none, unless
// HOLDFAST_TEST_POOLER is set.
func Find(t testing.TB) string {
	t.Helper()
	path, err := pgbouncer.Find()
	if err != nil {
		require.Empty(t, os.Getenv("HOLDFAST_TEST_POOLER"), err)
		t.Skipf("%s: scripts/need.sh pgbouncer-1.21", err)
	}
	return path
}

// Start starts a PgBouncer in front of a database, and returns the address of that database
// behind it. It ends with the test. The settings replace those of the documentation. Without a
// PgBouncer it does what Find does.
func Start(t testing.TB, database string, settings map[string]string) string {
	t.Helper()
	address, err := loopback.FreeAddress(t.Context())
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) //nolint:gosec // another user must reach its own directory
	pooler, err := pgbouncer.New(Find(t), dir, address, database, settings)
	require.NoError(t, err)
	rigtest.Beside(t, pooler.Process, syscall.SIGKILL)
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), pooler.URL)
		return err == nil && conn.Close(t.Context()) == nil
	}, patience, 20*time.Millisecond)
	return pooler.URL
}

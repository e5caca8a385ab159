package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgbouncer"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestAPoolerGivesSessionsTheirSettings(t *testing.T) {
	p, err := startPooler(t.Context(), pgbouncer.Find(t), pgtest.EmptyURL(t))
	require.NoError(t, err)
	t.Cleanup(p.stop)
	conn, err := pgx.Connect(t.Context(), p.through)
	require.NoError(t, err)
	var planned string
	require.NoError(t, conn.QueryRow(t.Context(), "show plan_cache_mode").Scan(&planned))
	require.Equal(t, "force_generic_plan", planned)
	_, err = p.used()
	require.NoError(t, err)

	p.stop()
	require.Error(t, conn.Ping(t.Context()))
	require.NoDirExists(t, p.directory)
}

func TestAPoolerThatDoesNotStartSaysWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pgbouncer")
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755))                                  //nolint:gosec // another user must reach it
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho no such setting >&2\nexit 1\n"), 0o755)) //nolint:gosec // a program
	_, err := startPooler(t.Context(), path, pgtest.EmptyURL(t))
	require.ErrorContains(t, err, "PgBouncer did not start")
	require.ErrorContains(t, err, "no such setting")
}

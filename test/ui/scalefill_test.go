package ui

import (
	"context"
	"embed"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/embedded"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

//go:embed testdata/scale/*.sql
var filling embed.FS

// amongMany is a scene with many jobs: with HOLDFAST_TEST_UI_SCALE=full, 10 million that have
// ended and a million that are open, in a database with the settings of the product.
// HOLDFAST_TEST_UI_SCALE_DATABASE is the URL of one to fill, unless it is full, and to keep.
func amongMany(t *testing.T) (*scene, *pgx.Conn) {
	t.Helper()
	address, ended, open := "", 50_000, 5_000
	if millions {
		ended, open = 10_000_000, 1_000_000
		address = os.Getenv("HOLDFAST_TEST_UI_SCALE_DATABASE")
	}
	switch {
	case address != "":
	case millions:
		address = database(t, lasting(t))
	default:
		address = database(t, postgres.server.URL())
	}
	// It brings the schema.
	first := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(), "database.url="+address)
	rigtest.Start(t, first)
	require.NoError(t, first.ShutDown(t.Context()))
	db, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.Background())) })
	fill(t, db, ended, open)
	return sceneOn(t, address, "worker.id=main"), db
}

// lasting starts a server that is as durable as that of the product, which ends with the test.
func lasting(t *testing.T) (url string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // as root, PostgreSQL runs as another user
	server, err := embedded.Start(t.Context(), embedded.Config{DataDir: filepath.Join(dir, "pg")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	return server.URL()
}

// fill writes jobs that look as if they had been worked for ten days.
func fill(t *testing.T, db *pgx.Conn, ended, open int) {
	t.Helper()
	empty := func(table string) (empty bool) {
		t.Helper()
		require.NoError(t, db.QueryRow(t.Context(), "select not exists (select from "+table+")").Scan(&empty))
		return empty
	}
	jobs, workflows := empty("tally_totals"), empty("workflows")
	if !jobs && !workflows {
		return
	}
	run := func(statement string, args ...any) {
		t.Helper()
		_, err := db.Exec(t.Context(), statement, args...)
		require.NoError(t, err)
	}
	text := func(name string) string {
		t.Helper()
		found, err := filling.ReadFile("testdata/scale/" + name + ".sql")
		require.NoError(t, err)
		return string(found)
	}
	run("set session_replication_role = replica") // so that no trigger refuses them
	run("set synchronous_commit = off")
	if jobs {
		const chunk = 100_000
		for name, count := range map[string]int{"ended": ended, "open": open} {
			for first := 0; first < count; first += chunk {
				run(text(name), first, min(first+chunk, count)-1, count)
			}
		}
		run(text("figures"))
	}
	if workflows {
		run(text("workflows"), ended/1000, open/1000)
	}
	run("reset session_replication_role")
	run("vacuum analyze")
	run("checkpoint")
}

package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	first, second := pgtest.URL(t), pgtest.URL(t)
	require.NotEqual(t, first, second)
	execute(t, first, "create table only_here ()")
	execute(t, second, "create table only_here ()")
}

func TestTheSchemaIsThere(t *testing.T) {
	pool := pgtest.Pool(t)
	var exists bool
	require.NoError(t, pool.QueryRow(t.Context(), "select to_regclass('jobs') is not null").Scan(&exists))
	require.True(t, exists)
}

func TestAnEmptyDatabaseHasNoSchema(t *testing.T) {
	conn := connect(t, pgtest.EmptyURL(t))
	var tables int
	require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from pg_tables where schemaname = 'public'").Scan(&tables))
	require.Zero(t, tables)
}

func TestTheDatabaseIsDroppedAfterTheTest(t *testing.T) {
	var url string
	t.Run("leaves a connection open", func(t *testing.T) {
		url = pgtest.URL(t)
		connect(t, url)
	})
	_, err := pgx.Connect(t.Context(), url)
	require.ErrorContains(t, err, "does not exist")
}

func TestTestsInParallelShareTheTemplate(t *testing.T) {
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			execute(t, pgtest.URL(t), "select 1 from jobs")
		})
	}
}

func BenchmarkURL(b *testing.B) {
	for b.Loop() {
		pgtest.URL(b)
	}
}

// connect opens a connection that stays open until the test's database is dropped.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	return conn
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	_, err := connect(t, url).Exec(t.Context(), statement)
	require.NoError(t, err)
}

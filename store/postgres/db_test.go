package postgres

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestConnectionsAreDivided(t *testing.T) {
	for total, want := range map[int32][3]int32{
		0:   {1, 1, 1},
		2:   {1, 1, 1},
		3:   {1, 1, 1},
		4:   {2, 1, 1},
		6:   {4, 1, 1},
		10:  {4, 3, 3},
		20:  {8, 6, 6},
		100: {40, 30, 30},
	} {
		worker, submissions, reads := divide(total)
		require.Equal(t, want, [3]int32{worker, submissions, reads}, "%d", total)
		require.Equal(t, max(total, 3), worker+submissions+reads)
	}
}

func TestNoStatementRunsUnderAPlannersWhim(t *testing.T) {
	db, err := Open(t.Context(), Config{URL: pgtest.EmptyURL(t), MaxConnections: 20})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	for setting, value := range sessionSettings {
		for _, pool := range db.pools() {
			want := value
			if pool == db.Reads {
				want = readSettings()[setting]
			}
			var got string
			require.NoError(t, pool.QueryRow(t.Context(), "select current_setting($1)", setting).Scan(&got))
			require.Equal(t, want, got, pool.name)
		}
	}
}

// A pooler in between must know each of them.
func TestTheSettingsOfASessionAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/postgresql.md")
	require.NoError(t, err)
	ignored := regexp.MustCompile(`ignore_startup_parameters = (\S+)`).FindSubmatch(page)
	require.NotNil(t, ignored)
	require.ElementsMatch(t, slices.DeleteFunc(slices.Collect(maps.Keys(sessionSettings)), func(name string) bool {
		return name == "timezone" // that one is passed on
	}), strings.Split(string(ignored[1]), ","))
	for name, value := range sessionSettings {
		if name != "timezone" {
			require.Regexp(t, "alter role holdfast set "+name+" = '?"+value+"'?;", string(page))
		}
	}
}

func TestTheRoleIsGivenTheSettingsOnce(t *testing.T) {
	url := pgtest.EmptyURL(t)
	var processes sync.WaitGroup
	var changed atomic.Int64
	for range 10 {
		processes.Go(func() {
			n, err := SetDefaults(t.Context(), url)
			assert.NoError(t, err)
			changed.Add(int64(n))
		})
	}
	processes.Wait()
	require.EqualValues(t, len(sessionSettings), changed.Load(), "by one process")

	db, err := Open(t.Context(), Config{URL: url, DirectURL: url})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	for setting, value := range sessionSettings {
		var got string
		require.NoError(t, db.Reads.QueryRow(t.Context(), "select current_setting($1)", setting).Scan(&got))
		require.Equal(t, value, got)
	}
	cfg, err := Unlimited(url)
	require.NoError(t, err)
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	for _, setting := range []string{"statement_timeout", "lock_timeout", "enable_seqscan", "plan_cache_mode"} {
		var got, initial string
		require.NoError(t, conn.QueryRow(t.Context(), "select current_setting($1), boot_val from pg_settings where name = $1", setting).Scan(&got, &initial))
		require.Equal(t, initial, got, "migrations take the time that they need")
	}
}

package pgtest_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// The store relies on this: nobody sees a commit that waits for the standby. A cancel
// makes it visible although a failover would lose it, and the server only sends a
// notice.
func TestACommitWaitsForTheStandbyAndIsLostWhenItsWaitIsCanceled(t *testing.T) {
	p := pgtest.NewPair(t)
	execute(t, p.Primary, "create table things ()")
	p.Stall()
	cfg, err := pgx.ParseConfig(p.Primary)
	require.NoError(t, err)
	cfg.RuntimeParams["statement_timeout"] = "200ms" // does not limit the wait
	cfg.RuntimeParams["lc_messages"] = "C"
	var notices []string
	cfg.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { notices = append(notices, notice.Routine) }
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	things := func(url string) (n int) {
		t.Helper()
		require.NoError(t, connect(t, url).QueryRow(t.Context(), "select count(*) from things").Scan(&n))
		return n
	}

	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "insert into things default values")
		done <- err
	}()
	p.AwaitWaiting(t, 1)
	observer := connect(t, p.Primary)
	require.Eventually(t, func() bool {
		var long bool
		err := observer.QueryRow(t.Context(), `select bool_or(clock_timestamp() - query_start > interval '300 ms')
			from pg_stat_activity where wait_event = 'SyncRep'`).Scan(&long)
		return err == nil && long
	}, 2*time.Minute, 20*time.Millisecond, "it waits for longer than statement_timeout")
	require.Zero(t, things(p.Primary))
	require.Equal(t, 1, p.CancelWaiting(t))
	require.NoError(t, <-done)
	require.Equal(t, []string{"SyncRepWaitForLSN"}, notices)
	require.Equal(t, 1, things(p.Primary))

	_, err = conn.Exec(t.Context(), "select pg_current_xact_id()")
	require.NoError(t, err, "an id alone does not wait")
	go func() {
		_, err := conn.Exec(t.Context(), "select pg_logical_emit_message(true, 'holdfast', '')")
		done <- err
	}()
	p.AwaitWaiting(t, 1)
	p.TerminateWaiting(t)
	require.Error(t, <-done)

	p.Promote(t)
	require.Zero(t, things(p.Standby))
	execute(t, p.Standby, "insert into things default values")
}

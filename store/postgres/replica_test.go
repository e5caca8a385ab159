package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

const (
	patience = time.Minute
	// longLag is for tests in which a replica never is too far behind.
	longLag = 10 * time.Minute
)

// lines are those of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) count(of string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), of)
}

const (
	toPrimary = "lists and figures come from the primary"
	toReplica = "lists and figures come from the replica"
)

// opened follows the replica at the URL.
func opened(t *testing.T, primary, replica string, maxLag time.Duration) (*DB, *lines) {
	t.Helper()
	log := &lines{}
	db, err := Open(t.Context(), Config{URL: primary, Replica: ReplicaConfig{
		URL: replica, MaxLag: maxLag, Log: slog.New(slog.NewTextHandler(log, nil)),
	}})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	require.NoError(t, db.Replica.Start(t.Context()))
	return db, log
}

// newSeen is a pair of servers with an empty table that read looks at.
func newSeen(t *testing.T) *pgtest.Pair {
	t.Helper()
	pair := pgtest.NewAsynchronousPair(t)
	exec(t, pair.Primary, "create table seen (n int)")
	pair.AwaitReplay(t)
	return pair
}

func exec(t *testing.T, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), statement)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

// server returns where a read was answered, "standby" or "primary", what it saw, and how old
// that is at most; -1 if nobody said so.
func read(t *testing.T, from *StaleLane) (server string, rows int, age time.Duration) {
	t.Helper()
	asked := &job.Staleness{}
	require.NoError(t, from.Read(job.WithStaleness(t.Context(), asked), "test", func(conn Querier) error {
		found, err := conn.Query(t.Context(), "select case when pg_is_in_recovery() then 'standby' else 'primary' end, (select count(*) from seen)")
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(found, []any{&server, &rows}, func() error { return nil })
		return err
	}))
	age, old := asked.Age()
	if !old {
		age = -1
	}
	return server, rows, age
}

// awaitActive returns once a connection executes the query.
func awaitActive(t *testing.T, url, query string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	require.Eventually(t, func() bool {
		var active bool
		err := conn.QueryRow(t.Context(), "select exists (select from pg_stat_activity where state = 'active' and query = $1)", query).Scan(&active)
		return err == nil && active
	}, patience, 10*time.Millisecond)
}

func awaitUsed(t *testing.T, db *DB, used bool) {
	t.Helper()
	require.Eventually(t, func() bool { return (db.Replica.Status().Why == nil) == used }, patience, 10*time.Millisecond)
}

func TestAReplicaAnswersUntilItIsTooFarBehindAndAgainWhenItHasCaughtUp(t *testing.T) {
	pair := newSeen(t)
	exec(t, pair.Primary, "insert into seen values (1)")
	pair.AwaitReplay(t)
	const maxLag = 3 * time.Second
	db, log := opened(t, pair.Primary, pair.Standby, maxLag)
	awaitUsed(t, db, true)
	server, rows, age := read(t, db.StaleLists)
	require.Equal(t, "standby", server)
	require.Equal(t, 1, rows)
	require.NotEqual(t, time.Duration(-1), age)

	pair.PauseReplay(t)
	paused := time.Now()
	exec(t, pair.Primary, "insert into seen values (2)")
	written := time.Now()
	for { // the old list, with an age that is never less than the truth
		server, rows, age = read(t, db.StaleLists)
		if server == "primary" {
			break
		}
		require.Equal(t, 1, rows)
		require.LessOrEqual(t, age, maxLag)
		require.GreaterOrEqual(t, age+time.Second, time.Since(written), "what was written is not there, so it is at least that old")
		require.Less(t, time.Since(paused), patience, "reads still go to the replica")
		time.Sleep(20 * time.Millisecond) // between two samples of an age that grows with time alone
	}
	require.Greater(t, time.Since(paused), maxLag/2)
	require.Equal(t, 2, rows, "the fresh list")
	require.Equal(t, time.Duration(-1), age)
	awaitUsed(t, db, false)
	require.ErrorIs(t, db.Replica.Status().Why, errBehind)
	require.Greater(t, *db.Replica.Status().Lag, maxLag)
	require.Equal(t, 1, log.count(toPrimary))

	pair.ResumeReplay(t)
	awaitUsed(t, db, true)
	server, rows, _ = read(t, db.StaleLists)
	require.Equal(t, "standby", server)
	require.Equal(t, 2, rows)
	require.Equal(t, 1, log.count(toPrimary))
	require.Equal(t, 2, log.count(toReplica))
	require.Positive(t, db.Replica.Status().Reads[replicaBehind])
}

// The last commit is long ago on an idle primary; the replica is not behind for that.
func TestAReplicaOfAnIdlePrimaryIsCurrent(t *testing.T) {
	pair := newSeen(t)
	db, log := opened(t, pair.Primary, pair.Standby, 2*time.Second)
	exec(t, pair.Primary, "select pg_switch_wal()") // the next position to write at is behind the header of a page
	awaitUsed(t, db, true)
	var since time.Duration
	require.Eventually(t, func() bool {
		p, err := positionOf(t.Context(), db.Replica.pool)
		require.NoError(t, err)
		since = *p.Since
		return since > 6*time.Second
	}, patience, 100*time.Millisecond)
	require.Less(t, *db.Replica.Status().Lag, 2*time.Second)
	require.Zero(t, log.count(toPrimary))
}

func TestReadsGoOnWithoutTheReplica(t *testing.T) {
	pair := newSeen(t)
	db, log := opened(t, pair.Primary, pair.Standby, longLag)
	awaitUsed(t, db, true)
	pair.KillStandby(t)
	server, _, _ := read(t, db.StaleLists)
	require.Equal(t, "primary", server)
	require.Error(t, db.Replica.Status().Why, "others do not try it")
	require.Equal(t, 1, log.count(toPrimary))
	pair.RestartStandby(t)
	awaitUsed(t, db, true)
	server, _, _ = read(t, db.StaleFigures)
	require.Equal(t, "standby", server)
}

func TestAReplicaThatIsDownDoesNotPreventAStart(t *testing.T) {
	pair := newSeen(t)
	pair.KillStandby(t)
	db, log := opened(t, pair.Primary, pair.Standby, longLag)
	require.Equal(t, 1, log.count(toPrimary))
	server, _, _ := read(t, db.StaleLists)
	require.Equal(t, "primary", server)
	pair.RestartStandby(t)
	awaitUsed(t, db, true)
}

func TestAPromotedReplicaAnswersNothing(t *testing.T) {
	pair := newSeen(t)
	db, _ := opened(t, pair.Primary, pair.Standby, longLag)
	awaitUsed(t, db, true)
	pair.Promote(t)
	exec(t, pair.Standby, "insert into seen values (1)")
	server, rows, _ := read(t, db.StaleLists) // on a connection from before
	require.Equal(t, "primary", server)
	require.Zero(t, rows)
	require.Eventually(t, func() bool { return resultOf(db.Replica.Status().Why) == replicaOther }, patience, 10*time.Millisecond)
	require.ErrorContains(t, db.Replica.Status().Why, "takes writes, on timeline 2")
}

func TestAReplicaOfAnotherDatabaseIsRefused(t *testing.T) {
	pair := pgtest.NewAsynchronousPair(t)
	exec(t, pair.Primary, "create database elsewhere")
	pair.AwaitReplay(t)
	elsewhere, err := url.Parse(pair.Standby)
	require.NoError(t, err)
	elsewhere.Path = "/elsewhere"
	for name, wrong := range map[string]string{"another cluster": pgtest.URL(t), "another database": elsewhere.String()} {
		db, err := Open(t.Context(), Config{URL: pair.Primary, Replica: ReplicaConfig{URL: wrong, MaxLag: longLag}})
		require.NoError(t, err)
		require.ErrorIs(t, db.Replica.Start(t.Context()), ErrForeignReplica, name)
		db.Close()
	}
}

// A standby cancels reads that are in the way of its log: here, of a table that is dropped.
func TestAReadThatTheReplicaCancelsIsRepeatedAtThePrimary(t *testing.T) {
	pair := newSeen(t)
	exec(t, pair.Primary, "create table dropped ()")
	exec(t, pair.Primary, "alter system set max_standby_streaming_delay = 0")
	exec(t, pair.Standby, "alter system set max_standby_streaming_delay = 0")
	exec(t, pair.Standby, "select pg_reload_conf()")
	pair.AwaitReplay(t)
	db, log := opened(t, pair.Primary, pair.Standby, longLag)
	awaitUsed(t, db, true)
	var servers []bool
	require.NoError(t, db.StaleFigures.Snapshot(t.Context(), "test", "", func(tx pgx.Tx) error {
		var standby bool
		require.NoError(t, tx.QueryRow(t.Context(), "select pg_is_in_recovery()").Scan(&standby))
		servers = append(servers, standby)
		if !standby {
			return nil
		}
		if _, err := tx.Exec(t.Context(), "select from dropped"); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), "set local statement_timeout = 0")
		require.NoError(t, err)
		const sleep = "select pg_sleep(3600)"
		sleeping := tx.Conn().PgConn().Exec(t.Context(), sleep)
		awaitActive(t, pair.Standby, sleep) // between two statements, its connection would be ended
		exec(t, pair.Primary, "drop table dropped")
		_, err = sleeping.ReadAll()
		return err
	}))
	require.Equal(t, []bool{true, false}, servers)
	require.EqualValues(t, 1, db.Replica.Status().Reads[readConflict])
	require.NoError(t, db.Replica.Status().Why, "others go on there")
	require.Zero(t, log.count(toPrimary))
}

func TestAReadThatTakesTooLongIsNotRepeatedAtThePrimary(t *testing.T) {
	pair := pgtest.NewAsynchronousPair(t)
	db, _ := opened(t, pair.Primary, pair.Standby, longLag)
	awaitUsed(t, db, true)
	runs := 0
	err := db.StaleLists.Read(t.Context(), "test", func(conn Querier) error {
		runs++
		rows, err := conn.Query(t.Context(), "select pg_sleep(60)")
		if err != nil {
			return err
		}
		_, err = pgx.CollectRows(rows, pgx.RowTo[any])
		return err
	})
	require.ErrorIs(t, err, job.ErrBusy)
	require.Equal(t, 1, runs)
	require.NoError(t, db.Replica.Status().Why)
}

func TestAClientCanAskForThePrimary(t *testing.T) {
	pair := pgtest.NewAsynchronousPair(t)
	db, _ := opened(t, pair.Primary, pair.Standby, longLag)
	awaitUsed(t, db, true)
	ctx := job.WithStaleness(t.Context(), &job.Staleness{Fresh: true})
	require.NoError(t, db.StaleLists.Read(ctx, "test", func(conn Querier) error {
		rows, err := conn.Query(ctx, "select pg_is_in_recovery()")
		require.NoError(t, err)
		standby, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
		require.False(t, standby)
		return err
	}))
	require.EqualValues(t, 1, db.Replica.Status().Reads[readFresh])
	require.Zero(t, db.Replica.Status().Reads[ByReplica])
}

func TestAReadWhoseCallerHasLeftIsNotRepeated(t *testing.T) {
	pair := pgtest.NewAsynchronousPair(t)
	db, _ := opened(t, pair.Primary, pair.Standby, longLag)
	awaitUsed(t, db, true)
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	err := db.StaleLists.Read(ctx, "test", func(Querier) error { runs++; cancel(); return ctx.Err() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, runs)
	for result, reads := range db.Replica.Status().Reads {
		require.Zero(t, reads, "it says nothing about the replica: %s", result)
	}
}

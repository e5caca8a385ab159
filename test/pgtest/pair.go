package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/migrations"
	"github.com/holdfast-jobs/holdfast/store/embedded"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// pairPatience limits every wait for a server of a pair.
const pairPatience = 2 * time.Minute

// Pair is a primary and a standby. Both end with the test.
type Pair struct {
	// Primary and Standby are the addresses of the database, which has the
	// schema. Nothing can be written to the standby before Promote.
	Primary, Standby string

	link             *Proxy // from the standby to the primary
	primary, standby *embedded.Server
	// They start the primary and the standby again.
	restart        func(testing.TB) *embedded.Server
	restartStandby func(testing.TB) *embedded.Server
}

// NewPair starts a pair from local binaries, in which every commit waits for the standby. It
// skips the test if there are none.
func NewPair(t testing.TB) *Pair {
	t.Helper()
	return newPair(t, map[string]string{"synchronous_standby_names": standbyName})
}

// NewAsynchronousPair starts a pair in which commits wait for the disk of the primary, and not
// for the standby.
func NewAsynchronousPair(t testing.TB) *Pair {
	t.Helper()
	return newPair(t, map[string]string{"fsync": "on", "full_page_writes": "on"})
}

// standbyName is what the primary knows the standby by.
const standbyName = "standby"

// newPair starts a pair whose primary has these settings in addition.
func newPair(t testing.TB, additional map[string]string) *Pair {
	t.Helper()
	dir := Dir(t)
	cluster, err := migratedCluster()
	if errors.Is(err, embedded.ErrNoPostgres) {
		t.Skip("two servers need local PostgreSQL binaries: ", err)
	}
	require.NoError(t, err)

	p := &Pair{}
	settings := map[string]string{
		"synchronous_commit": "on",
		// A stalled link must not be dropped.
		"wal_sender_timeout": "0", "wal_receiver_timeout": "0",
		"shared_buffers": "32MB",
	}
	ofPrimary := maps.Clone(settings)
	maps.Copy(ofPrimary, additional)
	p.primary = startCopy(t, cluster, filepath.Join(dir, "primary"), ofPrimary)
	p.restart = func(t testing.TB) *embedded.Server { return startServerIn(t, filepath.Join(dir, "primary"), ofPrimary) }
	p.Primary = p.primary.URL()
	p.link = Between(t, p.Primary)
	cfg, err := pgx.ParseConfig(p.link.URL)
	require.NoError(t, err)
	settings["primary_conninfo"] = fmt.Sprintf("host=%s port=%d user=%s sslmode=disable gssencmode=disable application_name=%s",
		cfg.Host, cfg.Port, cfg.User, standbyName)
	p.standby = startCopy(t, cluster, filepath.Join(dir, "standby"), settings, "standby.signal")
	p.Standby = p.standby.URL()
	p.restartStandby = func(t testing.TB) *embedded.Server { return startServerIn(t, filepath.Join(dir, "standby"), settings) }
	t.Cleanup(p.separate)
	state := "async"
	if _, waits := additional["synchronous_standby_names"]; waits {
		state = "sync"
	}
	p.await(t, p.Primary, fmt.Sprintf("select count(*) = 1 from pg_stat_replication where state = 'streaming' and sync_state = '%s'", state))
	return p
}

// Stall holds back what the primary sends to the standby until Resume, so that
// commits wait.
func (p *Pair) Stall() { p.link.Stall() }

// Resume ends a Stall.
func (p *Pair) Resume() { p.link.Resume() }

// PauseReplay lets the standby receive what the primary sends, but not replay it until
// ResumeReplay: reads there show the past.
func (p *Pair) PauseReplay(t testing.TB) {
	t.Helper()
	p.await(t, p.Standby, "select pg_wal_replay_pause() is not null")
	p.await(t, p.Standby, "select pg_get_wal_replay_pause_state() = 'paused'")
}

// ResumeReplay ends a PauseReplay.
func (p *Pair) ResumeReplay(t testing.TB) {
	t.Helper()
	p.await(t, p.Standby, "select pg_wal_replay_resume() is not null")
}

// AwaitReplay waits until the standby shows everything that the primary has committed.
func (p *Pair) AwaitReplay(t testing.TB) {
	t.Helper()
	conn := dial(t, p.Primary)
	var position string
	require.NoError(t, conn.QueryRow(t.Context(), "select pg_current_wal_insert_lsn()::text").Scan(&position))
	require.NoError(t, conn.Close(t.Context()))
	p.await(t, p.Standby, fmt.Sprintf("select pg_last_wal_replay_lsn() >= '%s'", position))
}

// KillStandby ends the standby at once.
func (p *Pair) KillStandby(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.standby.Stop(ctx) // as Kill
}

// RestartStandby starts the standby again after KillStandby.
func (p *Pair) RestartStandby(t testing.TB) {
	t.Helper()
	p.standby = p.restartStandby(t)
	p.Standby = p.standby.URL()
}

// AwaitWaiting waits until at least this many commits wait for the standby.
func (p *Pair) AwaitWaiting(t testing.TB, atLeast int) {
	t.Helper()
	p.await(t, p.Primary, fmt.Sprintf("select count(*) >= %d from pg_stat_activity where wait_event = 'SyncRep'", atLeast))
}

// CancelWaiting cancels the wait of all commits that wait for the standby, which
// leaves them committed on the primary alone. It returns how many there were.
func (p *Pair) CancelWaiting(t testing.TB) int { t.Helper(); return p.signal(t, "pg_cancel_backend") }

// TerminateWaiting is like CancelWaiting, but also ends the connections.
func (p *Pair) TerminateWaiting(t testing.TB) int {
	t.Helper()
	return p.signal(t, "pg_terminate_backend")
}

// Promote cuts off the standby and makes it a primary that waits for no standby.
// The old primary keeps running.
func (p *Pair) Promote(t testing.TB) {
	t.Helper()
	p.separate()
	p.await(t, p.Standby, "select pg_promote(true, 60)")
	p.await(t, p.Standby, "select not pg_is_in_recovery()")
}

// Kill ends the primary at once.
func (p *Pair) Kill(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.primary.Stop(ctx) // it returns an error, because this is no fast shutdown
}

// KillAll ends all processes of the primary with SIGKILL, the postmaster first, and returns when
// it began to.
func (p *Pair) KillAll(t testing.TB) time.Time {
	t.Helper()
	conn := dial(t, p.Primary)
	var backend int
	require.NoError(t, conn.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&backend))
	postmaster, err := rig.Parent(backend)
	require.NoError(t, err)
	require.Greater(t, postmaster, 1)
	victims := rig.Descendants(postmaster)
	at := time.Now()
	require.NoError(t, syscall.Kill(postmaster, syscall.SIGKILL))
	for _, victim := range victims {
		_ = victim.Signal(syscall.SIGKILL) // it may have ended with the postmaster
	}
	p.Kill(t)
	return at
}

// Restart starts the primary again after Kill or KillAll. It recovers from its log.
func (p *Pair) Restart(t testing.TB) {
	t.Helper()
	p.primary = p.restart(t)
	p.Primary = p.primary.URL()
}

// separate cuts off the standby for good.
func (p *Pair) separate() {
	p.link.Down.Store(true)
	p.link.Cut()
}

func (p *Pair) signal(t testing.TB, function string) int {
	t.Helper()
	conn := dial(t, p.Primary)
	var signaled int
	require.NoError(t, conn.QueryRow(t.Context(),
		"select count("+function+"(pid)) from pg_stat_activity where wait_event = 'SyncRep'").Scan(&signaled))
	require.NoError(t, conn.Close(t.Context()))
	return signaled
}

// await waits until the query returns true.
func (p *Pair) await(t testing.TB, url, query string) {
	t.Helper()
	conn := dial(t, url)
	require.Eventually(t, func() bool {
		var yes bool
		return conn.QueryRow(t.Context(), query).Scan(&yes) == nil && yes
	}, pairPatience, 5*time.Millisecond, query)
	require.NoError(t, conn.Close(t.Context()))
}

func dial(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	return conn
}

// startCopy starts a server on a copy of the cluster, to which it adds the given empty
// files.
func startCopy(t testing.TB, cluster, dir string, settings map[string]string, files ...string) *embedded.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pairPatience)
	defer cancel()
	output, err := exec.CommandContext(ctx, "cp", "-a", cluster, dir).CombinedOutput()
	require.NoError(t, err, "%s", output)
	for _, name := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "data", name), nil, 0o644)) // read by another user
	}
	return startServerIn(t, dir, settings)
}

// startServerIn starts a server in the directory of a cluster.
func startServerIn(t testing.TB, dir string, settings map[string]string) *embedded.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pairPatience)
	defer cancel()
	server, err := embedded.Start(ctx, embedded.Config{DataDir: dir, Ephemeral: true, Settings: settings})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Stop(ctx) // it fails if commits that wait for a standby prevent a fast shutdown
	})
	return server
}

// clusters is the directory of a stopped cluster with the schema. Every pair of this
// process is a copy of that cluster.
var clusters struct {
	sync.Mutex
	dir    string
	remove func() error
}

func migratedCluster() (string, error) {
	clusters.Lock()
	defer clusters.Unlock()
	if clusters.dir != "" {
		return clusters.dir, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), pairPatience)
	defer cancel()
	dir, remove, err := makeDir()
	if err != nil {
		return "", err
	}
	cluster := filepath.Join(dir, "cluster")
	if err := makeCluster(ctx, cluster); err != nil {
		return "", errors.Join(err, remove())
	}
	clusters.dir, clusters.remove = cluster, remove
	return cluster, nil
}

func makeCluster(ctx context.Context, dir string) error {
	server, err := embedded.Start(ctx, embedded.Config{DataDir: dir, Ephemeral: true})
	if err != nil {
		return err
	}
	db, err := sql.Open("pgx", server.URL())
	if err == nil {
		_, err = migrations.Up(ctx, db)
		err = errors.Join(err, db.Close())
	}
	return errors.Join(err, server.Stop(ctx))
}

// removeClusters is called at the end of the process.
func removeClusters() error {
	clusters.Lock()
	defer clusters.Unlock()
	if clusters.dir == "" {
		return nil
	}
	clusters.dir = ""
	return clusters.remove()
}

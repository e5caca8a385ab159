package embedded

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const (
	// patience bounds every wait for something that should happen soon.
	patience = 2 * time.Minute
	// soon bounds what must not wait for something that takes minutes.
	soon = 20 * time.Second
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerModeEnv); dir != "" {
		ownServerUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

func TestDataSurvivesARestart(t *testing.T) {
	dir := tempDir(t)
	log := &logged{}
	server := begin(t, Config{DataDir: dir, Log: log.logger()})
	run(t, server, "create table t as select 42 as n")
	pid := serverPid(t, dir)
	end(t, server)
	require.False(t, runsIn(filepath.Join(dir, "data"), pid), "the server is gone when Stop returns")
	require.NotContains(t, log.text(), "level=WARN", "nothing alarms on the ordinary way")

	server = begin(t, Config{DataDir: dir})
	require.Equal(t, "42", query(t, server, "select n::text from t"))
}

func TestTheClusterIsWhatTheStoreExpects(t *testing.T) {
	server := begin(t, Config{DataDir: tempDir(t)})
	for setting, want := range map[string]string{
		"server_encoding":    "UTF8",
		"timezone":           "UTC",
		"listen_addresses":   "",
		"fsync":              "on",
		"full_page_writes":   "on",
		"synchronous_commit": "on",
		"jit":                "off",
	} {
		require.Equal(t, want, query(t, server, "select current_setting('"+setting+"')"), setting)
	}
	require.Equal(t, "C", query(t, server, "select datcollate from pg_database where datname = current_database()"))
	require.Equal(t, "holdfast", query(t, server, "select current_database()::text"))
}

func TestSettingsOfTheCallerWin(t *testing.T) {
	server := begin(t, Config{DataDir: tempDir(t), Ephemeral: true, Settings: map[string]string{"timezone": "Asia/Kathmandu"}})
	require.Equal(t, "Asia/Kathmandu", query(t, server, "select current_setting('timezone')"))
	require.Equal(t, "off", query(t, server, "select current_setting('fsync')"))
}

func TestASecondStartSharesTheServer(t *testing.T) {
	dir := tempDir(t)
	owner := begin(t, Config{DataDir: dir})
	guest := begin(t, Config{DataDir: dir})
	require.Equal(t, owner.URL(), guest.URL())
	require.Nil(t, guest.Done())

	end(t, guest)
	require.Equal(t, "1", query(t, owner, "select '1'"), "a guest does not stop the server")
	end(t, owner)
	<-owner.Done()
}

func TestStartsAtTheSameTimeMakeOneServer(t *testing.T) {
	dir := tempDir(t)
	const starts = 4
	servers := make(chan *Server, starts)
	failures := make(chan error, starts)
	for range starts {
		go func() {
			server, err := Start(t.Context(), Config{DataDir: dir})
			servers <- server
			failures <- err
		}()
	}
	owners := 0
	for range starts {
		require.NoError(t, <-failures)
		server := <-servers
		t.Cleanup(func() { end(t, server) })
		if server.Done() != nil {
			owners++
		}
		require.Equal(t, "1", query(t, server, "select '1'"))
	}
	require.Equal(t, 1, owners)
}

func TestStopMayBeCalledAgain(t *testing.T) {
	server := begin(t, Config{DataDir: tempDir(t)})
	require.NoError(t, server.Stop(t.Context()))
	require.NoError(t, server.Stop(t.Context()))
}

func TestStopDoesNotOutliveItsContext(t *testing.T) {
	dir := tempDir(t)
	server := begin(t, Config{DataDir: dir})
	run(t, server, "create table t as select 42 as n")
	pid := serverPid(t, dir)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, server.Stop(ended), context.Canceled)
	require.False(t, runsIn(filepath.Join(dir, "data"), pid))

	server = begin(t, Config{DataDir: dir})
	require.Equal(t, "42", query(t, server, "select n::text from t"), "recovered from the log")
}

func TestStartFollowsTheDeathOfTheServer(t *testing.T) {
	dir := tempDir(t)
	server := begin(t, Config{DataDir: dir})
	run(t, server, "create table t as select 42 as n")
	require.NoError(t, syscall.Kill(serverPid(t, dir), syscall.SIGKILL))
	<-server.Done()
	require.Error(t, server.Stop(t.Context()), "an end that nobody asked for")
	require.FileExists(t, filepath.Join(dir, "data", "postmaster.pid"))

	server = begin(t, Config{DataDir: dir})
	require.Equal(t, "42", query(t, server, "select n::text from t"))
}

func TestTheServerHoldsItsLock(t *testing.T) {
	dir := tempDir(t)
	server := begin(t, Config{DataDir: dir})
	owner, err := accountFor(dir)
	require.NoError(t, err)
	h := home{dir: dir, owner: owner}
	lock, err := h.lockServer()
	require.NoError(t, err)
	require.Nil(t, lock, "a server runs")

	end(t, server)
	lock, err = h.lockServer()
	require.NoError(t, err)
	require.NotNil(t, lock, "no process of the server is left")
	require.NoError(t, lock.Close())
}

func TestAStaleLockFileIsNoObstacle(t *testing.T) {
	dir := tempDir(t)
	end(t, begin(t, Config{DataDir: dir}))
	// The number is the pid of a live process that is not a server.
	content := strconv.Itoa(os.Getpid()) + "\n" + dir + "/data\n0\n5432\n" + dir + "\n\n0 0\nready\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), []byte(content), 0o600))

	server := begin(t, Config{DataDir: dir})
	require.Equal(t, "1", query(t, server, "select '1'"))
}

func TestAnUnfinishedClusterIsMadeAgain(t *testing.T) {
	dir := tempDir(t)
	half := filepath.Join(dir, "initdb-killed")
	require.NoError(t, os.MkdirAll(filepath.Join(half, "base"), 0o700))
	begin(t, Config{DataDir: dir})
	require.NoDirExists(t, half)
}

func TestALongPathMovesTheSocket(t *testing.T) {
	dir := filepath.Join(filepath.Dir(tempDir(t)), strings.Repeat("long/", 30))
	server := begin(t, Config{DataDir: dir})
	require.Equal(t, "1", query(t, server, "select '1'"))
	guest := begin(t, Config{DataDir: dir})
	require.Equal(t, server.URL(), guest.URL())
	state, ok := readPidFile(home{dir: dir})
	require.True(t, ok)
	require.DirExists(t, state.socketDir)
	end(t, server)
	require.NoDirExists(t, state.socketDir)
}

func TestALinkLeadsToTheData(t *testing.T) {
	dir := tempDir(t)
	link := filepath.Join(tempDir(t), "link")
	require.NoError(t, os.Symlink(dir, link))
	begin(t, Config{DataDir: link})
	require.FileExists(t, filepath.Join(dir, "data", "PG_VERSION"))
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	dir := tempDir(t)
	_, err := Start(t.Context(), Config{DataDir: dir, Settings: map[string]string{"shared_buffers": "plenty"}})
	require.ErrorContains(t, err, `invalid value for parameter "shared_buffers"`)
	_, ok := readPidFile(home{dir: dir})
	require.False(t, ok, "no server left")
}

func TestAnEndedContextEndsTheStart(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ended, Config{DataDir: tempDir(t)})
	require.ErrorIs(t, err, context.Canceled)
}

// begin starts a server and stops it at the end of the test.
func begin(t *testing.T, cfg Config) *Server {
	t.Helper()
	server, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = server.Stop(ctx) // tests that check what Stop returns call it themselves
	})
	return server
}

func end(t *testing.T, server *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, server.Stop(ctx))
}

func run(t *testing.T, server *Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func query(t *testing.T, server *Server, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	var answer string
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&answer))
	return answer
}

// tempDir is like t.TempDir, but other users can reach it, and it is in memory if
// possible.
func tempDir(t *testing.T) string {
	t.Helper()
	base := "/dev/shm"
	if _, err := os.Stat(base); err != nil {
		base = "/tmp"
	}
	parent, err := os.MkdirTemp(base, "holdfast-embedded-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(parent)) })
	require.NoError(t, os.Chmod(parent, 0o755))
	dir := filepath.Join(parent, "home")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

func serverPid(t *testing.T, dir string) int {
	t.Helper()
	state, ok := readPidFile(home{dir: dir})
	require.True(t, ok)
	return state.pid
}

const ownerModeEnv = "HOLDFAST_EMBEDDED_TEST_OWNER"

// ownServerUntilKilled is what the test binary does as a child of
// TestTheServerEndsWithItsOwner.
func ownServerUntilKilled(dir string) {
	if _, err := Start(context.Background(), Config{DataDir: dir}); err != nil {
		_, _ = os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("started")
	_ = os.Stdout.Close()
	select {}
}

func TestTheServerEndsWithItsOwner(t *testing.T) {
	dir := tempDir(t)
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), ownerModeEnv+"="+dir)
	said, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	line := make([]byte, 1000)
	n, err := said.Read(line)
	require.NoError(t, err)
	require.Equal(t, "started", string(line[:n]))
	orphan := serverPid(t, dir)

	require.NoError(t, owner.Process.Kill())
	_ = owner.Wait() // killed

	// Immediately, while the old server may not have noticed yet.
	log := &logged{}
	server := begin(t, Config{DataDir: dir, Log: log.logger()})
	require.False(t, runsIn(filepath.Join(dir, "data"), orphan))
	require.NotNil(t, server.Done(), "a server of its own")
	require.Equal(t, "1", query(t, server, "select '1'"))
	require.NotContains(t, log.text(), "not properly shut down")
	require.Contains(t, log.text(), "ready to accept connections")
}

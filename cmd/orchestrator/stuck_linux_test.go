package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/store/embedded"
)

// endsSoonWithin is how soon the program ends after two signals, even on a slow machine.
// A program that waits for its database takes longer.
const endsSoonWithin = stopDatabaseWithin * 3 / 4

// A statement is under way, and nobody answers who is asked to cancel it.
func TestASecondSignalDoesNotWaitForAStuckDatabase(t *testing.T) {
	dir := reachableDir(t)
	server, err := embedded.Start(t.Context(), embedded.Config{DataDir: dir, Ephemeral: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop(context.WithoutCancel(t.Context())) }) // it has been killed
	s := serveWith(t, t.TempDir(), assemble, []string{"HOLDFAST_DATABASE__URL=" + server.URL()})
	s.log.await(t, "listening")
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), "begin; lock table jobs")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		var waits bool
		err := conn.QueryRow(t.Context(), "select exists (select from pg_locks where relation = 'jobs'::regclass and not granted)").Scan(&waits)
		return err == nil && waits
	}, longWait, 5*time.Millisecond, "no statement waits for the table")
	freeze(t, dir)
	s.tellTwice(t)
}

func TestASecondSignalDoesNotWaitForAStuckEmbeddedPostgreSQL(t *testing.T) {
	dir := reachableDir(t)
	s := serveWith(t, t.TempDir(), assemble, []string{"HOLDFAST_EMBEDDED__DATA_DIR=" + dir})
	s.log.await(t, "listening")
	freeze(t, dir)
	s.tellTwice(t)
	require.Eventually(t, func() bool { return len(serversOf(t, dir)) == 0 }, longWait, 5*time.Millisecond, "its processes end, too")
}

func TestASecondSignalDuringTheStartDoesNotWaitForAStuckEmbeddedPostgreSQL(t *testing.T) {
	dir := reachableDir(t)
	assembling := make(chan struct{})
	s := serveWith(t, t.TempDir(), func(ctx context.Context, _ config.Config, _ config.DatabaseURL, _ []string, _ *slog.Logger) (*assembly, error) {
		close(assembling)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}, []string{"HOLDFAST_EMBEDDED__DATA_DIR=" + dir})
	select {
	case <-assembling:
	case code := <-s.code:
		t.Fatalf("the program ended with %d:\n%s", code, s.log)
	}
	freeze(t, dir)
	signalSelf(t, syscall.SIGTERM)
	s.log.await(t, "signal received")
	s.endsSoon(t)
}

// tellTwice sends the signal that drains, and the one that ends the program soon.
func (s *serving) tellTwice(t *testing.T) {
	t.Helper()
	signalSelf(t, syscall.SIGTERM)
	s.log.await(t, "stopping: running jobs may finish; a second signal stops at once")
	s.endsSoon(t)
}

func (s *serving) endsSoon(t *testing.T) {
	t.Helper()
	began := time.Now()
	signalSelf(t, syscall.SIGTERM)
	require.Equal(t, 128+int(syscall.SIGTERM), s.exit(t))
	require.Less(t, time.Since(began), endsSoonWithin, s.log.String())
}

// reachableDir is a directory that PostgreSQL's user can reach, too, when the
// tests run as root.
func reachableDir(t *testing.T) string {
	t.Helper()
	parent, err := os.MkdirTemp("/tmp", "holdfast-serve-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(parent)) })
	require.NoError(t, os.Chmod(parent, 0o755))
	return filepath.Join(parent, "pg")
}

// freeze stops every process of the embedded PostgreSQL where it is, those too
// that are being started.
func freeze(t *testing.T, dir string) {
	t.Helper()
	require.Greater(t, len(serversOf(t, dir)), 1)
	t.Cleanup(func() {
		for _, pid := range serversOf(t, dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	require.Eventually(t, func() bool {
		frozen := true
		for _, pid := range serversOf(t, dir) {
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			if err == nil && !strings.Contains(string(stat), ") T ") {
				frozen = false
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		return frozen
	}, longWait, 5*time.Millisecond, "it does not stop")
}

// serversOf returns the processes of the embedded PostgreSQL: they work in their
// data's directory.
func serversOf(t *testing.T, dir string) []int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	require.NoError(t, err)
	var pids []int
	for _, link := range links {
		if place, err := os.Readlink(link); err == nil && place == filepath.Join(dir, "data") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			require.NoError(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

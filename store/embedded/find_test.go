package embedded

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// logged collects what is logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// binaries makes a directory with a postgres that reports this version.
func binaries(t *testing.T, version string) string {
	t.Helper()
	dir := filepath.Join(tempDir(t), "bin")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	script := []byte("#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n")
	for _, name := range []string{"initdb", "postgres"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), script, 0o755))
	}
	return dir
}

// hidePostgres makes this machine look as if PostgreSQL were not installed.
func hidePostgres(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", t.TempDir())
	usual := usualDirectories
	usualDirectories = nil
	t.Cleanup(func() { usualDirectories = usual })
}

func TestMissingBinariesNameTheCommandsThatInstallThem(t *testing.T) {
	hidePostgres(t)
	_, err := Start(t.Context(), Config{DataDir: filepath.Join(tempDir(t), "data")})
	require.ErrorIs(t, err, ErrNoPostgres)
	for _, command := range []string{
		"apt-get install -y postgresql", "dnf install -y postgresql-server", "brew install postgresql", "Docker",
	} {
		require.ErrorContains(t, err, command)
	}
}

func TestAConfiguredDirectoryIsTheOnlyOneSearched(t *testing.T) {
	empty := tempDir(t)
	_, err := Start(t.Context(), Config{DataDir: tempDir(t), BinDir: empty})
	require.ErrorIs(t, err, ErrNoPostgres)
	require.ErrorContains(t, err, empty)
}

func TestAnOldPostgresIsRefused(t *testing.T) {
	bin := binaries(t, "13.4 (Debian 13.4-1)")
	_, err := Start(t.Context(), Config{DataDir: tempDir(t), BinDir: bin})
	require.ErrorIs(t, err, ErrNoPostgres)
	require.ErrorContains(t, err, bin+" has version 13")
}

func TestDataOfAnotherVersionIsRefused(t *testing.T) {
	dir := tempDir(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("9\n"), 0o600))
	_, err := Start(t.Context(), Config{DataDir: dir})
	require.ErrorContains(t, err, "made by PostgreSQL 9")
}

func TestAForeignClusterIsLeftAlone(t *testing.T) {
	dir := tempDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte("15\n"), 0o600))
	_, err := Start(t.Context(), Config{DataDir: dir})
	require.ErrorContains(t, err, "is itself the data directory")
	require.NoDirExists(t, filepath.Join(dir, "data"))
}

func TestVersionsAreRead(t *testing.T) {
	for _, c := range []struct {
		version string
		major   int
	}{
		{"15.13 (Debian 15.13-0+deb12u1)", 15},
		{"17beta2", 17},
		{"18devel", 18},
	} {
		t.Run(c.version, func(t *testing.T) {
			owner, err := accountFor("/nowhere")
			require.NoError(t, err)
			found, err := inspect(t.Context(), binaries(t, c.version), owner)
			require.NoError(t, err)
			require.Equal(t, c.major, found.major)
		})
	}
}

func TestTheNewestVersionComesFirst(t *testing.T) {
	root := t.TempDir()
	for _, version := range []string{"9", "17", "15"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "pg"+version, "bin"), 0o755))
	}
	var order []string
	for _, dir := range newestFirst(filepath.Join(root, "pg*", "bin")) {
		order = append(order, strings.TrimPrefix(filepath.Base(filepath.Dir(dir)), "pg"))
	}
	require.Equal(t, []string{"17", "15", "9"}, order)
}

func TestTheUsualDirectoriesArePatterns(t *testing.T) {
	for _, pattern := range usualDirectories {
		_, err := filepath.Glob(pattern)
		require.NoError(t, err, pattern)
	}
}

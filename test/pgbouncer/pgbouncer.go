// Package pgbouncer puts a PgBouncer between tests and their PostgreSQL, with the
// configuration that docs/how-to/postgresql.md gives.
package pgbouncer

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/loopback"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// patience limits the wait for a start.
const patience = time.Minute

// installed is where scripts/need.sh puts a PgBouncer, the preferred ones first.
var installed = []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/bin/pgbouncer-[0-9]*"}

// find returns a PgBouncer that keeps prepared statements with transaction pooling, which
// came with version 1.21; "" if none is installed.
func find() string {
	var paths []string
	for _, name := range installed {
		if path, err := exec.LookPath(name); err == nil {
			paths = append(paths, path)
		}
		found, _ := filepath.Glob(name)
		paths = append(paths, found...)
	}
	at := slices.IndexFunc(paths, func(path string) bool {
		said, err := exec.Command(path, "--version").Output() //nolint:gosec,noctx // ours, and it answers at once
		version := regexp.MustCompile(`^PgBouncer (\d+)\.(\d+)`).FindSubmatch(said)
		if err != nil || version == nil {
			return false
		}
		major, _ := strconv.Atoi(string(version[1]))
		minor, _ := strconv.Atoi(string(version[2]))
		return major > 1 || minor >= 21
	})
	if at < 0 {
		return ""
	}
	return paths[at]
}

// Start starts a PgBouncer in front of a database, and returns the address of that database
// behind it. It ends with the test. The settings replace those of the documentation. It skips
// the test if there is no PgBouncer, unless HOLDFAST_TEST_POOLER is set.
func Start(t testing.TB, database string, settings map[string]string) string {
	t.Helper()
	path := find()
	if path == "" {
		require.Empty(t, os.Getenv("HOLDFAST_TEST_POOLER"), "PgBouncer 1.21 or newer is not installed")
		t.Skip("PgBouncer 1.21 or newer is not installed: scripts/need.sh pgbouncer-1.21")
	}
	server, err := pgx.ParseConfig(database)
	require.NoError(t, err)
	address, err := loopback.FreeAddress(t.Context())
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)

	all := Documented(t)
	delete(all, "auth_file")
	maps.Copy(all, map[string]string{
		"listen_addr": host, "listen_port": port, "unix_socket_dir": "", "auth_type": "any",
		"log_connections": "0", "log_disconnections": "0", "log_stats": "0", "server_login_retry": "0.2",
	})
	maps.Copy(all, settings)
	ini := fmt.Sprintf("[databases]\n%s = host=%s port=%d dbname=%[1]s user=%[4]s", server.Database, server.Host, server.Port, server.User)
	if server.Password != "" {
		ini += " password=" + server.Password
	}
	ini += "\n[pgbouncer]\n"
	for _, key := range slices.Sorted(maps.Keys(all)) {
		ini += key + " = " + all[key] + "\n"
	}
	dir := t.TempDir()
	for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		require.NoError(t, os.Chmod(up, 0o755)) //nolint:gosec // read by another user
	}
	file := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(file, []byte(ini), 0o644)) //nolint:gosec // read by another user
	cmd := exec.Command(path, file)                            //nolint:gosec,noctx // the cleanup of Beside ends it
	if os.Geteuid() == 0 {                                     // it refuses to run as root
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: ordinary(t, server.Host)}
	}
	rigtest.Beside(t, cmd, syscall.SIGKILL)
	through := url.URL{Scheme: "postgres", User: url.User(server.User), Host: address, Path: server.Database, RawQuery: "sslmode=disable"}
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), through.String())
		return err == nil && conn.Close(t.Context()) == nil
	}, patience, 20*time.Millisecond)
	return through.String()
}

// Documented returns the settings of PgBouncer in docs/how-to/postgresql.md. The tests that
// call it are two folders below the module's.
func Documented(t testing.TB) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/postgresql.md")
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)\n *\[pgbouncer\]\n(.*?)` + "```").FindSubmatch(page)
	require.NotNil(t, section)
	settings := make(map[string]string)
	for line := range strings.Lines(string(section[1])) {
		if key, value, found := strings.Cut(line, "="); found {
			settings[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	require.Contains(t, settings, "pool_mode")
	return settings
}

// ordinary is a user who may connect to the server: the owner of the directory of its socket,
// or one who owns nothing.
func ordinary(t testing.TB, host string) *syscall.Credential {
	t.Helper()
	if info, err := os.Stat(host); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
			return &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
		}
	}
	u, err := user.Lookup("nobody")
	require.NoError(t, err)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	require.NoError(t, err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	require.NoError(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

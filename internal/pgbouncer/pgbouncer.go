// Package pgbouncer puts a PgBouncer with transaction pooling in front of a PostgreSQL, for
// measurements and tests.
package pgbouncer

import (
	"errors"
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

	"github.com/jackc/pgx/v5"
)

// Documented are the settings that docs/how-to/postgresql.md recommends, but for the addresses and
// the authentication.
func Documented() map[string]string {
	return map[string]string{
		"pool_mode": "transaction", "max_prepared_statements": "500", "default_pool_size": "40", "max_client_conn": "1000",
	}
}

// installed is where scripts/need.sh puts a PgBouncer, the preferred ones first.
var installed = []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/bin/pgbouncer-[0-9]*"}

// ErrNone says that Find found none.
var ErrNone = errors.New("PgBouncer 1.21 or newer is not installed")

// Find returns the path of a PgBouncer that keeps prepared statements with transaction pooling,
// which came with version 1.21. The error is ErrNone if none is installed.
func Find() (string, error) {
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
		return "", ErrNone
	}
	return paths[at], nil
}

// Pooler is a PgBouncer that is not running yet.
type Pooler struct {
	// Process is what to start, in a process group of its own. On Linux it dies with the process that
	// starts it. Kill it: signals that ask it to end have another meaning in each version. It says on
	// stderr what is wrong.
	Process *exec.Cmd
	// URL leads to the database through it.
	URL string
}

// New returns the PgBouncer at a path, in front of the database that a URL leads to. It is to listen at
// an address, host:port, and lets everybody on this machine into the database as the user of the URL. The
// settings are added to those of Documented. The directory gets its configuration, which only the user who
// runs it can read.
func New(path, directory, address, database string, settings map[string]string) (*Pooler, error) {
	target, err := pgx.ParseConfig(database)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	all := Documented()
	maps.Copy(all, map[string]string{
		"listen_addr": host, "listen_port": port, "unix_socket_dir": "", "auth_type": "any",
		"log_connections": "0", "log_disconnections": "0", "log_stats": "0", "server_login_retry": "0.2",
	})
	maps.Copy(all, settings)
	ini := fmt.Sprintf("[databases]\n%s = host=%s port=%d dbname=%[1]s user=%[4]s", target.Database, target.Host, target.Port, target.User)
	if target.Password != "" {
		ini += " password='" + strings.ReplaceAll(target.Password, "'", "''") + "'"
	}
	ini += "\n[pgbouncer]\n"
	for _, key := range slices.Sorted(maps.Keys(all)) {
		ini += key + " = " + all[key] + "\n"
	}
	file := filepath.Join(directory, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(ini), 0o600); err != nil {
		return nil, err
	}
	p := &Pooler{Process: exec.Command(path, file)} //nolint:gosec,noctx // the caller ends it
	p.Process.SysProcAttr = attributes()
	through := url.URL{Scheme: "postgres", User: url.User(target.User), Host: address, Path: target.Database, RawQuery: "sslmode=disable"}
	p.URL = through.String()
	if os.Geteuid() != 0 {
		return p, nil
	}
	other, err := ordinary(target.Host) // it refuses to run as root
	if err != nil {
		return nil, err
	}
	p.Process.SysProcAttr.Credential = other
	return p, errors.Join(os.Chown(file, int(other.Uid), int(other.Gid)), os.Chown(directory, int(other.Uid), int(other.Gid)))
}

// ordinary is a user who may connect to the server: the owner of the directory of its socket,
// or one who owns nothing.
func ordinary(host string) (*syscall.Credential, error) {
	if info, err := os.Stat(host); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
			return &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}, nil
		}
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

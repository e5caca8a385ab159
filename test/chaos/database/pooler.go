//go:build linux

package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/test/loopback"
)

// pooler is PgBouncer with session pooling, as docs/how-to/postgresql.md sets it up.
type pooler struct {
	cmd  *exec.Cmd
	done chan struct{}
	url  string
}

// HasPooler reports whether PgBouncer is installed.
func HasPooler() bool { _, err := poolerPath(); return err == nil }

func poolerPath() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/pgbouncer")
}

func startPooler(ctx context.Context, dir, behind string, log *slog.Logger) (*pooler, error) {
	path, err := poolerPath()
	if err != nil {
		return nil, err
	}
	server, err := pgx.ParseConfig(behind)
	if err != nil {
		return nil, err
	}
	address, err := loopback.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(dir, "pooler")
	if err := os.Mkdir(home, 0o755); err != nil {
		return nil, err
	}
	ignored := strings.Join(slices.Sorted(maps.Keys(roleSettings)), ",")
	config := fmt.Sprintf(`[databases]
%[1]s = host=%[2]s port=%[3]d user=%[4]s dbname=%[1]s
[pgbouncer]
listen_addr = %[5]s
listen_port = %[6]s
unix_socket_dir =
auth_type = any
pool_mode = session
max_client_conn = 400
default_pool_size = 150
server_login_retry = 0.2
server_connect_timeout = 5
query_wait_timeout = 5
ignore_startup_parameters = %[7]s
`, server.Database, server.Host, server.Port, server.User, host, port, ignored)
	file := filepath.Join(home, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil { //nolint:gosec // read by another user
		return nil, err
	}
	p := &pooler{cmd: exec.Command(path, file), done: make(chan struct{}), url: "postgres://" + server.User + "@" + address + "/" + server.Database + "?sslmode=disable"} //nolint:noctx // ended by stop
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 { // it refuses to run as root
		if p.cmd.SysProcAttr.Credential, err = ordinary(); err != nil {
			return nil, err
		}
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	for {
		conn, err := pgx.Connect(ctx, p.url)
		if err == nil {
			return p, conn.Close(ctx)
		}
		select {
		case <-p.done:
			return nil, errors.New("PgBouncer ended at once")
		case <-ctx.Done():
			p.stop()
			return nil, err
		case <-time.After(50 * time.Millisecond):
			log.Debug("no pooler yet", "error", err)
		}
	}
}

func (p *pooler) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	_ = p.cmd.Process.Kill()
	<-p.done
}

// ordinary are the credentials of a user that owns nothing.
func ordinary() (*syscall.Credential, error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

//go:build linux

package database

import (
	"bytes"
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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/test/loopback"
)

// pooler is PgBouncer with session pooling, as docs/how-to/postgresql.md sets it up. It is
// started again when it ends, as a service manager would do: version 1.18 sometimes crashes
// when a server is gone.
type pooler struct {
	url string
	// start makes a process that has not begun.
	start func() *exec.Cmd
	log   *slog.Logger
	pid   atomic.Int64
	// end is closed to end it, and done when it has ended.
	end, done chan struct{}
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
log_connections = 0
log_disconnections = 0
log_stats = 0
ignore_startup_parameters = %[7]s
`, server.Database, server.Host, server.Port, server.User, host, port, ignored)
	file := filepath.Join(home, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil { //nolint:gosec // read by another user
		return nil, err
	}
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 { // it refuses to run as root
		if attributes.Credential, err = ordinary(); err != nil {
			return nil, err
		}
	}
	p := &pooler{
		url: "postgres://" + server.User + "@" + address + "/" + server.Database + "?sslmode=disable",
		start: func() *exec.Cmd {
			cmd := exec.Command(path, file) //nolint:noctx // ended by stop
			cmd.SysProcAttr = attributes
			return cmd
		},
		log: log, end: make(chan struct{}), done: make(chan struct{}),
	}
	go p.keep()
	for {
		conn, err := pgx.Connect(ctx, p.url)
		if err == nil {
			return p, conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			p.stop()
			return nil, err
		case <-time.After(50 * time.Millisecond):
			log.Debug("no pooler yet", "error", err)
		}
	}
}

// keep has one process until stop.
func (p *pooler) keep() {
	defer close(p.done)
	for {
		var said bytes.Buffer // connections are not in it
		cmd := p.start()
		cmd.Stderr = &said
		err := cmd.Start()
		if err == nil {
			p.pid.Store(int64(cmd.Process.Pid))
			ended := make(chan struct{})
			go func() {
				select {
				case <-p.end:
					_ = cmd.Process.Signal(syscall.SIGCONT)
					_ = cmd.Process.Kill()
				case <-ended:
				}
			}()
			err = cmd.Wait()
			close(ended)
		}
		select {
		case <-p.end:
			return
		case <-time.After(time.Second):
			p.log.Warn("PgBouncer ended and is started again", "error", err, "said", string(said.Bytes()[max(0, said.Len()-2000):]))
		}
	}
}

// clients counts the connections to the database, which has this name, that the pooler's clients have. As any
// user is let in, any may ask.
func (p *pooler) clients(ctx context.Context) (count int, err error) {
	cfg, err := pgx.ParseConfig(p.url)
	if err != nil {
		return 0, err
	}
	name := cfg.Database
	cfg.Database, cfg.DefaultQueryExecMode = "pgbouncer", pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, "show clients")
	if err != nil {
		return 0, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToMap)
	for _, client := range all {
		if client["database"] == name {
			count++
		}
	}
	return count, err
}

func (p *pooler) stop() {
	close(p.end)
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

//go:build linux

package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/store/embedded"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// stopWithin is how long a fast shutdown may take before it becomes an immediate one.
const stopWithin = 5 * time.Second

// Server is one of the two PostgreSQL servers. Its role changes.
type Server struct {
	// Name stays the same whatever its role.
	Name string

	home     string
	settings map[string]string
	log      *slog.Logger
	running  *embedded.Server
	url      string
}

// URL leads to the database without any proxy. Only superusers of the run use it.
func (s *Server) URL() string { return s.url }

func (s *Server) data() string { return filepath.Join(s.home, "data") }

// Start starts the server, and waits for the end of one that was killed.
func (s *Server) Start(ctx context.Context) error {
	running, err := embedded.Start(ctx, embedded.Config{DataDir: s.home, Settings: s.settings, Log: s.log})
	if err != nil {
		return fmt.Errorf("server %s: %w", s.Name, err)
	}
	s.running, s.url = running, running.URL()
	return nil
}

// Running reports whether the server was started and has not ended.
func (s *Server) Running() bool {
	if s.running == nil {
		return false
	}
	select {
	case <-s.running.Done():
		return false
	default:
		return true
	}
}

// Stop shuts the server down. It is recovered at its next start if that took too long.
func (s *Server) Stop() {
	if s.running == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	_ = s.running.Stop(ctx) // a server that was killed did not end well
	s.running = nil
}

// Kill ends the server with SIGKILL, and then whatever of it remains.
func (s *Server) Kill() error {
	pid, err := s.PID()
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	<-s.running.Done()
	s.Stop()
	return nil
}

// PID is the process id of the postmaster.
func (s *Server) PID() (int, error) {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err == nil && pid <= 1 {
		err = fmt.Errorf("odd pid %d", pid)
	}
	return pid, err
}

// Processes lists the server's processes whose titles begin like that, at most so many;
// for an empty title all of them, the postmaster first.
func (s *Server) Processes(title string, most int) []rig.Process {
	pid, err := s.PID()
	if err != nil {
		return nil
	}
	var found []rig.Process
	if postmaster, err := rig.ProcessOf(pid); err == nil && title == "" {
		found = append(found, postmaster)
	}
	for _, p := range rig.Children(pid) {
		if args := p.Args(); len(found) < most && len(args) > 0 && strings.HasPrefix(args[0], title) {
			found = append(found, p)
		}
	}
	return found
}

// Connect opens a connection past all proxies.
func (s *Server) Connect(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, s.url) }

// Exec runs statements, one after the other, outside of any transaction.
func (s *Server) Exec(ctx context.Context, statements ...string) error {
	conn, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// Await waits until the query returns true.
func (s *Server) Await(ctx context.Context, query string) error {
	last := errors.New("not yet")
	for {
		yes, err := s.ask(ctx, query)
		if yes {
			return nil
		}
		if err != nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server %s: %s: %w (%w)", s.Name, query, ctx.Err(), last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Server) ask(ctx context.Context, query string) (yes bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := s.Connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = conn.QueryRow(ctx, query).Scan(&yes)
	return yes, err
}

// configure adds a line to what ALTER SYSTEM has written. The server must not be running.
func (s *Server) configure(line string) error {
	file, err := os.OpenFile(filepath.Join(s.data(), "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line + "\n")
	return errors.Join(err, file.Close())
}

// tool runs a program of PostgreSQL as the owner of the server's files.
func (s *Server) tool(ctx context.Context, name string, args ...string) error {
	owner, err := os.Stat(s.home)
	if err != nil {
		return err
	}
	path, err := program(name)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = s.home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + s.home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if stat, ok := owner.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, said)
	}
	return nil
}

// program finds a program of PostgreSQL where Debian puts them, or in the PATH.
func program(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("there is no %s", name)
	}
	return found[len(found)-1], nil
}

// Package embedded finds, starts and stops a PostgreSQL server of its own, so
// that the orchestrator runs without any setup. It is a real server from the
// binaries installed on the machine (version 14 or newer), else from a Docker
// image, and the data is as durable as with any other PostgreSQL.
//
// The directory of Config.DataDir, the home, holds everything:
//
//	data/          the cluster, made once by initdb
//	.s.PGSQL.5432  the socket, the only way in (if its path is too long for a
//	               socket, it is in a short directory under /tmp)
//	server.lock    held by the server's processes while one of them lives
//	container/     the cluster instead of data/ if Docker runs it, with its
//	               password; such a home needs Docker from then on
//
// The home belongs to the user that runs the server, and only that user and root
// can enter it. That is why the server trusts every local connection.
//
// After Stop, the cluster is cleanly shut down. If the process that called Start
// dies in any way, the kernel tells the server to shut down (on Linux only), and
// the next Start waits for that. If the machine crashes, the next Start recovers
// from the write-ahead log.
//
// The package starts postgres itself instead of using pg_ctl. pg_ctl would put
// itself between the two processes and exit, which loses the signal at the
// owner's death, the lock that the server inherits, and the pipe for its log.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout limits Start even if its context does not. It leaves time for
	// crash recovery of a full write-ahead log on a slow disk.
	startTimeout = 5 * time.Minute
	// undoStartWithin is how long a fast shutdown may take when Start fails. Nobody has
	// used the server yet.
	undoStartWithin = 2 * time.Second
	// serverLockFD is the descriptor of the lock in all the server's processes:
	// exec gives the first of ExtraFiles this number.
	serverLockFD = 3
)

// Config says which server Start brings up.
type Config struct {
	// DataDir is the server's home; Start creates it. If the caller is root and
	// PostgreSQL's user cannot reach this directory, the data goes below
	// /var/lib/holdfast and DataDir becomes a link to it. Removing the link does
	// not remove the data.
	DataDir string
	// BinDir contains initdb and postgres; empty to search for them.
	BinDir string
	// Ephemeral gives up durability for speed. For tests only.
	Ephemeral bool
	// Settings are further server settings. They override the built-in ones.
	Settings map[string]string
	// Log receives what the server writes; nil discards it.
	Log *slog.Logger
}

// Server is a running PostgreSQL. All methods may be called at any time from
// any goroutine.
type Server struct {
	url string
	// process is nil if another process started the server.
	process *process
	// socketDir is the directory of the socket, if that is not the home.
	socketDir string
	stop      sync.Once
	stopErr   error
	stopped   chan struct{}
}

// Start brings up the server of cfg.DataDir and returns when it answers. A server
// that already runs there is shared: it stays under the control of the process
// that started it, and ends with that process. Concurrent calls for one directory
// are safe. If PostgreSQL is not installed, the error is ErrNoPostgres.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	server, err := start(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return server, nil
}

// URL is the address of the database "holdfast" for its owner.
func (s *Server) URL() string { return s.url }

// Done is closed when the server that this process started has ended, by Stop
// or by accident. It is nil, and so blocks forever, for a shared server.
func (s *Server) Done() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.done
}

// Stop shuts the server down fast: open transactions roll back. When ctx ends, it
// shuts down immediately, which leaves recovery to the next Start. After another
// second it kills what has not ended. On Linux, if it has the privilege, it also
// kills the remaining processes of a server that somebody else has killed. It
// returns when no process of the server is left, except for those that the kernel
// does not end. A container gets ten seconds instead, and keeps running after them.
// Stop does nothing to a shared server. Further calls wait for the first and return
// the same.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() {
		defer close(s.stopped)
		if s.process == nil {
			return
		}
		if err := s.process.end(ctx); err != nil {
			s.stopErr = fmt.Errorf("stop PostgreSQL: %w", err)
		}
		if s.socketDir != "" {
			_ = os.Remove(s.socketDir) // only when empty; the next Start makes it again
		}
	})
	<-s.stopped
	return s.stopErr
}

func start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.DataDir == "" {
		return nil, errors.New("no data directory given")
	}
	home, err := locate(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	if home.hasContainer() {
		return startContainer(ctx, home, cfg)
	}
	installed, err := find(ctx, cfg.BinDir, home)
	if errors.Is(err, ErrNoPostgres) && cfg.BinDir == "" && !home.hasCluster() && dockerAnswers(ctx) {
		return startContainer(ctx, home, cfg)
	}
	if err != nil {
		return nil, err
	}
	if home, err = home.prepare(ctx, installed); err != nil {
		return nil, err
	}
	if home.dir != home.wanted {
		cfg.Log.Info("the data directory leads to where PostgreSQL's user can reach it",
			"data_dir", home.wanted, "place", home.dir, "user", home.owner.name)
	}
	unlock, err := home.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()

	running, serverLock, err := findRunning(ctx, home)
	if err != nil {
		return nil, err
	}
	if running != "" {
		cfg.Log.Info("sharing the PostgreSQL that runs already", "data_dir", home.dir)
		return newServer(running, nil), nil
	}
	defer func() { _ = serverLock.Close() }() // the server has inherited it by then
	if err := home.initialize(ctx, installed, cfg.Ephemeral); err != nil {
		return nil, err
	}
	return launchServer(ctx, home, installed, serverLock, cfg)
}

func newServer(url string, p *process) *Server {
	return &Server{url: url, process: p, stopped: make(chan struct{})}
}

// launchServer starts postgres in a home that is locked, initialized and has no
// server, and hands it the lock.
func launchServer(ctx context.Context, home home, installed installation, lock *os.File, cfg Config) (*Server, error) {
	socketDir, err := home.socketDir()
	if err != nil {
		return nil, err
	}
	machine := thisMachine(home.dir).settings()
	if installed.hasLZ4(ctx, home) {
		machine["wal_compression"] = "lz4"
	}
	args := append([]string{"-D", home.data()}, arguments(cfg, machine, map[string]string{
		"listen_addresses":        "",
		"port":                    socketPort,
		"unix_socket_directories": socketDir,
	})...)
	cmd := childOf(context.Background(), home, filepath.Join(installed.dir, "postgres"), args, syscall.SIGINT)
	cmd.ExtraFiles = []*os.File{lock}
	p, err := launch(cmd, killAfter, cfg.Log)
	if err != nil {
		return nil, err
	}
	p.home = &home
	err = await(ctx, p, 5*time.Millisecond, func() error {
		if state, ok := readPidFile(home); !ok || state.pid != p.pid || !state.ready {
			return errors.New("the server is not ready")
		}
		return nil
	})
	if err == nil {
		err = ensureDatabase(ctx, socketDir)
	}
	if err != nil {
		return nil, errors.Join(err, p.undo(ctx, undoStartWithin))
	}
	server := newServer(socketURL(socketDir, databaseName), p)
	if socketDir != home.dir {
		server.socketDir = socketDir
	}
	return server, nil
}

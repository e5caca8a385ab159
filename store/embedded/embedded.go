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
	// startTimeout bounds Start also when its context does not. It leaves
	// room for crash recovery of a full write-ahead log on a slow disk.
	startTimeout = 5 * time.Minute
	// killAfter is how long an immediate shutdown may take. A server that is
	// stuck is killed then: it has as much to recover after the one as after
	// the other.
	killAfter = time.Second
	// undoStartWithin is how long a fast shutdown may take when Start fails.
	// Nobody has used the server yet.
	undoStartWithin = 2 * time.Second
	// orphansEndWithin is how long what a dead server has left may take to end
	// when it is killed.
	orphansEndWithin = 500 * time.Millisecond
	// serverLockFD is the number of the lock in all the server's processes, the
	// one that exec gives to the first of ExtraFiles.
	serverLockFD = 3
)

// Config says which server Start brings up.
type Config struct {
	// DataDir is the server's home; it is created when missing. Where
	// PostgreSQL must not run as the caller (root) and its user cannot reach
	// this place, the data goes below /var/lib/holdfast and DataDir becomes a
	// link to it. Removing the link does not remove the data.
	DataDir string
	// BinDir is where initdb and postgres are; empty to search.
	BinDir string
	// Ephemeral gives up durability for speed. For tests only.
	Ephemeral bool
	// Settings are further server settings, which win over the built-in ones.
	Settings map[string]string
	// Log receives what the server writes; nil discards it.
	Log *slog.Logger
}

// Server is a running PostgreSQL. All methods may be called at any time from
// any goroutine.
type Server struct {
	url string
	// process is nil when another process started the server.
	process *process
	// socketDir is where the socket is, if that is not in the home.
	socketDir string
	stop      sync.Once
	stopErr   error
	stopped   chan struct{}
}

// Start brings up the server of cfg.DataDir and returns when it answers. A
// server that runs there already is shared: it stays under the control of the
// process that started it, and ends with that. Concurrent calls on one
// directory are safe. It fails with ErrNoPostgres where none is installed.
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
// or by accident. It is nil, and so blocks for ever, for a shared server.
func (s *Server) Done() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.done
}

// Stop shuts the server down: fast (open transactions roll back) and, when
// ctx ends first, at once, which leaves recovery to the next Start. What has not
// ended a second later is killed, and on Linux, where it may look into them, also
// the processes that are left of a server which somebody else has killed. It returns
// when no server process is left, but for those that the kernel does not let go; one
// in a container gets ten seconds, and lives on after them. A shared server is left
// alone. Further calls wait for the first and return the same.
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
	if err := home.initialise(ctx, installed, cfg.Ephemeral); err != nil {
		return nil, err
	}
	return launchServer(ctx, home, installed, serverLock, cfg)
}

func newServer(url string, p *process) *Server {
	return &Server{url: url, process: p, stopped: make(chan struct{})}
}

// launchServer starts postgres on a home that is locked, initialised and has
// no server, and hands it the lock.
func launchServer(ctx context.Context, home home, installed installation, lock *os.File, cfg Config) (*Server, error) {
	socketDir, err := home.socketDir()
	if err != nil {
		return nil, err
	}
	fitted := thisMachine(home.dir).settings()
	if installed.hasLZ4(ctx, home) {
		fitted["wal_compression"] = "lz4"
	}
	args := append([]string{"-D", home.data()}, arguments(cfg, fitted, map[string]string{
		"listen_addresses":        "",
		"port":                    socketPort,
		"unix_socket_directories": socketDir,
	})...)
	cmd := childOf(home, filepath.Join(installed.dir, "postgres"), args, syscall.SIGINT)
	cmd.ExtraFiles = []*os.File{lock}
	p, err := launch(cmd, killAfter, cfg.Log)
	if err != nil {
		return nil, err
	}
	p.home = &home
	url := socketURL(socketDir, databaseName)
	err = p.awaitReady(ctx, home)
	if err == nil {
		err = ensureDatabase(ctx, socketDir)
	}
	if err != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoStartWithin)
		defer cancel()
		return nil, errors.Join(err, p.end(stopCtx))
	}
	server := newServer(url, p)
	if socketDir != home.dir {
		server.socketDir = socketDir
	}
	return server, nil
}

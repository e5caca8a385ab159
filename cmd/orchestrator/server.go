package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
)

const (
	// finishRequestsWithin is how long requests under way get when the
	// program stops: a client that dribbles must not hold up the drain.
	finishRequestsWithin = 5 * time.Second
	// headerSlack is how many times larger than allowed a header may be for
	// its client to be told so by the API, rather than by net/http.
	headerSlack = 8
	// giveUpWithin is how long the worker gets to let go of everything when it
	// is to stop at once.
	giveUpWithin = time.Second
)

// listen opens the API's port before anything else is started, so that a
// wrong address is found out at once.
func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program; choose another server.address, "+
			"such as --set server.address=127.0.0.1:8081", address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("no permission to listen on %s; choose a server.address with a port above 1023", address)
	case err != nil:
		return nil, fmt.Errorf("server.address: %w", err)
	}
	return listener, nil
}

// reservedFiles are for everything but the API's clients: the database,
// plugins, logs.
const reservedFiles = 256

// limited keeps no more connections at once than are set, or than there are
// files for. Further clients wait until one ends.
func limited(listener net.Listener, cfg config.Server, log *slog.Logger) net.Listener {
	limit := cfg.MaxConnections
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && uint64(files.Cur) < uint64(limit)+reservedFiles {
		limit = max(int(files.Cur)-reservedFiles, 1)
		log.Warn("fewer connections than server.max_connections: the limit of open files is too low (ulimit -n)",
			"connections", limit, "open_files", files.Cur)
	}
	return netutil.LimitListener(listener, limit)
}

func newServer(cfg config.Server, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           api.CloseAfterChunks(api.BoundHeader(cfg.MaxHeaderBytes, handler)),
		ReadHeaderTimeout: cfg.ReadHeaderTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    headerSlack * cfg.MaxHeaderBytes,
		// What net/http has to say is about clients that broke off.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// shutDown lets requests under way finish, for a while.
func shutDown(giveUp context.Context, server *http.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(giveUp, finishRequestsWithin)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.Warn("requests broken off", "error", err)
		_ = server.Close()
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// finishRequestsWithin is how long requests in progress get when the program
	// stops. A slow client must not delay the drain.
	finishRequestsWithin = 5 * time.Second
	// headerSlack is by which factor a header may exceed its limit for the API to
	// answer it; net/http answers larger ones.
	headerSlack = 8
	// giveUpWithin is how long everything gets to end when the program must stop at
	// once.
	giveUpWithin = time.Second
)

// listen opens the API's port. Call it first, so that a wrong address fails at once.
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

// reservedFiles are the open files for everything but the API's clients: the
// database, plugins, logs.
const reservedFiles = 256

// limited bounds connections by the configuration and by the limit of open files.
// Further clients wait until one ends.
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
		// net/http reports clients that disconnected.
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// shutDown waits for requests in progress, for finishRequestsWithin at most.
func shutDown(giveUp context.Context, server *http.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(giveUp, finishRequestsWithin)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.Warn("requests aborted", "error", err)
		_ = server.Close()
	}
}

// greet says where the process listens: to you on a terminal if it serves the API, else in the
// log.
func (p *program) greet(address net.Addr, cfg *config.Security, roles job.Roles, log *slog.Logger) {
	url := "http://" + reachable(address.String())
	if !isTerminal(p.stdout) || !roles.Has(job.RoleAPI) {
		log.Info("listening", "address", address.String(), "url", url, "roles", roles.String())
		return
	}
	_, _ = fmt.Fprintf(p.stdout, `Holdfast listens on %s. Try:
  curl%s %s/jobs -H 'Content-Type: application/json' -d '{"jobType":"SLEEP_JOB","payload":{"sleepSeconds":1}}'
`, url, curlLogin(cfg, isPublic(address)), url)
}

// curlLogin returns the curl options for the credentials that a submission needs. It
// leaves out the password: curl asks for it.
func curlLogin(cfg *config.Security, public bool) string {
	switch {
	case !cfg.Closed(public):
		return ""
	case cfg.Password == "" && public:
		return ` -H "Authorization: Bearer $TOKEN"`
	}
	return " -u " + cfg.User
}

// reachable is the address for clients on this machine.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(strings.Split(host, "%")[0]); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

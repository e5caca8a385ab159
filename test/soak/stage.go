package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/store/embedded"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

const (
	startWithin = 5 * time.Minute
	stopWithin  = 2 * time.Minute
	// kept is how long ended jobs are kept: the shortest time that can be set.
	kept = time.Minute
)

// soak is one run.
type soak struct {
	options
	scratch      string
	server       *embedded.Server
	db           *pgxpool.Pool
	orchestrator *rig.Orchestrator
	log          io.Closer
	load         *load
	began        time.Time
}

// open starts the server and the orchestrator.
func open(ctx context.Context, o options) (s *soak, err error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	s = &soak{options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.scratch, err = os.MkdirTemp("", "holdfast-soak-"); err != nil {
		return s, err
	}
	// PostgreSQL runs as another user if this runs as root.
	if err = os.Chmod(s.scratch, 0o755); err != nil {
		return s, err
	}
	if s.server, err = embedded.Start(ctx, embedded.Config{DataDir: filepath.Join(s.scratch, "postgres")}); err != nil {
		return s, err
	}
	if s.db, err = pgxpool.New(ctx, s.server.URL()); err != nil {
		return s, err
	}
	log, err := os.Create(filepath.Join(o.programs, "orchestrator.log"))
	if err != nil {
		return s, err
	}
	s.log = log
	s.orchestrator, err = rig.New(ctx, filepath.Join(o.programs, "orchestrator"), s.scratch, log, s.settings()...)
	if err != nil {
		return s, err
	}
	if _, err = s.orchestrator.Start(ctx); err != nil {
		return s, fmt.Errorf("%w; its log is %s", err, log.Name())
	}
	return s, s.schedule(ctx)
}

func (s *soak) settings() []string {
	handlers := filepath.Join(s.programs, "handlers")
	keep := kept.String()
	return []string{
		"database.url=" + s.server.URL(), "worker.id=soak", "worker.crash_policy=release", "log.format=json", "log.jobs=none",
		"retention.succeeded=" + keep, "retention.canceled=" + keep, "retention.dead=" + keep, "retention.keys=" + keep, "events.keep=" + keep,
		"jobs.default.retry.initial_delay=200ms", "jobs.default.retry.max_delay=1s",
		"plugins.0.name=work", "plugins.0.path=" + handlers, "plugins.0.env.LEAK=" + s.leak,
		"plugins.1.name=crashing", "plugins.1.path=" + handlers, "plugins.1.env.CRASHING=yes",
	}
}

// schedule makes a job each second.
func (s *soak) schedule(ctx context.Context) error {
	return s.orchestrator.Call(ctx, http.MethodPut, "/schedules/soak", map[string]any{
		"every": "1s", "overlap": "allow", "job": map[string]any{"jobType": tickType, "payload": map[string]any{"plan": "succeed"}},
	}, http.StatusOK, nil)
}

// close ends everything that open has started.
func (s *soak) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	if s.orchestrator != nil && s.orchestrator.Running() {
		err = s.orchestrator.ShutDown(ctx)
		if s.orchestrator.Running() {
			err = errors.Join(err, s.orchestrator.Kill())
		}
	}
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	if s.db != nil {
		s.db.Close()
	}
	if s.server != nil {
		err = errors.Join(err, s.server.Stop(ctx))
	}
	return errors.Join(err, os.RemoveAll(s.scratch))
}

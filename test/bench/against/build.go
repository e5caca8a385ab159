package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// build is a running orchestrator with a database of its own.
type build struct {
	*rig.Orchestrator
	name     string
	log      *os.File
	database *pgx.Conn
}

// start starts the orchestrator in bin, in the new directory home.
func start(ctx context.Context, name, bin, home, server string) (b *build, err error) {
	if bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	database, err := createDatabase(ctx, server, name)
	if err != nil {
		return nil, err
	}
	b = &build{name: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop())
		}
	}()
	if b.log, err = os.Create(filepath.Join(home, "log")); err != nil {
		return nil, err
	}
	o, err := rig.New(ctx, filepath.Join(bin, "orchestrator"), home, b.log,
		"database.url="+database, "jobs.accept_unknown_types=true", "plugins.0.name=echo", "plugins.0.path="+filepath.Join(bin, "echo"))
	if err != nil {
		return nil, err
	}
	b.Orchestrator = o
	if _, err := o.Start(ctx); err != nil {
		return nil, err
	}
	b.database, err = pgx.Connect(ctx, database)
	return b, err
}

func createDatabase(ctx context.Context, server, name string) (string, error) {
	admin, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	_, err = admin.Exec(ctx, "create database "+name)
	if err = errors.Join(err, admin.Close(ctx)); err != nil {
		return "", err
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

const stopWithin = 30 * time.Second

func (b *build) stop() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	if b.database != nil {
		err = b.database.Close(ctx)
	}
	if b.Orchestrator != nil && b.Running() {
		err = errors.Join(err, b.ShutDown(ctx))
	}
	if b.log != nil {
		err = errors.Join(err, b.log.Close())
	}
	return err
}

// reading is what a build has used since it started.
type reading struct {
	orchestrator time.Duration
	// postgres is the time of each server process of its connections, by pid.
	postgres map[int]time.Duration
	wal      int64
}

// used reads what the processes of the build have used. The time of the orchestrator, with its
// handlers, comes in units of 10 ms, and that of PostgreSQL in nanoseconds (/proc/PID/schedstat).
func (b *build) used(ctx context.Context) (reading, error) {
	r := reading{postgres: make(map[int]time.Duration)}
	pids := []int{b.PID()}
	for _, handler := range rig.Descendants(b.PID()) {
		pids = append(pids, handler.PID)
	}
	for _, pid := range pids {
		process, err := procfs.NewProc(pid)
		if err != nil {
			return r, err
		}
		stat, err := process.Stat()
		if err != nil {
			return r, err
		}
		r.orchestrator += time.Duration(stat.CPUTime() * float64(time.Second))
	}
	rows, err := b.database.Query(ctx, "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
	if err != nil {
		return r, err
	}
	backends, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return r, err
	}
	for _, pid := range backends {
		if process, err := procfs.NewProc(pid); err == nil { // else its connection was just closed
			if spent, err := process.Schedstat(); err == nil {
				r.postgres[pid] = time.Duration(spent.RunningNanoseconds)
			}
		}
	}
	if err := b.database.QueryRow(ctx, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&r.wal); err != nil {
		return r, fmt.Errorf("position in the WAL: %w", err)
	}
	return r, nil
}

// since returns what was used since another reading, for that many jobs.
func (r reading) since(before reading, jobs int) usage {
	u := usage{jobs: jobs, handled: r.orchestrator - before.orchestrator, wal: r.wal - before.wal}
	for pid, now := range r.postgres {
		u.stored += now - before.postgres[pid]
	}
	return u
}

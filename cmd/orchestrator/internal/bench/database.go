package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // for the migrations
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-jobs/holdfast/migrations"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
)

// cluster is the PostgreSQL server on which each run has a database.
type cluster struct {
	url *url.URL
	// postmaster is the server's first process; 0 if it is not on this machine.
	postmaster int
	version    string
	settings   map[string]string
}

// reported are the settings of the server that affect the figures most.
var reported = []string{
	"fsync", "synchronous_commit", "full_page_writes", "wal_compression", "shared_buffers",
	"max_wal_size", "checkpoint_timeout", "autovacuum_naptime",
}

func openCluster(ctx context.Context, address string) (*cluster, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return nil, errors.New("write the URL of the database as postgres://…")
	}
	c := &cluster{url: parsed, settings: map[string]string{}}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, _ := conn.Query(ctx, "select name, current_setting(name) from unnest($1::text[]) name", reported)
	var name, value string
	if _, err := pgx.ForEachRow(rows, []any{&name, &value}, func() error { c.settings[name] = value; return nil }); err != nil {
		return nil, err
	}
	var backend int
	err = conn.QueryRow(ctx, "select pg_backend_pid(), current_setting('server_version')").Scan(&backend, &c.version)
	if err != nil {
		return nil, err
	}
	// On a local address, the process with that id is the backend.
	if host := conn.Config().Host; host == "localhost" || host == "127.0.0.1" || host == "::1" || host[0] == '/' {
		c.postmaster, _ = parentOf(backend)
	}
	return c, nil
}

// database is the database of one run.
type database struct {
	*cluster
	name, address string
	// watcher is the bench's own connection.
	watcher *pgx.Conn
	ledger  *store.Store
}

// create creates a database with an empty ledger.
func (c *cluster) create(ctx context.Context) (*database, error) {
	d := &database{cluster: c, name: "holdfast_bench_" + time.Now().UTC().Format("20060102_150405_000000")}
	if err := c.execute(ctx, "create database "+d.name); err != nil {
		return nil, err
	}
	d.address = c.addressOf(d.name)
	if err := d.open(ctx); err != nil {
		_ = d.drop(ctx)
		return nil, err
	}
	return d, nil
}

// addressOf is the URL of another database on the server.
func (c *cluster) addressOf(name string) string {
	address, query := *c.url, c.url.Query()
	// These would override the path.
	query.Del("dbname")
	query.Del("database")
	address.Path, address.RawQuery = "/"+name, query.Encode()
	return address.String()
}

func (c *cluster) execute(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, c.url.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

func (d *database) open(ctx context.Context) error {
	db, err := sql.Open("pgx", d.address)
	if err != nil {
		return err
	}
	_, err = migrations.Up(ctx, db)
	_ = db.Close()
	if err != nil {
		return err
	}
	if d.watcher, err = pgx.Connect(ctx, d.address); err != nil {
		return err
	}
	d.ledger, err = store.Open(ctx, store.Config{URL: d.address, MaxConnections: 4})
	return err
}

func (d *database) drop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if d.ledger != nil {
		d.ledger.Close()
	}
	if d.watcher != nil {
		_ = d.watcher.Close(ctx)
	}
	return d.execute(ctx, "drop database "+d.name+" with (force)")
}

const (
	fillBatch   = 5000
	fillWriters = 2
)

// fill stores jobs without the API. describe returns the job with a number, from 0,
// without its id, attempts and timeout.
func (d *database) fill(ctx context.Context, jobs int, describe func(int) job.Submission, progress func(done int)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fillWriters)
	var done atomic.Int64
	for begin := 0; begin < jobs && ctx.Err() == nil; begin += fillBatch {
		batch := make([]job.Submission, min(fillBatch, jobs-begin))
		for i := range batch {
			batch[i] = describe(begin + i)
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			batch[i].ID, batch[i].MaxAttempts, batch[i].Timeout = job.ID(id), 4, time.Hour
		}
		group.Go(func() error {
			results, err := d.ledger.SubmitAll(ctx, batch)
			if err != nil {
				return err
			}
			for _, result := range results {
				if result.Err != nil {
					return result.Err
				}
			}
			progress(int(done.Add(int64(len(batch)))))
			return nil
		})
	}
	return group.Wait()
}

// rest brings the server into a known state. Without analyze the planner has no
// statistics, as on the first day.
func (d *database) rest(ctx context.Context, analyze bool) error {
	statements := []string{"vacuum analyze", "checkpoint"}
	if !analyze {
		statements = statements[1:]
	}
	for _, statement := range statements {
		if _, err := d.watcher.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// ended counts the jobs that have ended. It reads no ledger row.
func (d *database) ended(ctx context.Context) (jobs int, err error) {
	err = d.watcher.QueryRow(ctx, `
		select coalesce(sum(jobs), 0)::bigint
		from (
			select event, jobs from tallies
			union all
			select event, jobs from tally_totals
		) t
		where event in ('succeeded', 'dead', 'canceled')`).Scan(&jobs)
	return jobs, err
}

// lastEnd is when the last job was settled, by the database's clock.
func (d *database) lastEnd(ctx context.Context) (at time.Time, err error) {
	err = d.watcher.QueryRow(ctx, "select max(finished_at) from jobs").Scan(&at)
	return at, err
}

// check returns an error unless every job of the run succeeded at the first attempt.
func (d *database) check(ctx context.Context, jobs int) error {
	var succeeded, attempts int
	err := d.watcher.QueryRow(ctx, `
		select count(*) filter (where state = 'succeeded'), coalesce(sum(fence), 0)::bigint
		from jobs`).Scan(&succeeded, &attempts)
	if err != nil {
		return err
	}
	if succeeded != jobs || attempts != jobs {
		return fmt.Errorf("of %d jobs %d succeeded, with %d attempts", jobs, succeeded, attempts)
	}
	return nil
}

// written is the size of what the server has written to its log so far, in bytes.
func (d *database) written(ctx context.Context) (bytes int64, err error) {
	err = d.watcher.QueryRow(ctx, "select (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&bytes)
	return bytes, err
}

// left returns the dead tuples and the size of all tables.
func (d *database) left(ctx context.Context) (deadTuples, bytes int64, err error) {
	err = d.watcher.QueryRow(ctx, `
		select coalesce(sum(n_dead_tup), 0)::bigint, coalesce(sum(pg_total_relation_size(relid)), 0)::bigint
		from pg_stat_user_tables`).Scan(&deadTuples, &bytes)
	return deadTuples, bytes, err
}

// endsOf returns how long after their due times the jobs were settled, sorted.
func (d *database) endsOf(ctx context.Context, due map[string]time.Time) ([]time.Duration, error) {
	ids := slices.Collect(maps.Keys(due))
	rows, err := d.watcher.Query(ctx, "select job_id::text, finished_at from jobs where job_id = any ($1::uuid[])", ids)
	if err != nil {
		return nil, err
	}
	took := make([]time.Duration, 0, len(ids))
	var id string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		took = append(took, at.Sub(due[id]))
		return nil
	})
	slices.Sort(took)
	return took, err
}

// tenths returns the rates at which the first and the last tenth of the jobs were
// settled, or zeros if that took no time.
func (d *database) tenths(ctx context.Context) (first, last float64, err error) {
	err = d.watcher.QueryRow(ctx, `
		with tenths as (
			select ntile(10) over (order by finished_at) as tenth, finished_at from jobs
		), rates as (
			select tenth, count(*) / nullif(extract(epoch from max(finished_at) - min(finished_at)), 0) as rate
			from tenths
			where tenth in (1, 10)
			group by tenth
		)
		select coalesce(min(rate) filter (where tenth = 1), 0)::double precision,
			coalesce(min(rate) filter (where tenth = 10), 0)::double precision
		from rates`).Scan(&first, &last)
	return first, last, err
}

// pin holds a snapshot until the caller calls release.
func (d *database) pin(ctx context.Context) (release func(), err error) {
	conn, err := pgx.Connect(ctx, d.address)
	if err != nil {
		return nil, err
	}
	release = func() { _ = conn.Close(context.WithoutCancel(ctx)) }
	// The first statement that reads takes the snapshot.
	for _, statement := range []string{"begin isolation level repeatable read", "select count(*) from workers"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

// awaitLeases waits until so many jobs run.
func (d *database) awaitLeases(ctx context.Context, jobs int) error {
	for {
		var running int
		err := d.watcher.QueryRow(ctx, "select count(*) from leases").Scan(&running)
		if err != nil || running >= jobs {
			return err
		}
		select {
		case <-time.After(glance):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

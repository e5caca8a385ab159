package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/store/sql"
)

// watched is what happened in a time.
type watched struct {
	processorTimes
	took    time.Duration
	written int64
	all     statement
	by      map[string]statement
}

// processorTimes are those of the server, of all orchestrators, and of PgBouncer.
type processorTimes struct{ postgres, orchestrators, pooler time.Duration }

// timesOf reads what was used so far.
func (r *run) timesOf(fleet started) (used processorTimes, err error) {
	server, err := usageOf(r.db.postmaster)
	if err != nil {
		return used, err
	}
	used.postgres = server.own + server.below
	for _, s := range fleet.servers {
		one, err := usageOf(s.pid())
		if err != nil {
			return used, err
		}
		used.orchestrators += one.own
	}
	used.pooler, err = fleet.pooler.used()
	return used, err
}

// statement is what pg_stat_statements has of a statement.
type statement struct{ calls, microseconds float64 }

func (w watched) of(name string) statement { return w.by[name] }

func (w watched) each(calls float64) float64 { return calls / w.took.Seconds() }

func (w watched) ofACore(used time.Duration) float64 { return 100 * used.Seconds() / w.took.Seconds() }

// watch measures while do works. It asks the database nothing meanwhile.
func (r *run) watch(ctx context.Context, fleet started, do func() error, record func(watched)) (w watched, err error) {
	if err := r.db.forgetStatements(ctx); err != nil {
		return w, err
	}
	written, err := r.db.written(ctx)
	if err != nil {
		return w, err
	}
	before, err := r.timesOf(fleet)
	if err != nil {
		return w, fmt.Errorf("processor time of what is measured: %w", err)
	}
	began := time.Now()
	if err := do(); err != nil {
		return w, err
	}
	after, err := r.timesOf(fleet)
	if err != nil {
		return w, err
	}
	w.took = time.Since(began)
	w.processorTimes = processorTimes{
		after.postgres - before.postgres, after.orchestrators - before.orchestrators, after.pooler - before.pooler,
	}
	now, err := r.db.written(ctx)
	if err != nil {
		return w, err
	}
	w.written = now - written
	if w.all, w.by, err = r.db.statements(ctx, "claim", "shares", "look_behind", "renew", "send_hint"); err != nil {
		return w, err
	}
	record(w)
	return w, nil
}

// countStatements has the server count statements. The view has those of all databases.
func (d *database) countStatements(ctx context.Context) error {
	if _, err := d.watcher.Exec(ctx, "create extension if not exists pg_stat_statements"); err != nil {
		return fmt.Errorf("the scenario %s reads pg_stat_statements; have the server load it with shared_preload_libraries: %w", FleetScenario, err)
	}
	return d.forgetStatements(ctx)
}

func (d *database) forgetStatements(ctx context.Context) error {
	_, err := d.watcher.Exec(ctx, "select pg_stat_statements_reset()")
	return err
}

// statements returns what all statements in the database have cost since the last
// forgetStatements, and those of the store with the names.
func (d *database) statements(ctx context.Context, names ...string) (all statement, by map[string]statement, err error) {
	const sum = `
		select coalesce(sum(calls), 0)::double precision, coalesce(sum(total_exec_time) * 1000, 0)::double precision
		from pg_stat_statements
		where dbid = (select oid from pg_database where datname = current_database()) and starts_with(query, $1)`
	if err := d.watcher.QueryRow(ctx, sum, "").Scan(&all.calls, &all.microseconds); err != nil {
		return all, nil, err
	}
	by = make(map[string]statement)
	for _, name := range names {
		// The server replaces constants in the text, but not in its first line, a comment.
		first, _, _ := strings.Cut(sql.Text(name), "\n")
		var one statement
		if err := d.watcher.QueryRow(ctx, sum, first).Scan(&one.calls, &one.microseconds); err != nil {
			return all, nil, err
		}
		by[name] = one
	}
	return all, by, nil
}

// connections counts those of orchestrators and of the bench's own ledger.
func (d *database) connections(ctx context.Context) (count int, err error) {
	err = d.watcher.QueryRow(ctx, `
		select count(*) from pg_stat_activity
		where datname = current_database() and application_name like 'holdfast%'`).Scan(&count)
	return count, err
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// FleetScenario is the name of the scenario that Fleet describes. It reads pg_stat_statements.
const FleetScenario = "fleet"

// Fleet says which orchestrators the scenario fleet starts.
type Fleet struct {
	// Sizes are how many there are, one number after the other.
	Sizes []int
	// Types is how many job types each of them serves, and Plugins in how many processes.
	Types, Plugins int
}

// Validate returns an error that says what would be right.
func (f Fleet) Validate() error {
	switch {
	case len(f.Sizes) == 0 || slices.Min(f.Sizes) < 1:
		return errors.New("--orchestrators: each number must be at least 1")
	case f.Types < 1 || f.Plugins < 1 || f.Plugins > f.Types:
		return errors.New("--types and --plugins must be at least 1, and --plugins at most --types")
	}
	return nil
}

// FleetSettings are what the server needs for the scenario.
func FleetSettings() map[string]string {
	return map[string]string{"shared_preload_libraries": "pg_stat_statements", "max_connections": "1000"}
}

const (
	// startAtOnce is how many orchestrators are starting at a time.
	startAtOnce = 4
	// settleFor is how long a fleet is left alone before it is measured. Orchestrators know
	// after 20 seconds how many they are. But fifty of them have hundreds of sessions, and each
	// session must parse and plan every statement that it runs for the first time.
	settleFor = 3 * time.Minute
	// quietFor is how long it is measured without any job.
	quietFor = 25 * time.Second
	// The two loads: jobs one by one, and in batches.
	trickleRate, trickleFor = 100.0, 8 * time.Second
	fleetBatch              = 100
	batchesPerSecond        = 20.0
	// fleetConnections is database.max_connections of each orchestrator: with the default, 50
	// of them may want more than 1,000 connections.
	fleetConnections = 8
)

// fleet records what orchestrators cost each other, for each size.
func fleet(ctx context.Context, r *run, jobs int) error {
	for i, size := range r.lab.Fleet.Sizes {
		if i > 0 {
			if err := r.renew(ctx); err != nil {
				return err
			}
		}
		if err := r.fleetOf(ctx, size, jobs); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) fleetOf(ctx context.Context, size, jobs int) (err error) {
	name := fmt.Sprintf("%d × %d types", size, r.lab.Fleet.Types)
	if err := r.db.countStatements(ctx); err != nil {
		return err
	}
	own, err := r.db.connections(ctx)
	if err != nil {
		return err
	}
	r.lab.say(fmt.Sprintf("starting %d orchestrators", size))
	servers, err := r.launchAll(ctx, size)
	defer func() { err = errors.Join(err, stopAll(servers)) }()
	if err != nil {
		return err
	}
	if err := r.warm(ctx, servers); err != nil {
		return err
	}
	r.lab.say(name + ", settling")
	if err := pause(ctx, settleFor); err != nil {
		return err
	}
	r.lab.say(name + ", idle")
	_, err = r.watch(ctx, servers, func() error { return pause(ctx, quietFor) }, func(w watched) {
		r.record(name, "idle: PostgreSQL", "% of a core", w.ofACore(w.postgres))
		r.record(name, "idle: an orchestrator", "% of a core", w.ofACore(w.orchestrators)/float64(size))
		r.record(name, "idle: statements", "/s", w.each(w.all.calls))
		r.record(name, "idle: claims", "/s", w.each(w.of("claim").calls))
		r.record(name, "idle: heartbeats", "/s", w.each(w.of("renew").calls))
		r.record(name, "idle: NOTIFY", "/s", w.each(w.of("send_hint").calls))
		r.record(name, "idle: WAL", "kB/s", float64(w.written)/1000/w.took.Seconds())
	})
	if err != nil {
		return err
	}
	total := len(servers) // those that warm has submitted
	singles, err := r.offer(ctx, name+", one by one", servers, total, int(trickleRate*trickleFor.Seconds()), 1, trickleRate)
	if err != nil {
		return err
	}
	total += singles
	batched, err := r.offer(ctx, fmt.Sprintf("%s, %d a batch", name, fleetBatch), servers, total, jobs/fleetBatch, fleetBatch, batchesPerSecond)
	if err != nil {
		return err
	}
	total += batched
	connections, err := r.db.connections(ctx)
	if err != nil {
		return err
	}
	r.record(name, "connections after that", "", float64(connections-own))
	return r.db.check(ctx, total)
}

// launchAll starts orchestrators. After an error it returns those that it has started.
func (r *run) launchAll(ctx context.Context, size int) ([]*server, error) {
	f := r.lab.Fleet
	plugins := make([]handlers, f.Plugins)
	for i := range plugins {
		plugins[i].types = fmt.Sprintf(typesFormat, i*f.Types/f.Plugins, (i+1)*f.Types/f.Plugins)
	}
	var mu sync.Mutex
	var servers []*server
	var starting errgroup.Group
	starting.SetLimit(startAtOnce)
	for i := range size {
		starting.Go(func() error {
			server, err := r.launch(ctx, plugins, fmt.Sprintf("worker.id=fleet-%02d", i), fmt.Sprintf("database.max_connections=%d", fleetConnections))
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			servers = append(servers, server)
			return nil
		})
	}
	err := starting.Wait()
	return servers, err
}

func stopAll(servers []*server) error {
	var stopping errgroup.Group
	for _, s := range servers {
		stopping.Go(s.stop)
	}
	return stopping.Wait()
}

// warm has each orchestrator take a job, and waits until they have ended.
func (r *run) warm(ctx context.Context, servers []*server) error {
	for i, s := range servers {
		one := crowd{address: s.address, clients: 1, requests: [][]byte{fleetRequest(s.address, r.lab.Fleet, i, 1)}}
		if _, err := one.flatOut(ctx, 1); err != nil {
			return s.failure(err)
		}
	}
	return r.awaitAll(ctx, servers, len(servers))
}

// fleetRequest submits so many jobs, of the type with a number and those that follow it.
func fleetRequest(address string, f Fleet, from, jobs int) []byte {
	body := func(i int) string { return Keys{}.body(typeNumber(i%f.Types), 0) }
	if jobs == 1 {
		return request(address, "POST", "/jobs", "application/json", []byte(body(from)))
	}
	var lines strings.Builder
	for i := range jobs {
		lines.WriteString(body(from+i) + "\n")
	}
	return request(address, "POST", "/jobs/batch", "application/x-ndjson", []byte(lines.String()))
}

// offer submits requests at a rate per second, to all orchestrators in turn, and records what
// claims cost. It returns how many jobs there were.
func (r *run) offer(ctx context.Context, name string, servers []*server, before, requests, perCall int, rate float64) (jobs int, err error) {
	r.lab.say(name)
	if err := r.db.rest(ctx, !r.lab.Fresh); err != nil {
		return 0, err
	}
	var all sent
	w, err := r.watch(ctx, servers, func() error {
		if all, err = r.submitInTurn(ctx, servers, requests, perCall, rate); err != nil {
			return err
		}
		jobs = len(all.took) * perCall
		return r.awaitAll(ctx, servers, before+jobs)
	}, func(watched) {})
	if err != nil {
		return 0, err
	}
	claims, behind := w.of("claim"), w.of("look_behind")
	each := func(microseconds float64) float64 { return microseconds / float64(jobs) }
	r.record(name, "offered", "jobs/s", float64(jobs)/all.elapsed.Seconds())
	r.record(name, "claims and looks", "µs/job", each(claims.microseconds+behind.microseconds))
	r.record(name, "a claim", "µs/call", claims.microseconds/max(claims.calls, 1))
	r.record(name, "claims", "/job", each(claims.calls))
	r.record(name, "PostgreSQL, CPU", "µs/job", each(float64(w.postgres.Microseconds())))
	r.record(name, "NOTIFY", "/s", w.each(w.of("send_hint").calls))
	r.record(name, "sessions that these wake", "/s", w.each(w.of("send_hint").calls)*float64(len(servers)))
	r.record(name, "submitted after p50", "ms", milliseconds(all.latency(0.5)))
	if perCall == 1 {
		done, err := r.db.endsOf(ctx, all.due)
		if err != nil {
			return 0, err
		}
		r.record(name, "done after p50", "ms", milliseconds(percentile(done, 0.5)))
		r.record(name, "done after p99", "ms", milliseconds(percentile(done, 0.99)))
	}
	return jobs, nil
}

// submitInTurn sends requests at a rate, each to the next orchestrator.
func (r *run) submitInTurn(ctx context.Context, servers []*server, requests, perCall int, rate float64) (sent, error) {
	all := sent{due: map[string]time.Time{}}
	var mu sync.Mutex
	began := time.Now()
	submitting, ctx := errgroup.WithContext(ctx)
	for i, s := range servers {
		submitting.Go(func() error {
			caller, err := call(s.address)
			if err != nil {
				return err
			}
			defer caller.close()
			for n := i; n < requests && ctx.Err() == nil; n += len(servers) {
				due := began.Add(time.Duration(float64(n) / rate * float64(time.Second)))
				if err := pause(ctx, time.Until(due)); err != nil {
					return err
				}
				answer, err := caller.do(fleetRequest(s.address, r.lab.Fleet, n, perCall))
				if err != nil {
					return s.failure(err)
				}
				mu.Lock()
				all.took = append(all.took, time.Since(due))
				all.due[jobID(answer)] = due
				mu.Unlock()
			}
			return nil
		})
	}
	err := submitting.Wait()
	all.elapsed = time.Since(began)
	slices.Sort(all.took)
	return all, err
}

// awaitAll waits until so many jobs have ended.
func (r *run) awaitAll(ctx context.Context, servers []*server, jobs int) error {
	r.server = servers[0] // whose log an error shows
	defer func() { r.server = nil }()
	return r.await(ctx, jobs)
}

// watched is what happened in a time.
type watched struct {
	took                    time.Duration
	postgres, orchestrators time.Duration
	written                 int64
	all                     statement
	by                      map[string]statement
}

// statement is what pg_stat_statements has of a statement.
type statement struct{ calls, microseconds float64 }

func (w watched) of(name string) statement { return w.by[name] }

func (w watched) each(calls float64) float64 { return calls / w.took.Seconds() }

func (w watched) ofACore(used time.Duration) float64 { return 100 * used.Seconds() / w.took.Seconds() }

// watch measures while do works. It asks the database nothing meanwhile.
func (r *run) watch(ctx context.Context, servers []*server, do func() error, record func(watched)) (w watched, err error) {
	if err := r.db.forgetStatements(ctx); err != nil {
		return w, err
	}
	written, err := r.db.written(ctx)
	if err != nil {
		return w, err
	}
	used := func() (postgres, orchestrators time.Duration, err error) {
		of, err := usageOf(r.db.postmaster)
		if err != nil {
			return 0, 0, err
		}
		for _, s := range servers {
			one, err := usageOf(s.pid())
			if err != nil {
				return 0, 0, err
			}
			orchestrators += one.own
		}
		return of.own + of.below, orchestrators, nil
	}
	postgresBefore, orchestratorsBefore, err := used()
	if err != nil {
		return w, fmt.Errorf("processor time of the server and the orchestrators: %w", err)
	}
	began := time.Now()
	if err := do(); err != nil {
		return w, err
	}
	postgres, orchestrators, err := used()
	if err != nil {
		return w, err
	}
	w.took = time.Since(began)
	w.postgres, w.orchestrators = postgres-postgresBefore, orchestrators-orchestratorsBefore
	now, err := r.db.written(ctx)
	if err != nil {
		return w, err
	}
	w.written = now - written
	if w.all, w.by, err = r.db.statements(ctx, "claim", "look_behind", "renew", "send_hint"); err != nil {
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

// pause waits unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	loop.Pause(ctx, d)
	return context.Cause(ctx)
}

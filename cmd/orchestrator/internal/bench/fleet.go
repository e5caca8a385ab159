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
)

// FleetScenario is the name of the scenario that Fleet describes. It reads pg_stat_statements.
const FleetScenario = "fleet"

// Fleet says which orchestrators the scenario fleet starts.
type Fleet struct {
	// Sizes are how many there are, one number after the other.
	Sizes []int
	// Processes is how many processes they share at most. One process for each would take processor
	// time from the database.
	Processes int
	// Rate is how many jobs a second the batches bring.
	Rate int
	// Pooler is the path of the PgBouncer to put between the orchestrators and the database; empty for none.
	Pooler string
	// Types is how many job types each of them serves, and Plugins in how many processes.
	Types, Plugins int
}

// Validate returns an error that says what would be right.
func (f Fleet) Validate() error {
	switch {
	case len(f.Sizes) == 0 || slices.Min(f.Sizes) < 1:
		return errors.New("--orchestrators: each number must be at least 1")
	case f.Processes < 1:
		return errors.New("--processes must be at least 1")
	case f.Rate < 1:
		return errors.New("--rate must be at least 1")
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
	// settleFor is how long a fleet is left alone before it is measured. Fifty orchestrators have
	// hundreds of sessions, and each must parse and plan every statement that it runs for the first
	// time.
	settleFor = 3 * time.Minute
	// quietFor is how long it is measured without any job.
	quietFor = 25 * time.Second
	// The two loads: jobs one by one, and in batches. Jobs one by one are measured apart for the
	// first minute, in which more sessions run a statement for the first time.
	trickleRate              = 100.0
	trickleFirst, trickleFor = time.Minute, 30 * time.Second
	fleetBatch               = 100
	// warmJobs is how many jobs each orchestrator runs before anything is measured.
	warmJobs = 10
	// fleetConnections is database.max_connections of each orchestrator: with the default, 50
	// of them may want more than 1,000 connections.
	fleetConnections = 8
	// fleetStartTimeout is how long a plugin may take to start: all of a process start at once.
	fleetStartTimeout = 5 * time.Minute
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
	if _, err := r.watch(ctx, started{}, func() error { return pause(ctx, quietFor) }, func(w watched) {
		r.record(name, "no orchestrator: PostgreSQL", "% of a core", w.ofACore(w.postgres))
	}); err != nil {
		return err
	}
	r.lab.say(fmt.Sprintf("starting %d orchestrators", size))
	fleet, err := r.launchFleet(ctx, size)
	defer func() { err = errors.Join(err, fleet.stop()) }()
	if err != nil {
		return err
	}
	if err := r.warm(ctx, fleet); err != nil {
		return err
	}
	r.lab.say(name + ", settling")
	if err := pause(ctx, settleFor); err != nil {
		return err
	}
	r.lab.say(name + ", idle")
	_, err = r.watch(ctx, fleet, func() error { return pause(ctx, quietFor) }, func(w watched) {
		r.record(name, "idle: PostgreSQL", "% of a core", w.ofACore(w.postgres))
		if r.lab.Fleet.Pooler != "" {
			r.record(name, "idle: PgBouncer", "% of a core", w.ofACore(w.pooler))
		}
		r.record(name, "idle: an orchestrator", "% of a core", w.ofACore(w.orchestrators)/float64(size))
		r.record(name, "idle: statements", "/s", w.each(w.all.calls))
		// A claim for several types that finds nothing is the search for their shares alone.
		r.record(name, "idle: claims", "/s", w.each(w.of("claim").calls+w.of("shares").calls))
		r.record(name, "idle: heartbeats", "/s", w.each(w.of("renew").calls))
		r.record(name, "idle: NOTIFY", "/s", w.each(w.of("send_hint").calls))
		r.record(name, "idle: WAL", "kB/s", float64(w.written)/1000/w.took.Seconds())
	})
	if err != nil {
		return err
	}
	total := size * warmJobs
	for _, singles := range []struct {
		name  string
		lasts time.Duration
	}{{", one by one, at first", trickleFirst}, {", one by one", trickleFor}} {
		done, err := r.offer(ctx, name+singles.name, fleet, total, int(trickleRate*singles.lasts.Seconds()), 1, trickleRate)
		if err != nil {
			return err
		}
		total += done
	}
	rate := float64(r.lab.Fleet.Rate) / fleetBatch
	batched, err := r.offer(ctx, fmt.Sprintf("%s, %d/s in batches", name, r.lab.Fleet.Rate), fleet, total, max(jobs/fleetBatch, 1), fleetBatch, rate)
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

// started is a fleet that runs.
type started struct {
	servers []*server
	// all has each of them once.
	all []orchestrator
	// pooler is between them and the database; nil for none.
	pooler *pooler
}

// orchestrator is one of a fleet.
type orchestrator struct {
	address string
	process *server
}

// launchFleet starts orchestrators. After an error it returns what it has started.
func (r *run) launchFleet(ctx context.Context, size int) (fleet started, err error) {
	f := r.lab.Fleet
	plugins := make([]handlers, f.Plugins)
	settings := []string{fmt.Sprintf("database.max_connections=%d", fleetConnections)}
	if f.Pooler != "" {
		if fleet.pooler, err = startPooler(ctx, f.Pooler, r.db.address); err != nil {
			return fleet, err
		}
		settings = append(settings, "database.url="+fleet.pooler.through, "database.direct_url="+r.db.address)
	}
	for i := range plugins {
		plugins[i].types = fmt.Sprintf(typesFormat, i*f.Types/f.Plugins, (i+1)*f.Types/f.Plugins)
		settings = append(settings, fmt.Sprintf("plugins.%d.start_timeout=%s", i, fleetStartTimeout))
	}
	workers := make([]string, size)
	for i := range workers {
		workers[i] = fmt.Sprintf("fleet-%02d", i)
	}
	for _, ids := range shared(workers, f.Processes) {
		server, err := r.launch(ctx, ids, plugins, settings...)
		if err != nil {
			return fleet, err
		}
		fleet.servers = append(fleet.servers, server)
		for _, address := range server.addresses {
			fleet.all = append(fleet.all, orchestrator{address, server})
		}
	}
	return fleet, nil
}

// shared shares out the workers among so many processes, as evenly as possible.
func shared(workers []string, processes int) [][]string {
	processes = min(processes, len(workers))
	shares := make([][]string, processes)
	for i := range shares {
		shares[i] = workers[i*len(workers)/processes : (i+1)*len(workers)/processes]
	}
	return shares
}

func (f started) stop() error {
	var stopping errgroup.Group
	for _, s := range f.servers {
		stopping.Go(s.stop)
	}
	defer f.pooler.stop()
	return stopping.Wait()
}

// warm has each orchestrator take jobs in turn, and waits until they have ended: each session
// parses and plans every statement that it runs for the first time.
func (r *run) warm(ctx context.Context, fleet started) error {
	for n := range warmJobs * len(fleet.all) {
		one := fleet.all[n%len(fleet.all)]
		submit := crowd{address: one.address, clients: 1, requests: [][]byte{fleetRequest(one.address, r.lab.Fleet, n, 1)}}
		if _, err := submit.flatOut(ctx, 1); err != nil {
			return one.process.failure(err)
		}
	}
	return r.awaitBy(ctx, fleet.servers, warmJobs*len(fleet.all))
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
func (r *run) offer(ctx context.Context, name string, fleet started, before, requests, perCall int, rate float64) (jobs int, err error) {
	r.lab.say(name)
	// Without VACUUM ANALYZE, after which each session plans all of its statements anew.
	if err := r.db.rest(ctx, false); err != nil {
		return 0, err
	}
	var all sent
	w, err := r.watch(ctx, fleet, func() error {
		if all, err = r.submitInTurn(ctx, fleet, requests, perCall, rate); err != nil {
			return err
		}
		jobs = len(all.took) * perCall
		return r.awaitBy(ctx, fleet.servers, before+jobs)
	}, func(watched) {})
	if err != nil {
		return 0, err
	}
	claims, shares, behind := w.of("claim"), w.of("shares"), w.of("look_behind")
	each := func(microseconds float64) float64 { return microseconds / float64(jobs) }
	r.record(name, "offered", "jobs/s", float64(jobs)/all.elapsed.Seconds())
	r.record(name, "claims and looks", "µs/job", each(claims.microseconds+shares.microseconds+behind.microseconds))
	r.record(name, "a claim", "µs/call", (claims.microseconds+shares.microseconds)/max(claims.calls, 1))
	r.record(name, "claims", "/job", each(claims.calls))
	r.record(name, "PostgreSQL, CPU", "µs/job", each(float64(w.postgres.Microseconds())))
	if r.lab.Fleet.Pooler != "" {
		r.record(name, "PgBouncer, CPU", "µs/job", each(float64(w.pooler.Microseconds())))
	}
	r.record(name, "NOTIFY", "/s", w.each(w.of("send_hint").calls))
	r.record(name, "sessions that these wake", "/s", w.each(w.of("send_hint").calls)*float64(len(fleet.all)))
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
func (r *run) submitInTurn(ctx context.Context, fleet started, requests, perCall int, rate float64) (sent, error) {
	all := sent{due: map[string]time.Time{}}
	var mu sync.Mutex
	began := time.Now()
	submitting, ctx := errgroup.WithContext(ctx)
	for i, one := range fleet.all {
		submitting.Go(func() error {
			caller, err := call(one.address)
			if err != nil {
				return err
			}
			defer caller.close()
			for n := i; n < requests && ctx.Err() == nil; n += len(fleet.all) {
				due := began.Add(time.Duration(float64(n) / rate * float64(time.Second)))
				if err := pause(ctx, time.Until(due)); err != nil {
					return err
				}
				answer, err := caller.do(fleetRequest(one.address, r.lab.Fleet, n, perCall))
				if err != nil {
					return one.process.failure(err)
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

// pause waits unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	loop.Pause(ctx, d)
	return context.Cause(ctx)
}

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// run is one run of a scenario, on a database of its own.
type run struct {
	lab    *lab
	db     *database
	server *server
	// record adds a value to the report, unless the run is a warm-up.
	record func(name, figure, unit string, value float64)
	// name is the scenario and the number of the run; empty for a warm-up, which is not profiled.
	name string
}

// The login of the bench, which reads what only operators may.
const operator, password = "bench", "bench"

// start starts an orchestrator with the bench's own handlers.
func (r *run) start(ctx context.Context, settings ...string) error {
	server, err := r.launch(ctx, nil, []handlers{{}}, settings...)
	if err != nil {
		return err
	}
	r.server = server
	return nil
}

// handlers are a plugin of the bench's own handlers.
type handlers struct {
	// types is typesVariable of the plugin; empty for the usual types.
	types string
}

// launch starts an orchestrator with plugins, or in one process one for each of the workers.
func (r *run) launch(ctx context.Context, workers []string, plugins []handlers, settings ...string) (*server, error) {
	directory, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	watched := r.watched(filepath.Join(directory, probesDirectory))
	args, err := json.Marshal(append([]string{"bench", "handlers"}, watched...))
	if err != nil {
		return nil, err
	}
	all := []string{
		"database.url=" + r.db.address, "server.address=127.0.0.1:0", "log.format=json", "log.level=info",
		"security.user=" + operator, "security.password=" + password, "jobs.accept_unknown_types=true",
	}
	for i, one := range plugins {
		at := fmt.Sprintf("plugins.%d.", i)
		name := "bench"
		if i > 0 {
			name += strconv.Itoa(i + 1)
		}
		all = append(all, at+"name="+name, at+"path="+r.lab.Program, at+"args="+string(args))
		if one.types != "" {
			all = append(all, at+"env."+typesVariable+"="+one.types)
		}
	}
	all = append(all, r.lab.Settings...)
	arguments := append([]string{"bench", "serve"}, watched...)
	for _, id := range workers {
		arguments = append(arguments, "--worker", id)
	}
	return startServer(ctx, r.lab.Program, directory, max(len(workers), 1), arguments, append(all, settings...))
}

// watched are the arguments of a process with its probe in the directory.
func (r *run) watched(directory string) []string {
	args := []string{directory}
	if r.name == "" {
		return args
	}
	if r.lab.Profiles.CPU != "" {
		args = append(args, "--cpu")
	}
	if r.lab.Profiles.Memory != "" {
		args = append(args, "--memory")
	}
	return args
}

// stop ends the orchestrator and records its peak memory.
func (r *run) stop(name string) error {
	if peak, err := peakMemory(r.server.pid()); err == nil {
		r.record(name, "orchestrator's memory at most", "MB", float64(peak)/1e6)
	}
	server := r.server
	r.server = nil
	return server.stop()
}

// renew replaces the database with a new one.
func (r *run) renew(ctx context.Context) error {
	if err := r.db.drop(ctx); err != nil {
		return err
	}
	db, err := r.db.create(ctx)
	if err != nil {
		return err
	}
	r.db = db
	return nil
}

// end stops what the run has started and drops its database.
func (r *run) end(ctx context.Context) error {
	var stopped error
	if r.server != nil {
		stopped = r.server.stop()
	}
	return errors.Join(stopped, r.db.drop(ctx))
}

// reading is what was used up to a moment.
type reading struct {
	began                  time.Time
	orchestrator, postgres usage
	known                  bool // whether the processor times are known
	written                int64
	heap, handlersHeap     allocated
}

// begin takes the reading with which a phase begins, and with it the profiles.
func (r *run) begin(ctx context.Context) (reading, error) {
	for _, of := range []string{ofOrchestrator, ofHandlers} {
		if _, err := tell(ctx, r.server.probes(), of, beginProfiles); err != nil {
			return reading{}, err
		}
	}
	return r.read(ctx)
}

// read takes a reading.
func (r *run) read(ctx context.Context) (p reading, err error) {
	if p.heap, err = allocatedIn(ctx, r.server.probes(), ofOrchestrator); err != nil {
		return p, err
	}
	if p.handlersHeap, err = allocatedIn(ctx, r.server.probes(), ofHandlers); err != nil {
		return p, err
	}
	p.written, err = r.db.written(ctx)
	if err != nil {
		return p, err
	}
	var unknown, unknownPostgres error
	p.orchestrator, unknown = usageOf(r.server.pid())
	p.postgres, unknownPostgres = usageOf(r.db.postmaster)
	p.known = unknown == nil && unknownPostgres == nil
	p.began = time.Now()
	return p, nil
}

// finish records what a phase since a reading cost per job.
func (r *run) finish(ctx context.Context, p reading, name string, jobs int) error {
	now, err := r.read(ctx)
	if err != nil {
		return err
	}
	if err := r.endProfiles(ctx, name); err != nil {
		return err
	}
	each := func(spent time.Duration) float64 { return float64(spent.Nanoseconds()) / 1000 / float64(jobs) }
	if p.known && now.known {
		orchestrator := now.orchestrator.own - p.orchestrator.own
		handlers := now.orchestrator.below - p.orchestrator.below
		postgres := now.postgres.own + now.postgres.below - p.postgres.own - p.postgres.below
		r.record(name, "CPU", "µs/job", each(orchestrator+handlers+postgres))
		r.record(name, "  orchestrator", "µs/job", each(orchestrator))
		r.record(name, "  handlers", "µs/job", each(handlers))
		r.record(name, "  PostgreSQL", "µs/job", each(postgres))
	}
	r.record(name, "WAL", "bytes/job", float64(now.written-p.written)/float64(jobs))
	r.heap(name, ofOrchestrator, p.heap, now.heap, jobs)
	r.heap(name, ofHandlers, p.handlersHeap, now.handlersHeap, jobs)
	return nil
}

// endProfiles keeps what the processes did since begin.
func (r *run) endProfiles(ctx context.Context, name string) error {
	for _, of := range []string{ofOrchestrator, ofHandlers} {
		if _, err := tell(ctx, r.server.probes(), of, endProfiles); err != nil {
			return err
		}
	}
	return r.lab.Profiles.collect(r.server.probes(), r.name+", "+name)
}

// heap records what was allocated per job.
func (r *run) heap(name, of string, before, now allocated, jobs int) {
	grown := now.since(before)
	r.record(name, "allocations, "+of, "objects/job", grown.Objects/float64(jobs))
	r.record(name, "allocated, "+of, "bytes/job", grown.Bytes/float64(jobs))
}

// leftover records the size of the tables at the end.
func (r *run) leftover(ctx context.Context, name string) error {
	dead, bytes, err := r.db.left(ctx)
	if err != nil {
		return err
	}
	r.record(name, "dead tuples", "", float64(dead))
	r.record(name, "tables and indexes", "MB", float64(bytes)/1e6)
	return nil
}

const (
	// glance is how often the bench looks at the orchestrator's progress.
	glance = 100 * time.Millisecond
	// stuckAfter is how long the orchestrator may make no progress.
	stuckAfter = 3 * time.Minute
)

// await waits until so many jobs have ended.
func (r *run) await(ctx context.Context, jobs int) error {
	return r.awaitBy(ctx, []*server{r.server}, jobs)
}

// awaitBy waits until the servers have ended so many jobs.
func (r *run) awaitBy(ctx context.Context, servers []*server, jobs int) error {
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	began, moved, before := time.Now(), time.Now(), 0
	for {
		done, err := r.db.ended(ctx)
		switch {
		case err != nil:
			return err
		case done >= jobs:
			return nil
		case done > before:
			moved, before = time.Now(), done
		case time.Since(moved) > stuckAfter:
			return servers[0].failure(fmt.Errorf("%d of %d jobs ended, and then none for %s", done, jobs, stuckAfter))
		}
		for _, s := range servers {
			if err := s.alive(); err != nil {
				return err
			}
		}
		r.lab.progress("working", done, jobs, began)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *lab) progress(what string, done, of int, began time.Time) {
	title := l.now + "  " + what + "  "
	bar := show.Progress{Noun: "job", Done: done, Share: float64(done) / float64(max(of, 1)), Elapsed: time.Since(began)}
	l.line.Set(title + bar.Within(l.line.Width()-show.Width(title)))
}

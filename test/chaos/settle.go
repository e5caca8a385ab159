//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/census"
	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/load"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
)

// settle ends the load, and waits until every orchestrator is well and no job is open.
func (r *run) settle(ctx context.Context) error {
	problems := r.load.End()
	if ctx.Err() != nil {
		return problems
	}
	healed := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for _, o := range r.scene.All() {
		if !o.Alive() {
			// It has ended by itself: the record of processes tells.
			r.log.Error("an orchestrator has ended", "name", o.Name, "code", o.Code())
			if err := o.Start(); err != nil {
				return err
			}
		}
	}
	for _, o := range r.scene.All() {
		if err := errors.Join(o.AwaitReady(ctx), census.AwaitPlugins(ctx, o)); err != nil {
			problems = errors.Join(problems, err)
		}
	}
	r.releaseHeld(ctx)
	// A failover may have undone what healed bad statistics.
	if err := r.cluster.Primary().Exec(ctx, "analyze jobs, leases, ready, timers"); err != nil {
		problems = errors.Join(problems, err)
	}
	r.drained = -1
	for time.Since(healed) < r.grace && ctx.Err() == nil {
		open, err := r.count(ctx, "select count(*) from jobs where finished_at is null")
		if err == nil && open == 0 {
			r.drained = time.Since(healed)
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Printf("drained after %s\n", r.drained.Round(time.Millisecond))
	// Connections and processes that are no longer needed end.
	select {
	case <-ctx.Done():
	case <-time.After(2 * lease):
	}
	r.leaks.Doctor, r.leaks.DoctorExit = census.Doctor(ctx, filepath.Join(r.programs, "orchestrator"), r.scene.API)
	return problems
}

// releaseHeld releases jobs whose holds nobody remembers, because their calls got no
// answer.
func (r *run) releaseHeld(ctx context.Context) {
	conn, err := r.cluster.Primary().Connect(ctx)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, "select job_id::text from jobs where state = 'created' and run_at = 'infinity'")
	if err != nil {
		return
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if rows.Scan(&id) != nil {
			return
		}
		call := history.Call{Client: "end", Number: 1, Verb: history.Release, JobID: id, Started: r.now(), Outcome: history.OK, Code: http.StatusOK}
		if err := r.scene.API.Call(ctx, http.MethodPost, "/jobs/"+id+"/release", nil, http.StatusOK, nil); err != nil {
			call.Outcome, call.Code, call.Error = history.Unknown, 0, err.Error()
		}
		call.Returned = r.now()
		_ = r.calls.Append(call)
	}
}

func (r *run) count(ctx context.Context, query string) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := r.cluster.Primary().Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	err = conn.QueryRow(ctx, query).Scan(&n)
	return n, err
}

func (r *run) usage(ctx context.Context) []history.Usage {
	connections, err := r.count(ctx, "select count(*) from pg_stat_activity where application_name like 'holdfast%'")
	if err != nil {
		r.log.Warn("no count of connections", "error", err)
	}
	return r.census.Usage(connections)
}

// record ends everything and writes what is left.
func (r *run) record(ctx context.Context) error {
	var err error
	if r.leaks.Sockets, err = census.Sockets(filepath.Join(r.scratch, "tmp"), r.scene.All()); err != nil {
		return err
	}
	// The last rows are read when nothing changes them any more.
	r.end()
	if err := r.witness.End(ctx); err != nil {
		return fmt.Errorf("end of the witness: %w", err)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if r.leaks.Orphans = r.orphans(); len(r.leaks.Orphans) == 0 {
			break
		}
	}
	r.cluster.Close()
	if err := errors.Join(r.calls.Close(), r.faults.Close()); err != nil {
		return err
	}
	processes, err := history.Create[history.Process](filepath.Join(r.dir, history.ProcessesFile))
	if err != nil {
		return err
	}
	for _, p := range r.census.List() {
		err = errors.Join(err, processes.Append(p))
	}
	if err := errors.Join(err, processes.Close(), r.time()); err != nil {
		return err
	}
	return errors.Join(
		history.Write(filepath.Join(r.dir, history.LeaksFile), r.leaks),
		history.Write(filepath.Join(r.dir, history.TimingsFile), r.timings),
		history.Write(filepath.Join(r.dir, history.RunFile), r.settings()),
	)
}

// orphans are processes of orchestrators that still live after their end. The servers are
// not ended yet.
func (r *run) orphans() []string {
	var orphans []string
	for _, left := range r.census.Left() {
		if left[:len(history.Database)] != string(history.Database) {
			orphans = append(orphans, left)
		}
	}
	return orphans
}

// settings is what was set, and how much is expected of the run.
func (r *run) settings() history.Run {
	var types, recorded []string
	attempts := make(map[string]int)
	for _, plugin := range r.scene.Plugins {
		types = append(types, plugin.Types...)
	}
	for _, name := range types {
		attempts[name] = load.MaxAttempts
		recorded = append(recorded, name)
	}
	h := history.Run{
		Seed: r.seed, Started: history.Nanos(r.began.UnixNano()), Ended: r.now(), Duration: r.duration,
		Lease: lease, ReapInterval: lease / 6, Grace: r.grace, MaxAttempts: attempts, Recorded: recorded,
		Unsubmitted: []string{stage.TickType}, Synchronous: true, Pooler: r.pooled,
		Bounds: history.Bounds{
			Overlap: time.Second,
			Growth:  history.Usage{Descendants: 12, Files: 40, Goroutines: 100, Connections: 40},
		},
	}
	if r.strict {
		h.Bounds.ReclaimSameHost, h.Bounds.ReclaimElsewhere = time.Second, lease+lease/6+time.Second
		h.Bounds.FirstAccept, h.Bounds.FirstClaim = 2*time.Second, 3*time.Second
	}
	h.Minimums = history.Minimums{Jobs: 5000, Faults: 40, Kinds: 10, StaleAttempts: 1, Failovers: 1, Unknown: 1}
	switch {
	case r.aimed > 0:
		h.Minimums = history.Minimums{Jobs: 100, Faults: 2 * r.aimed, Kinds: 2, Failovers: 2 * r.aimed, Unknown: 1}
	case r.short || r.only != "":
		h.Minimums = history.Minimums{Jobs: 50, Faults: 1, Kinds: 1}
	}
	return h
}

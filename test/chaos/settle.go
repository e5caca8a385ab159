//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/test/chaos/census"
	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
)

// settle ends the load, and waits until every orchestrator is well and no job is open.
func (r *run) settle(ctx context.Context) error {
	problems := r.load.End()
	if ctx.Err() != nil {
		return problems
	}
	healed := time.Now()
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
		problems = errors.Join(problems, r.awaitWell(ctx, o))
	}
	problems = errors.Join(problems, r.liftPauses(ctx))
	for number := 1; time.Since(healed) < r.grace && ctx.Err() == nil; wait(ctx, time.Second) {
		held, err := r.releaseHeld(ctx, number)
		if number += held; held == 0 && err == nil {
			break
		}
	}
	// A failover may have undone what healed bad statistics.
	if err := r.analyze(ctx); err != nil {
		problems = errors.Join(problems, err)
	}
	r.drain(ctx, healed)
	if r.short {
		return problems
	}
	// What the doctor sees may be a moment old.
	for deadline := time.Now().Add(r.grace); ; wait(ctx, lease) {
		r.leaks.Doctor, r.leaks.DoctorExit = census.Doctor(ctx, filepath.Join(r.programs, "orchestrator"), r.scene.API)
		if r.leaks.DoctorExit == 0 || time.Now().After(deadline) || ctx.Err() != nil {
			return problems
		}
	}
}

// awaitWell waits until the orchestrator is ready and all its plugins are up.
func (r *run) awaitWell(ctx context.Context, o *stage.Orchestrator) error {
	starting, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := o.AwaitReady(starting); err != nil {
		return err
	}
	for _, plugin := range r.disabledLate(o) {
		if err := o.Call(starting, http.MethodPost, "/debug/plugins/"+plugin+"/enable", nil, http.StatusOK, nil); err != nil {
			return fmt.Errorf("plugin %s of %s: %w", plugin, o.Name, err)
		}
	}
	if err := swapBroken(starting, o); err != nil {
		return err
	}
	return census.AwaitPlugins(starting, o)
}

// replacedScript is in the error of a plugin whose script was replaced: after a rollback it cannot
// be launched again, as documented. A plugin that is broken for another reason stays so.
const replacedScript = "scripts are executed by their path"

// swapBroken lets the files of such plugins serve, as an operator would.
func swapBroken(ctx context.Context, o *stage.Orchestrator) error {
	var found struct {
		Plugins []struct{ Name, State, LastError string }
	}
	if err := o.Call(ctx, http.MethodGet, "/debug/plugins", nil, http.StatusOK, &found); err != nil {
		return err
	}
	for _, plugin := range found.Plugins {
		if plugin.State == "broken" && strings.Contains(plugin.LastError, replacedScript) {
			if err := o.Call(ctx, http.MethodPost, "/debug/plugins/"+plugin.Name+"/swap", nil, http.StatusOK, nil); err != nil {
				return fmt.Errorf("swap plugin %s of %s: %w", plugin.Name, o.Name, err)
			}
		}
	}
	return nil
}

// liftPauses ends the pauses that are left. Those that may be left are pauses of which a call got
// no answer: it may have been carried out after the one that healed the fault. Any other is an
// error, because its end was answered.
func (r *run) liftPauses(ctx context.Context) (problems error) {
	var left struct {
		Pauses []struct{ Scope, Name string }
	}
	if err := r.scene.API.Call(ctx, http.MethodGet, "/debug/pauses", nil, http.StatusOK, &left); err != nil {
		return err
	}
	for _, pause := range left.Pauses {
		r.log.Warn("a pause was left", "scope", pause.Scope, "name", pause.Name)
		if !r.mayBeLeft(cmp.Or(pause.Name, pause.Scope)) {
			problems = errors.Join(problems, fmt.Errorf("the pause of %s %s has ended, and is there", pause.Scope, pause.Name))
		}
		path, err := url.JoinPath("/debug/pauses", pause.Scope, pause.Name)
		if err == nil {
			err = r.scene.API.Call(ctx, http.MethodDelete, path, nil, http.StatusOK, nil)
		}
		if err != nil {
			problems = errors.Join(problems, fmt.Errorf("end the pause of %s %s: %w", pause.Scope, pause.Name, err))
		}
	}
	return problems
}

func (r *run) mayBeLeft(target string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.injected, func(f history.Fault) bool {
		return strings.HasPrefix(f.Kind, "pause-") && f.Target == target && f.Parameters[history.Unanswered] != ""
	})
}

// disabledLate lists the plugins of the orchestrator for which a call to disable them got
// no answer. An orchestrator that was stopped then may have carried out that call after
// the one that healed the fault.
func (r *run) disabledLate(o *stage.Orchestrator) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var late []string
	for _, plugin := range o.Plugins {
		if slices.ContainsFunc(r.injected, func(f history.Fault) bool {
			return f.Kind == "disable-plugin" && f.Target == o.Name+" "+plugin && f.Error != ""
		}) {
			late = append(late, plugin)
		}
	}
	return late
}

// analyze renews statistics. A server whose process was killed last may still recover.
func (r *run) analyze(ctx context.Context) (err error) {
	for deadline := time.Now().Add(r.grace); ctx.Err() == nil; wait(ctx, time.Second) {
		if err = r.cluster.Primary().Exec(ctx, "analyze jobs, leases, ready, timers"); err == nil || time.Now().After(deadline) {
			return err
		}
		r.log.Warn("not analyzed", "error", err)
	}
	return errors.Join(err, ctx.Err())
}

// patience is how many times the grace period may pass if something moves at least once in
// each: attempts that are repeated without end would move for ever.
const patience = 6

// drain waits until no job is open. A slow machine has all the time that it needs, as long
// as an attempt ends now and then.
func (r *run) drain(ctx context.Context, healed time.Time) {
	r.drained = -1
	moved, before := time.Now(), -1
	told := healed
	for ctx.Err() == nil && time.Since(moved) < r.grace && time.Since(healed) < patience*r.grace {
		open, err := r.count(ctx, "select count(*) from jobs where finished_at is null")
		if err == nil && open == 0 {
			r.drained = time.Since(healed)
			break
		}
		// A fence is in the ledger when its attempt has ended.
		ended, err := r.count(ctx, "select coalesce(sum(fence), 0) from jobs")
		if err == nil && ended != before {
			moved, before = time.Now(), ended
		}
		if time.Since(told) > time.Minute {
			told = time.Now()
			r.tellOpen(ctx, open, time.Since(healed))
		}
		wait(ctx, 100*time.Millisecond)
	}
	fmt.Printf("drained after %s\n", r.drained.Round(time.Millisecond))
}

// tellOpen prints what is not done yet, so that a slow end can be explained when the
// servers are gone.
func (r *run) tellOpen(ctx context.Context, open int, after time.Duration) {
	fmt.Printf("note: %d jobs are open after %s\n", open, after.Round(time.Second))
	conn, err := r.cluster.Primary().Connect(ctx)
	if err != nil {
		fmt.Println("note: no look at the database:", err)
		return
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, _ := conn.Query(ctx, `select format('%s jobs %s %s, %s of them leased, due from %s', count(*), j.job_type, j.state,
			count(l.job_id), min(j.run_at))
		from jobs j left join leases l using (job_id) where j.finished_at is null group by j.job_type, j.state
		union all
		select format('%s sessions %s, waiting for %s', count(*), state, coalesce(wait_event, 'nothing'))
		from pg_stat_activity where application_name like 'holdfast%' group by state, wait_event`)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, line := range lines {
		fmt.Println("note:  ", line)
	}
	if err != nil {
		fmt.Println("note: no look at the database:", err)
	}
}

// releaseHeld releases jobs whose holds nobody remembers, because their calls got no
// answer. Jobs that wait for others of their workflow look the same, but have no timer. It
// returns how many there were, and numbers its calls.
func (r *run) releaseHeld(ctx context.Context, number int) (int, error) {
	conn, err := r.cluster.Primary().Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, `select job_id::text from jobs
		where state = 'created' and run_at = 'infinity' and job_id in (select job_id from timers)`)
	if err != nil {
		return 0, err
	}
	held, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for i, id := range held {
		call := history.Call{Client: "end", Number: number + i, Verb: history.Release, JobID: id, Started: r.now(), Outcome: history.OK, Code: http.StatusOK}
		if err := r.scene.API.Call(ctx, http.MethodPost, "/jobs/"+id+"/release", nil, http.StatusOK, nil); err != nil {
			call.Outcome, call.Code, call.Error = history.Unknown, 0, err.Error()
		}
		call.Returned = r.now()
		_ = r.calls.Append(call)
	}
	return len(held), err
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

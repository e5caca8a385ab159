//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/census"
	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/load"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
)

// record ends everything and writes what is left.
func (r *run) record(ctx context.Context) error {
	var err error
	// A plugin that is just being started has a socket and no process.
	for deadline := time.Now().Add(r.grace); ; wait(ctx, time.Second) {
		if r.leaks.Sockets, err = census.Sockets(filepath.Join(r.scratch, "tmp"), r.scene.All()); err != nil {
			return err
		}
		if len(r.leaks.Sockets) == 0 || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
	}
	// The last rows are read when nothing changes them any more.
	r.end()
	if err := r.witness.End(ctx); err != nil {
		return fmt.Errorf("end of the witness: %w", err)
	}
	for deadline := time.Now().Add(r.grace); time.Now().Before(deadline); wait(ctx, 200*time.Millisecond) {
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
		if !strings.HasPrefix(left, string(history.Database)) {
			orphans = append(orphans, left)
		}
	}
	for _, p := range census.Strays(r.scene.Effects) {
		orphans = append(orphans, fmt.Sprintf("%s (%d)", strings.Join(p.Args(), " "), p.PID))
	}
	return orphans
}

// sweep ends what is left of plugins.
func (r *run) sweep() {
	if r.scene == nil {
		return
	}
	for _, p := range census.Strays(r.scene.Effects) {
		_ = stage.Send(p, syscall.SIGKILL)
	}
}

// settings is what was set, and how much is expected of the run.
func (r *run) settings() history.Run {
	var recorded, obedient []string
	attempts := make(map[string]int)
	waits, timeouts := make(map[string]history.Backoff), make(map[string]time.Duration)
	for _, plugin := range r.scene.Plugins {
		for _, name := range plugin.Types {
			attempts[name], waits[name], timeouts[name] = load.MaxAttempts, retries, cmp.Or(plugin.Timeout, timeout)
			recorded = append(recorded, name)
			if !plugin.Deaf {
				obedient = append(obedient, name)
			}
		}
	}
	h := history.Run{
		Seed: r.seed, Commit: r.commit, Started: history.Nanos(r.began.UnixNano()), Ended: r.now(), Duration: r.duration,
		Lease: lease, ReapInterval: lease / 6, Grace: r.grace, MaxAttempts: attempts, MaxCrashes: maxCrashes, Retries: waits, Timeouts: timeouts, Recorded: recorded, Obedient: obedient,
		Unsubmitted: []string{stage.TickType}, Synchronous: true, Pooler: r.pooled,
		Bounds: history.Bounds{
			Overlap: 2 * time.Second,
			Growth:  growth,
		},
		Minimums: r.minimums(),
	}
	if r.strict {
		h.Bounds.ReclaimSameHost, h.Bounds.ReclaimElsewhere = time.Second, lease+lease/6+time.Second
		h.Bounds.FirstAccept, h.Bounds.FirstClaim = firstAcceptWithin, firstClaimWithin
		h.Bounds.Overlap, h.Bounds.Drained = time.Second, 3*time.Minute
	}
	return h
}

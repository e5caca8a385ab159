package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// deployed is a plugin whose binary is replaced while it runs.
type deployed struct {
	t    *testing.T
	o    *rig.Orchestrator
	path string
	good []byte
}

func deploy(t *testing.T, settings ...string) *deployed {
	t.Helper()
	d := &deployed{t: t, path: filepath.Join(t.TempDir(), "handlers")}
	var err error
	d.good, err = os.ReadFile(filepath.Join(bin, "testhandlers"))
	require.NoError(t, err)
	d.install(d.good)
	d.o = orchestrator(t, pgtest.URL(t), append([]string{
		"plugins.0.name=deployed", "plugins.0.path=" + d.path, "plugins.0.concurrency=20", "plugins.0.env.GORACE=" + exitAtOnce,
		"plugins.0.canary.share=0.2", "plugins.0.canary.period=500ms",
	}, settings...)...)
	rigtest.Start(t, d.o)
	return d
}

// install replaces the binary as a deployment does.
func (d *deployed) install(content []byte) {
	d.t.Helper()
	require.NoError(d.t, os.WriteFile(d.path+".new", content, 0o755))
	require.NoError(d.t, os.Rename(d.path+".new", d.path))
}

// version is the good binary with extra bytes at its end that nobody reads.
func (d *deployed) version(n int) []byte {
	return fmt.Appendf(d.good[:len(d.good):len(d.good)], "version %d", n)
}

// faulty is the good binary with a fault at its end, which it reads.
func (d *deployed) faulty(fault string) []byte {
	return fmt.Appendf(d.good[:len(d.good):len(d.good)], "fault=%s\n", fault)
}

// look returns what the API shows of it.
func (d *deployed) look() v1.Plugin {
	d.t.Helper()
	found, err := d.o.Plugins(d.t.Context())
	require.NoError(d.t, err)
	for _, p := range found {
		if p.Name == "deployed" {
			return p
		}
	}
	d.t.Fatal("the plugin is not shown")
	return v1.Plugin{}
}

// requireShown requires that the API shows it as wanted: at once, or within moments if the
// process that has it must tell the one that shows it.
func (d *deployed) requireShown(wanted func(v1.Plugin) bool) {
	d.t.Helper()
	if !apart {
		require.True(d.t, wanted(d.look()))
		return
	}
	require.Eventually(d.t, func() bool { return wanted(d.look()) }, patience, glance)
}

// dead lists the dead letters, to explain a failed test.
func (d *deployed) dead() string {
	d.t.Helper()
	var found json.RawMessage
	require.NoError(d.t, d.o.Call(d.t.Context(), http.MethodGet, "/dead-letter?limit=3", nil, http.StatusOK, &found))
	return string(found)
}

// swapped waits for the end of a swap that began after the previous one.
func (d *deployed) swapped(before v1.Plugin) v1.Plugin {
	d.t.Helper()
	var now v1.Plugin
	require.Eventually(d.t, func() bool {
		now = d.look()
		last := now.LastSwap
		return last != nil && last.Result != "" && (before.LastSwap == nil || last.BegunAt.After(before.LastSwap.BegunAt))
	}, patience, glance, "a swap ends")
	return now
}

// load submits jobs with a single attempt until it is stopped, and returns how many it
// submitted.
func (d *deployed) load(workers int) (end func() int64) {
	ctx, stop := context.WithCancel(d.t.Context())
	var submitted atomic.Int64
	var clients sync.WaitGroup
	for range workers {
		clients.Go(func() {
			for ctx.Err() == nil {
				_, err := d.o.Submit(context.WithoutCancel(ctx), rig.Submission{
					JobType: "WORK", MaxAttempts: 1, Payload: map[string]any{"millis": 3},
				})
				if err != nil {
					d.t.Error(err)
					return
				}
				submitted.Add(1)
				time.Sleep(5 * time.Millisecond) // a pace, not a wait
			}
		})
	}
	return func() int64 {
		stop()
		clients.Wait()
		return submitted.Load()
	}
}

// requireAllDone waits until every job has succeeded, with one charged attempt.
func (d *deployed) requireAllDone(jobs int64) {
	d.t.Helper()
	type counts struct {
		StatusCounts        map[string]int64
		AttemptDistribution map[string]int64
	}
	var found counts
	require.Eventually(d.t, func() bool {
		found = counts{} // A decoded map keeps its earlier keys.
		require.NoError(d.t, d.o.Call(d.t.Context(), http.MethodGet, "/metrics", nil, http.StatusOK, &found))
		return found.StatusCounts["succeeded"]+found.StatusCounts["dead"] >= jobs
	}, patience, 5*glance, "every job ends")
	require.Equal(d.t, map[string]int64{"1": jobs}, found.AttemptDistribution, "%+v; dead: %s", found, d.dead())
	require.Equal(d.t, jobs, found.StatusCounts["succeeded"], "%+v; dead: %s", found, d.dead())
}

// underLoad deploys while jobs run, and requires that every job succeeds with one charged
// attempt. Trials take the period unless they fail sooner.
func underLoad(t *testing.T, period time.Duration, deploys func(d *deployed)) {
	t.Helper()
	// On a busy machine, how slow a version is says nothing about the version, and an
	// orchestrator that gets no processor time for two seconds would lose its leases.
	d := deploy(t, "plugins.0.canary.max_slowdown=0", "plugins.0.canary.period="+period.String(), "worker.lease=30s")
	end := d.load(4)
	deploys(d)
	d.requireAllDone(end())
	now := d.look()
	require.Zero(t, now.Restarts, now.LastError)
	require.Eventually(t, func() bool { return len(d.o.Handlers("handlers")) == 1 }, patience, glance, "one process is left")
	require.NoError(t, d.o.ShutDown(t.Context()))
}

func TestGoodDeploysUnderLoadLoseNothingAndChargeNothing(t *testing.T) {
	underLoad(t, 500*time.Millisecond, func(d *deployed) {
		before := d.look()
		for version := 1; version <= 20; version++ {
			d.install(d.version(version))
			now := d.swapped(before)
			require.Equal(t, job.SwapPromoted, now.LastSwap.Result, now.LastSwap.Reason)
			require.Equal(t, now.SHA256, now.LastSwap.To.SHA256)
			require.NotEqual(t, before.SHA256, now.SHA256)
			before = now
		}
	})
}

func TestBadDeploysUnderLoadLoseNothingAndChargeNothing(t *testing.T) {
	// A trial that is too short for ten attempts, on a busy machine, may show no failure.
	underLoad(t, time.Minute, func(d *deployed) {
		before := d.look()
		crashes, fails := d.faulty("crashes"), d.faulty("fails")
		for _, bad := range []struct {
			content []byte
			reason  string
		}{
			{[]byte("#!/bin/sh\nexit 7\n"), "it ended during its start: exit status 7"},
			{[]byte("no program at all"), "exec format error"},
			{crashes, "exit status 9"},
			{fails, "it fails more often: "},
			{append(crashes[:len(crashes):len(crashes)], "again"...), "exit status 9"},
		} {
			d.install(bad.content)
			now := d.swapped(before)
			require.Equal(t, job.SwapRolledBack, now.LastSwap.Result)
			require.Contains(t, now.LastSwap.Reason, bad.reason)
			require.Equal(t, before.SHA256, now.SHA256)
			before = now
		}
	})
}

func TestASIGHUPReplacesThePluginsWhoseConfigurationHasChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	effects := filepath.Join(dir, "effects")
	write := func(text string) { // in one step: the file may be read at any moment
		require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	one := fmt.Sprintf("plugins:\n  - name: deployed\n    path: %s/testhandlers\n    watch: false\n    canary: {period: 0s}\n    start_timeout: 2m\n", bin)
	write(one)
	d := &deployed{t: t, o: orchestratorIn(t, dir, pgtest.URL(t))}
	rigtest.Start(t, d.o)
	before := d.look()

	write(one + "    env: {EFFECTS: " + effects + "}\n" +
		"  - name: second\n    start_timeout: 2m\n    path: " + bin + "/testhandlers\n    env: {TYPE_PREFIX: SECOND_}\n")
	require.NoError(t, d.o.Signal(syscall.SIGHUP))
	now := d.swapped(before)
	require.Equal(t, job.SwapPromoted, now.LastSwap.Result, now.LastSwap.Reason)
	require.NotEqual(t, before.PIDs, now.PIDs)
	rigtest.Await(t, d.o, rigtest.Submit(t, d.o, rig.Submission{JobType: "WORK"}), "COMPLETED")
	require.FileExists(t, effects, "the new environment is in force")
	require.Eventually(t, func() bool {
		_, err := d.o.Submit(t.Context(), rig.Submission{JobType: "SECOND_WORK"})
		return err == nil
	}, patience, glance, "the new handler declares its types")

	two := func() bool { return len(d.o.Handlers("testhandlers")) == 2 }
	require.Eventually(t, two, patience, glance, "the version before is gone")

	write("plugins: [{name: nameless, path: ''}]")
	require.NoError(t, d.o.Signal(syscall.SIGHUP))
	require.NoError(t, os.Remove(file))
	require.NoError(t, d.o.Signal(syscall.SIGHUP))
	require.Never(t, func() bool { return !two() }, time.Second, glance, "neither file removes a handler")
	write(one)
	require.NoError(t, d.o.Signal(syscall.SIGHUP))
	require.Equal(t, job.SwapPromoted, d.swapped(now).LastSwap.Result, "a mistake has changed nothing, the next configuration is read")
	require.Eventually(t, func() bool { return len(d.o.Handlers("testhandlers")) == 1 }, patience, glance, "the second is gone")
	require.NoError(t, d.o.ShutDown(t.Context()))
}

func TestOperatorsDisableAndEnableAPlugin(t *testing.T) {
	t.Parallel()
	d := deploy(t, "plugins.0.watch=false")
	do := func(verb job.PluginVerb) {
		t.Helper()
		require.NoError(t, d.o.CommandPlugin(t.Context(), "deployed", verb))
	}
	over := filepath.Join(t.TempDir(), "over")
	running := rigtest.Submit(t, d.o, rig.Submission{JobType: "WORK", MaxAttempts: 1, Timeout: "1h", Payload: map[string]any{"when": over}})
	rigtest.AwaitHandlers(t, d.o, 1)
	do(job.DisablePlugin)
	require.NoError(t, os.WriteFile(over, nil, 0o600))
	waits := rigtest.Submit(t, d.o, rig.Submission{JobType: "WORK", MaxAttempts: 1})
	rigtest.Await(t, d.o, running, "COMPLETED")
	require.Eventually(t, func() bool { return len(d.o.Handlers("handlers")) == 0 }, patience, glance, "its process ends")
	d.requireShown(func(p v1.Plugin) bool { return p.State == job.PluginDisabled })
	still, err := d.o.Get(t.Context(), waits)
	require.NoError(t, err)
	require.Equal(t, "PENDING", still.Status)

	do(job.EnablePlugin)
	rigtest.Await(t, d.o, waits, "COMPLETED")
	d.requireShown(func(p v1.Plugin) bool { return len(p.PIDs) == 1 })
	before := d.look()
	do(job.RestartPlugin)
	d.requireShown(func(p v1.Plugin) bool { return !slices.Equal(before.PIDs, p.PIDs) })
	d.install(d.version(1))
	do(job.SwapPlugin)
	d.requireShown(func(p v1.Plugin) bool { return p.SHA256 != before.SHA256 })
	require.NoError(t, d.o.ShutDown(t.Context()))
}

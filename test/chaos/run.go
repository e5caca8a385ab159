//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/census"
	"github.com/holdfast-jobs/holdfast/test/chaos/database"
	"github.com/holdfast-jobs/holdfast/test/chaos/faults"
	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/load"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
	"github.com/holdfast-jobs/holdfast/test/chaos/witness"
)

const (
	lease = 5 * time.Second
	// startWithin bounds the start of everything on a slow machine.
	startWithin = 15 * time.Minute
	// healWithin bounds each healing.
	healWithin = 10 * time.Minute
	// connections is how many each orchestrator may have.
	connections = 12
	// timeout is how long each attempt may take, unless its plugin says otherwise.
	timeout = 30 * time.Second
	// maxCrashes is how many processes may die under a job.
	maxCrashes = 3
	// retryDelay is the wait before the first retry of a job. It grows by retryFactor, up to
	// longestRetry.
	retryDelay   = 300 * time.Millisecond
	retryFactor  = 2
	longestRetry = 3 * time.Second
	// mostOpen is how many jobs may be open until clients wait with more. What is left at the
	// end takes a slow machine long.
	mostOpen = 2000
)

// retries are the waits before retries: at least nine tenths of what is set, and eleven at most.
var retries = history.Backoff{First: retryDelay * 9 / 10, Factor: retryFactor, Most: longestRetry * 9 / 10, Spread: 11.0 / 9}

// options are the flags.
type options struct {
	duration      time.Duration
	grace         time.Duration
	seed          uint64
	dir, programs string
	commit        string
	rate          float64
	clients       int
	aimed         int
	pooler, only  string
	strict, short bool
	alone, plain  bool
	skip          bool
	// chosen says that dir was given.
	chosen bool
}

// run is one run, from its start to its record.
type run struct {
	options
	log     *slog.Logger
	random  *mathrand.Rand
	began   time.Time
	scratch string
	pooled  bool
	noted   map[string]bool // the missing kinds

	cluster *database.Cluster
	witness *witness.Witness
	scene   *faults.Scene
	census  *census.Census
	load    *load.Load
	calls   *history.Lines[history.Call]
	faults  *history.Lines[history.Fault]

	mu       sync.Mutex
	timings  history.Timings
	firsts   []func() history.Nanos
	stale    int
	lost     []loss
	injected []history.Fault
	leaks    history.Leaks
	drained  time.Duration
}

// loss is an orchestrator that could no longer renew its leases.
type loss struct {
	kind, worker string
	// seen says that others on its host could see that.
	seen bool
	at   history.Nanos
}

// now is the time of the record: it never goes back.
func (r *run) now() history.Nanos { return history.Nanos(r.began.Add(time.Since(r.began)).UnixNano()) }

func (r *run) do(ctx context.Context) (err error) {
	r.began, r.noted = time.Now(), make(map[string]bool)
	r.random = mathrand.New(mathrand.NewPCG(r.seed, 1)) //nolint:gosec // repeatable
	third := r.random.IntN(3) == 0
	r.pooled = r.pooler == "yes" || r.pooler == "auto" && third && database.HasPooler()
	if third && !r.pooled && r.pooler == "auto" {
		fmt.Println("note: PgBouncer is not installed, so this run does without")
	}
	if err := r.makeScratch(); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	defer func() {
		if err != nil {
			r.keepLogs()
		}
	}()
	defer func() { r.cluster.Close() }()
	defer r.sweep()
	defer r.end()
	starting, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := r.start(starting); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	defer unwatch()
	var watchers sync.WaitGroup
	watchers.Go(func() { r.witness.Follow(watching) })
	watchers.Go(func() { r.census.Conduct(watching) })
	meter := lag{now: r.now}
	watchers.Go(func() { meter.watch(watching) })
	if err := r.baseline(starting); err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	fmt.Printf("ready after %s; pooler: %t, hosts of their own: %t\n", time.Since(r.began).Round(time.Second), r.pooled, r.scene.Workers[2].Host.Isolated)

	if err := r.startLoad(ctx); err != nil {
		return err
	}
	watchers.Go(func() { r.restrain(watching) })
	r.harm(ctx)
	err = r.settle(ctx)
	r.leaks.Healed = r.usageAtRest(ctx)
	unwatch()
	watchers.Wait()
	r.timings.Lag = meter.measured()
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	if err := errors.Join(err, r.record(ctx)); err != nil {
		return err
	}
	r.summarize()
	return r.check(ctx)
}

func (r *run) start(ctx context.Context) (err error) {
	r.cluster = &database.Cluster{} // something to close
	r.witness = witness.New(r.dir, r.log)
	hosts := []string{"a", "b", "c"}
	cluster, err := database.Start(ctx, database.Config{
		Dir: r.scratch, Orchestrator: filepath.Join(r.programs, "orchestrator"), Synchronous: true, Disks: true, Pooler: r.pooled, Hosts: hosts, Log: r.log,
	}, r.witness)
	if cluster != nil {
		r.cluster = cluster
	}
	if err != nil {
		return err
	}
	plugins, notes := stage.Catalogue(ctx, r.scratch, r.programs, "test/chaos/handlers/scripts", "sdk/node/node_modules", !r.plain)
	refused := stage.MayIsolate(ctx)
	if refused != nil {
		notes = append(notes, "all workers are on one host, without PID namespaces: "+refused.Error())
	}
	isolated := refused == nil
	for _, note := range notes {
		fmt.Println("note:", note)
	}
	password := rand.Text()
	on := func(name string, host stage.Host) (*stage.Orchestrator, error) {
		return stage.New(ctx, name, host, filepath.Join(r.programs, "orchestrator"), filepath.Join(r.scratch, "hosts"),
			filepath.Join(r.scratch, "tmp"), password, settings(r.cluster.URL(host.Name))...)
	}
	r.scene = &faults.Scene{
		Cluster: r.cluster, Plugins: plugins, Lease: lease, Log: r.log, FailedOver: r.failedOver, Lost: r.lose,
		Effects: filepath.Join(r.dir, history.EffectsDir),
		Stale:   func(attempts int) { r.mu.Lock(); defer r.mu.Unlock(); r.stale += attempts },
	}
	for _, worker := range []struct {
		name string
		host stage.Host
	}{{"a1", stage.Host{Name: "a"}}, {"a2", stage.Host{Name: "a"}}, {"b1", stage.Host{Name: "b", Isolated: isolated}}} {
		o, err := on(worker.name, worker.host)
		if err != nil {
			return err
		}
		r.scene.Workers = append(r.scene.Workers, o)
	}
	if r.scene.API, err = on("api", stage.Host{Name: "c"}); err != nil {
		return err
	}
	return r.startOrchestrators(ctx, plugins)
}

func (r *run) startOrchestrators(ctx context.Context, plugins []stage.Plugin) error {
	effects := r.scene.Effects
	if err := os.MkdirAll(effects, 0o755); err != nil {
		return err
	}
	for i, o := range r.scene.Workers {
		for _, plugin := range plugins {
			// Interpreters need time to start: one on each host will do.
			if i == 0 && plugin.Name == "node.mjs" || i == 1 && plugin.Name == "python.py" {
				continue
			}
			if err := o.Install(plugin, effects); err != nil {
				return err
			}
		}
	}
	r.census = census.New(r.now, r.scene.All(), func() map[string]int {
		pids := make(map[string]int)
		for _, server := range []*database.Server{r.cluster.Primary(), r.cluster.Standby()} {
			if pid, err := server.PID(); err == nil {
				pids[server.Name] = pid
			}
		}
		return pids
	})
	r.scene.Census = r.census
	for _, o := range r.scene.All() {
		if err := o.Start(); err != nil {
			return err
		}
	}
	for _, o := range r.scene.All() {
		if err := errors.Join(o.AwaitReady(ctx), census.AwaitPlugins(ctx, o)); err != nil {
			return err
		}
	}
	return nil
}

// settings are those that all orchestrators share.
func settings(url string) []string {
	return []string{
		"database.url=" + url, fmt.Sprintf("database.max_connections=%d", connections), "database.start_wait=1h", "server.request_timeout=3s",
		"worker.lease=" + lease.String(), "worker.kill_grace=500ms", "worker.drain_timeout=5s", "rate_limit.enabled=false",
		"log.format=json", "log.jobs=none", "ui.enabled=false",
		fmt.Sprintf("jobs.default.max_attempts=%d", load.MaxAttempts), "jobs.default.timeout=" + timeout.String(),
		fmt.Sprintf("jobs.default.max_crashes=%d", maxCrashes), fmt.Sprintf("jobs.default.retry.factor=%d", retryFactor),
		"jobs.default.retry.initial_delay=" + retryDelay.String(), "jobs.default.retry.max_delay=" + longestRetry.String(), "jobs.default.retry.jitter_min=0.9",
		"jobs.default.retry.jitter_max=1.1",
	}
}

func (r *run) startLoad(ctx context.Context) (err error) {
	if r.calls, err = history.Create[history.Call](filepath.Join(r.dir, history.CallsFile)); err != nil {
		return fmt.Errorf("record of calls: %w", err)
	}
	if r.faults, err = history.Create[history.Fault](filepath.Join(r.dir, history.FaultsFile)); err != nil {
		return fmt.Errorf("record of faults: %w", err)
	}
	var types []string
	for _, plugin := range r.scene.Plugins {
		types = append(types, plugin.Types...)
	}
	var servers []load.Server
	for _, o := range r.scene.All() {
		servers = append(servers, load.Server{Name: o.Name, Address: o.Address, Password: o.Password})
	}
	servers = append(servers, servers[len(servers)-1]) // the API alone has most of the load
	r.load = load.Start(ctx, load.Config{
		Clients: r.clients, Rate: r.rate, Seed: r.seed, Servers: servers, Types: types, Now: r.now, Calls: r.calls, Brief: r.short,
	})
	return nil
}

// restrain lets clients submit only while not too many jobs are open.
func (r *run) restrain(ctx context.Context) {
	for ; ctx.Err() == nil; wait(ctx, time.Second) {
		if open, err := r.count(ctx, "select count(*) from jobs where finished_at is null"); err == nil {
			r.load.Restrain(open > mostOpen)
		}
	}
}

// failedOver is called at the moment when a new primary accepts writes.
func (r *run) failedOver(kind string, answers time.Time) {
	first := r.load.FirstAccept(answers)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timings.Failovers = append(r.timings.Failovers, history.Failover{Kind: kind, Answers: history.Nanos(answers.UnixNano())})
	r.firsts = append(r.firsts, first)
}

func (r *run) lose(kind string, o *stage.Orchestrator, at time.Time, seen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = append(r.lost, loss{kind: kind, worker: o.Name, seen: seen, at: history.Nanos(at.UnixNano())})
}

// end ends all orchestrators.
func (r *run) end() {
	if r.scene == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for _, o := range r.scene.All() {
		if o == nil {
			continue
		}
		all.Go(func() {
			if r.census != nil {
				r.census.Want(o.Process())
			}
			o.Close(ctx)
		})
	}
	all.Wait()
}

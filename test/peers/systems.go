package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// riverArgument makes this program be River's driver.
const riverArgument = "river-driver"

// system is a job queue that can be measured.
type system interface {
	title() string
	// candidates are the settings that a sweep tries; none if the system has no choice.
	candidates(sweep string) []settings
	// measure runs a scenario once, with the settings that sweeps have chosen, and checks
	// that all jobs were done.
	measure(ctx context.Context, l *lab, s scenario, jobs int, chosen choices) ([]reading, error)
}

func riverPeer(program string) peer {
	return peer{
		name: "River", version: moduleVersion("github.com/riverqueue/river"),
		settings: "One process with the default batch completer. Without a sweep, it has the settings of " +
			"[`river bench`](https://riverqueue.com/docs/benchmarks): " + riverWork[0].String() + " for what runs jobs. " +
			"One at a time: `MaxWorkers` 1, and 1 ms for `FetchCooldown` and `FetchPollInterval`, which is their minimum. " +
			"Inserts with `Insert`, or with `InsertManyFast`. Finished jobs keep their rows, which is the default. " +
			"Nothing brings it nearer to Holdfast: the scenario *kept* is *workoff* once more.",
		defaults: riverWork[0].with(settings{connectionsSetting: 32}), sweeps: connecting(riverWork), guarantees: riverGuarantees,
		driver: []string{program, riverArgument},
		queued: "select count(*) from river_job where state = 'available'",
		done:   "select count(*) from river_job where state = 'completed' and attempt = 1",
	}
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == path {
				return strings.TrimPrefix(dependency.Version, "v")
			}
		}
	}
	return "unknown"
}

// graphileWork are settings for running jobs. The first are those of its documentation,
// in two processes. localQueue is localQueue.size, and a delay completeJobBatchDelay.
var graphileWork = []settings{
	{"processes": 2, "concurrentJobs": 24, "localQueue": 500, "completeJobBatchDelay": 0},
	{"processes": 1, "concurrentJobs": 24, "localQueue": 500, "completeJobBatchDelay": 0},
	{"processes": 4, "concurrentJobs": 24, "localQueue": 500, "completeJobBatchDelay": 0},
	{"processes": 2, "concurrentJobs": 24, "localQueue": 100, "completeJobBatchDelay": 0},
	{"processes": 2, "concurrentJobs": 24, "localQueue": 1000, "completeJobBatchDelay": 0},
	{"processes": 2, "concurrentJobs": 24, "localQueue": 5000, "completeJobBatchDelay": 0},
	{"processes": 2, "concurrentJobs": 96, "localQueue": 500, "completeJobBatchDelay": 0},
	{"processes": 2, "concurrentJobs": 24, "localQueue": 500, "completeJobBatchDelay": 10},
}

// pgBossWork are settings for running jobs: the size of a fetch, and how many fetch.
var pgBossWork = []settings{
	{"loops": 4, "batchSize": 1000},
	{"loops": 1, "batchSize": 1000},
	{"loops": 2, "batchSize": 1000},
	{"loops": 8, "batchSize": 1000},
	{"loops": 4, "batchSize": 100},
	{"loops": 4, "batchSize": 500},
	{"loops": 4, "batchSize": 5000},
	{"loops": 2, "batchSize": 5000},
}

// errNoNode means that this machine cannot run the peers that need Node.js.
var errNoNode = errors.New("no Node.js")

// nodePeers returns Graphile Worker and pg-boss, as npm has installed them in the
// directory.
func nodePeers(ctx context.Context, directory string) ([]peer, error) {
	if _, err := os.Stat(filepath.Join(directory, "node_modules")); err != nil {
		return nil, fmt.Errorf("%w packages: run scripts/npm-ci.sh %s", errNoNode, directory)
	}
	node, err := nodeIn(ctx, directory)
	if err != nil {
		return nil, err
	}
	peers := []peer{
		{
			name: "Graphile Worker", version: packageVersion(directory, "graphile-worker"),
			settings: "Several Node.js processes; `maxPoolSize` is `concurrentJobs` + 1. Without a sweep, they have the settings of " +
				"[its page on performance](https://worker.graphile.org/docs/performance): " + graphileWork[0].String() + ". " +
				"One at a time: one process, `concurrentJobs` 1, no local queue. " +
				"Inserts with `add_job`, or with `add_jobs`. **Finished jobs are deleted:** it neither keeps nor writes any record of them, " +
				"except in *kept*, where a trigger on its private table of jobs writes a row for each in the same transaction.",
			defaults: graphileWork[0].with(settings{connectionsSetting: 32}), sweeps: connecting(graphileWork), guarantees: graphileGuarantees,
			driver:  []string{node, filepath.Join(directory, "graphile.mjs")},
			queued:  "select count(*) from graphile_worker._private_jobs",
			done:    "select count(*) from history where attempts = 1",
			deletes: true,
		},
		{
			name: "pg-boss", version: packageVersion(directory, "pg-boss"),
			settings: "One Node.js process with loops of [`fetch` and `complete`](https://github.com/timgit/pg-boss/blob/master/docs/api/jobs.md), " +
				"because [batches](https://github.com/timgit/pg-boss/issues/195) are what its author advises for speed. Without a sweep: " +
				pgBossWork[0].String() + ". One at a time: one loop, `batchSize` 1. " +
				"Inserts with `send`, or with `insert`. Finished jobs keep their rows, which is the default. In *kept*, the queue has " +
				"`heartbeatSeconds` 30, and `complete` gets the fetched jobs rather than their ids, as its `work` does, so that it checks the attempt.",
			defaults: pgBossWork[0].with(settings{connectionsSetting: 32}), sweeps: connecting(pgBossWork), guarantees: pgBossGuarantees,
			driver: []string{node, filepath.Join(directory, "pgboss.mjs")},
			queued: "select count(*) from pgboss.job where state = 'created'",
			done:   "select count(*) from pgboss.job where state = 'completed' and retry_count = 0",
		},
	}
	version, err := exec.CommandContext(ctx, node, "--version").Output()
	if err != nil {
		return nil, err
	}
	for i := range peers {
		peers[i].version += " on Node.js " + strings.TrimPrefix(strings.TrimSpace(string(version)), "v")
	}
	return peers, nil
}

// nodeIn finds the Node.js that npm has installed, or else the one in the PATH. The
// peers need version 22.18.
func nodeIn(ctx context.Context, directory string) (string, error) {
	architecture := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	node := filepath.Join(directory, "node_modules", "node-"+runtime.GOOS+"-"+architecture, "bin", "node")
	if _, err := os.Stat(node); err == nil {
		return node, nil
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return "", errNoNode
	}
	const enough = "const [a, b] = process.versions.node.split('.'); process.exit(a > 22 || a == 22 && b >= 18 ? 0 : 1)"
	if err := exec.CommandContext(ctx, node, "-e", enough).Run(); err != nil {
		return "", fmt.Errorf("%w of version 22.18 or newer", errNoNode)
	}
	return node, nil
}

func packageVersion(directory, name string) string {
	var told struct{ Version string }
	text, err := os.ReadFile(filepath.Join(directory, "node_modules", name, "package.json"))
	if err != nil || json.Unmarshal(text, &told) != nil {
		return "unknown"
	}
	return told.Version
}

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
	// measure runs a scenario once and checks that all jobs were done.
	measure(ctx context.Context, l *lab, s scenario, jobs int) ([]reading, error)
}

func riverPeer(program string) peer {
	return peer{
		name: "River", version: moduleVersion("github.com/riverqueue/river"),
		settings: "One process with the settings of `river bench`: `MaxWorkers` 2000, `FetchCooldown` 2 ms, " +
			"`FetchPollInterval` 20 ms, the default batch completer. One at a time: `MaxWorkers` 1, and 1 ms for the other two, which is their minimum. " +
			"Inserts with `Insert`, or with `InsertManyFast` and 1,000 jobs a batch. Finished jobs keep their rows, which is the default.",
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
			settings: "Two Node.js processes with the settings that its documentation recommends for performance: `concurrentJobs` 24, `maxPoolSize` 25, " +
				"`localQueue.size` 500, `completeJobBatchDelay` 0. One at a time: one process, `concurrentJobs` 1, no local queue. " +
				"Inserts with `add_job`, or with `add_jobs` and 1,000 jobs a batch. **Finished jobs are deleted:** it neither keeps nor writes any record of them.",
			driver:  []string{node, filepath.Join(directory, "graphile.mjs")},
			queued:  "select count(*) from graphile_worker._private_jobs",
			deletes: true,
		},
		{
			name: "pg-boss", version: packageVersion(directory, "pg-boss"),
			settings: "One Node.js process, four loops of `fetch` with `batchSize` 1,000 and `complete`. One at a time: one loop, `batchSize` 1. " +
				"Inserts with `send`, or with `insert` and 1,000 jobs a batch. Finished jobs keep their rows, which is the default.",
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

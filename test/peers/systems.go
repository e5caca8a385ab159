package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
		settings: "In one process, with the settings of its own `river bench`: `MaxWorkers` 2000, `FetchCooldown` 2 ms, " +
			"`FetchPollInterval` 20 ms, the batch completer as it is. One at a time: `MaxWorkers` 1 and 1 ms for the other two, which is the least it takes. " +
			"Inserts with `Insert`, or with `InsertManyFast` and 1,000 jobs a batch. Done jobs keep their rows, as by default.",
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

//go:embed node/*.mjs node/package.json node/package-lock.json
var nodeFiles embed.FS

// errNoNode says that the peers that need Node cannot run here.
var errNoNode = errors.New("no Node.js")

// nodePeers installs Graphile Worker and pg-boss, in the versions of the lock
// file, below the directory.
func nodePeers(ctx context.Context, directory string) ([]peer, error) {
	if err := install(ctx, directory); err != nil {
		return nil, err
	}
	node, err := nodeIn(ctx, directory)
	if err != nil {
		return nil, err
	}
	peers := []peer{
		{
			name: "Graphile Worker", version: packageVersion(directory, "graphile-worker"),
			settings: "Two Node.js processes with the settings of its documentation's page on performance: `concurrentJobs` 24, `maxPoolSize` 25, " +
				"`localQueue.size` 500, `completeJobBatchDelay` 0. One at a time: one process, `concurrentJobs` 1, no local queue. " +
				"Inserts with `add_job`, or with `add_jobs` and 1,000 jobs a batch. **Done jobs are deleted:** nothing of them is kept, and nothing for it is written.",
			driver:  []string{node, filepath.Join(directory, "graphile.mjs")},
			queued:  "select count(*) from graphile_worker._private_jobs",
			deletes: true,
		},
		{
			name: "pg-boss", version: packageVersion(directory, "pg-boss"),
			settings: "One Node.js process, four loops of `fetch` with `batchSize` 1,000 and `complete`. One at a time: one loop, `batchSize` 1. " +
				"Inserts with `send`, or with `insert` and 1,000 jobs a batch. Done jobs keep their rows, as by default.",
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

// install writes the drivers and runs npm ci, unless what is there is current.
func install(ctx context.Context, directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	lock, err := nodeFiles.ReadFile("node/package-lock.json")
	if err != nil {
		return err
	}
	stamp := filepath.Join(directory, "installed")
	before, _ := os.ReadFile(stamp)
	files, err := fs.ReadDir(nodeFiles, "node")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := nodeFiles.ReadFile("node/" + file.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(directory, file.Name()), text, 0o644); err != nil {
			return err
		}
	}
	if bytes.Equal(before, lock) {
		return nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return fmt.Errorf("%w: npm is not installed", errNoNode)
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
	npm.Dir = directory
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: npm ci: %w\n%s", errNoNode, err, out)
	}
	return os.WriteFile(stamp, lock, 0o644)
}

// nodeIn finds the Node.js that npm has installed, or else one that is new
// enough: the peers want 22.18.
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

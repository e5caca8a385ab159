package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-jobs/holdfast/store/embedded"
	"github.com/stretchr/testify/require"
)

// address is the address of the server that all tests share.
var address string

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == riverArgument {
		main() // The tests' program is River's driver too.
		return
	}
	code, err := withServer(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func withServer(run func() int) (int, error) {
	if address = os.Getenv("HOLDFAST_TEST_DATABASE_URL"); address != "" {
		return run(), nil
	}
	dir, err := os.MkdirTemp("", "holdfast-peers-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// As root, PostgreSQL runs as another user, who must be able to enter.
	if err := os.Chmod(dir, 0o755); err != nil {
		return 0, err
	}
	server, err := embedded.Start(context.Background(), embedded.Config{DataDir: filepath.Join(dir, "postgres"), Ephemeral: true})
	if err != nil {
		return 0, err
	}
	address = server.URL()
	code := run()
	return code, server.Stop(context.Background())
}

// The peers that need Node.js take part if their packages are installed.
func TestEverySystemIsMeasuredInEveryScenario(t *testing.T) {
	orchestrator, err := filepath.Abs("../../bin/peers-test/orchestrator")
	require.NoError(t, err)
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", orchestrator, "./cmd/orchestrator")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	cfg, err := parse([]string{
		"-database", address, "-orchestrator", orchestrator, "-node-dir", "node",
		"-rounds", "1", "-warm-ups", "0", "-sweep", "1", "-jobs", "400", "-pinned",
	}, io.Discard)
	require.NoError(t, err)
	var notes bytes.Buffer
	results, err := measure(t.Context(), cfg, &notes)
	require.NoError(t, err, notes.String())

	names := make([]string, len(results.Systems))
	for i, system := range results.Systems {
		names[i] = system.Name
	}
	if len(results.Missing) == 0 {
		require.Equal(t, []string{"Holdfast", "River", "Graphile Worker", "pg-boss"}, names)
	} else {
		require.Equal(t, []string{"Holdfast", "River"}, names)
	}
	for i, s := range scenarios {
		for _, task := range s.cases {
			for _, name := range names {
				c := results.Scenarios[i].find(task.name, name)
				require.NotNil(t, c, "%s in %s, %s", name, s.name, task.name)
				for _, figure := range []string{rate, wal} {
					require.Positive(t, c.figure(figure).Values[0], "%s of %s in %s, %s", figure, name, s.name, task.name)
				}
			}
		}
	}
	require.Contains(t, string(results.page()), "| River |")
	requireSwept(t, results)
}

// requireSwept checks that each sweep has tried everything, and that the rounds had the
// winners.
func requireSwept(t *testing.T, results *Results) {
	t.Helper()
	names := make([]string, len(results.Sweeps))
	for i, sweep := range results.Sweeps {
		names[i] = sweep.Name
		for _, try := range sweep.Tries {
			require.Len(t, try.Rates, 1, "%s of %s with %s", sweep.Name, try.System, try.Settings)
			if !try.Best {
				continue
			}
			for _, s := range results.Scenarios {
				if c := s.find(sweep.Task, try.System); s.Name == sweep.Scenario {
					for name, value := range try.Settings {
						require.Equal(t, value, c.Settings[name], "%s of %s in %s, %s", name, try.System, s.Name, c.Name)
					}
				}
			}
		}
	}
	require.Equal(t, []string{sweepWork, sweepConnections, sweepBatches, sweepLife}, names)
}

// liar is a driver that claims to have done more jobs than it has.
const liar = `case $1 in *migrate*) n=0;; *) n=7;; esac
echo '{"ready":true}'; read -r go; echo "{\"done\":$n,\"seconds\":1}"; cat`

func TestAPeerIsNotBelieved(t *testing.T) {
	cluster, err := openCluster(t.Context(), address)
	require.NoError(t, err)
	p := peer{name: "liar", driver: []string{"sh", "-c", liar, "liar"}, queued: "select 7", done: "select 6"}
	l := &lab{cluster: cluster}
	_, err = p.measure(t.Context(), l, scenarios[0], 7, nil)
	require.ErrorContains(t, err, "6 instead of 7")
	_, err = p.measure(t.Context(), l, scenarios[0], 8, nil)
	require.ErrorContains(t, err, "7 jobs instead of 8")
	p.done = "select 7"
	readings, err := p.measure(t.Context(), l, scenarios[0], 7, nil)
	require.NoError(t, err)
	require.Equal(t, reading{"many at once", rate, "jobs/s", 7}, readings[0])
}

func TestADriverThatFailsSaysWhy(t *testing.T) {
	_, err := startDriver(t.Context(), []string{"sh", "-c", "echo because >&2; exit 3"}, order{})
	require.ErrorContains(t, err, "because")
}

func TestTheCommandSaysNothingAboutTheMachine(t *testing.T) {
	cfg, err := parse([]string{"-rounds", "2", "-database", address, "-pinned", "-json", "/tmp/x"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "make bench-peers PEERS='-pinned=true -rounds=2'", cfg.command)
	cfg, err = parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "make bench-peers", cfg.command)
	_, err = parse([]string{"-only", "workoff,nothing"}, io.Discard)
	require.ErrorContains(t, err, `"nothing"`)
}

func TestRoundsEndInTime(t *testing.T) {
	cfg, err := parse([]string{"-rounds", "3", "-warm-ups", "1", "-within", "0s"}, io.Discard)
	require.NoError(t, err)
	l := &lab{config: cfg, notes: io.Discard, results: &Results{Began: time.Now()}}
	require.NoError(t, l.allRounds(t.Context(), nil))
	require.Equal(t, 1, l.results.Rounds, "the first round is always measured")
	l.within = time.Hour
	require.NoError(t, l.allRounds(t.Context(), nil))
	require.Equal(t, 3, l.results.Rounds)
}

func TestPinnedIsMeasuredWhenAskedFor(t *testing.T) {
	for arguments, want := range map[string]string{
		"":                     "workoff kept single insert life",
		"-pinned":              "workoff kept single insert life pinned",
		"-only pinned,workoff": "workoff pinned",
	} {
		cfg, err := parse(strings.Fields(arguments), io.Discard)
		require.NoError(t, err)
		var names []string
		for _, s := range cfg.chosen() {
			names = append(names, s.name)
		}
		require.Equal(t, want, strings.Join(names, " "), arguments)
	}
}

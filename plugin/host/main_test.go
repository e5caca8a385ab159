package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// hostile is the path of the test plugin's binary.
var hostile string

// secret must never reach a plugin.
const secret = "canary-5b1f"

func TestMain(m *testing.M) {
	if dir := os.Getenv("HOST_TO_BE_KILLED"); dir != "" {
		hostToBeKilled(dir)
		return
	}
	// Parallel tests wait much of the time, for processes and for timeouts.
	_ = flag.Set("test.parallel", "4")
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	_ = os.Setenv("HOST_TEST_SECRET", secret)
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	hostile = filepath.Join(dir, "hostile")
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", hostile, "./internal/hostile").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build the test plugin: %v\n%s", err, out))
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// soon bounds what must not wait for something that takes a minute or longer. A busy
// machine may need seconds for anything.
const soon = 20 * time.Second

// patience bounds the wait for everything else.
const patience = 2 * time.Minute

// journal keeps what the host logs.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) lines() int { return strings.Count(j.String(), "\n") }

// testHost is a host with helpers for tests.
type testHost struct {
	*Host
	t       *testing.T
	journal *journal
	dir     string
}

func testSettings(dir string, log io.Writer) Settings {
	s := DefaultSettings(dir, slog.New(slog.NewJSONHandler(log, nil)))
	s.keeper = hostile
	// A busy machine is slow to answer, and to report deaths.
	s.ExitWindow = 3 * time.Second
	s.KillGrace = time.Second
	s.HealthPeriod = 100 * time.Millisecond
	s.HealthTimeout = 20 * time.Second
	s.WatchPeriod = 20 * time.Millisecond
	s.WatchStable = 60 * time.Millisecond
	s.Backoff = Backoff{Min: 20 * time.Millisecond, Max: 300 * time.Millisecond, BreakAfter: 3, StableAfter: 10 * time.Second}
	return s
}

// misbehaving configures the test plugin with one process.
func misbehaving(name string, args ...string) Config {
	return Config{
		Name: name, Path: hostile, Args: args, Env: []string{"PATH=" + os.Getenv("PATH")}, Processes: 1, Isolated: DefaultIsolated,
		StartTimeout: patience,
	}
}

// startHost starts a host. At the end of the test it closes the host, and checks that no
// process and no file is left.
func startHost(t *testing.T, change func(*Settings), plugins ...Config) *testHost {
	t.Helper()
	dir := socketDir(t)
	h := &testHost{t: t, journal: &journal{}, dir: dir}
	settings := testSettings(dir, h.journal)
	if change != nil {
		change(&settings)
	}
	var err error
	h.Host, err = Start(t.Context(), settings, plugins)
	require.NoError(t, err)
	t.Cleanup(func() {
		h.closeWithin(100 * time.Millisecond)
		requireNothingLeft(t, dir)
		if t.Failed() {
			t.Log(h.journal.String())
		}
	})
	return h
}

// closeWithin closes the host, gives attempts that long to finish, and returns when every
// process is gone. Close itself gives up after closeTimeout, and a busy machine may need
// longer to end a process.
func (h *testHost) closeWithin(grace time.Duration) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := h.Close(ctx)
	if err != nil {
		require.ErrorContains(h.t, err, "still there")
		select {
		case <-h.closed:
		case <-time.After(patience):
		}
		err = h.Close(ctx)
	}
	require.NoError(h.t, err)
	select {
	case <-h.closed:
	default:
		require.Fail(h.t, "Close returns before every process is gone")
	}
}

// socketDir is short, since the kernel limits the paths of sockets.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "h")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func requireNothingLeft(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "files are left in the socket directory")
	require.Empty(t, processesOf(dir), "processes are left")
}

// processesOf finds the processes that were launched with the socket directory,
// and their descendants.
func processesOf(dir string) []int {
	var pids []int
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		environ, _ := os.ReadFile(path)
		if bytes.Contains(environ, []byte("PLUGIN_UNIX_SOCKET_DIR="+dir+"/")) {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// eventually waits for the condition. It checks after each change of the host and every
// few milliseconds.
func (h *testHost) eventually(condition func() bool, what string) {
	h.t.Helper()
	require.Eventually(h.t, condition, patience, 5*time.Millisecond, what)
}

func (h *testHost) awaitUp(name string, processes int) {
	h.t.Helper()
	h.eventually(func() bool { return len(h.status(name).PIDs) == processes }, name+" comes up")
}

func (h *testHost) fleet(name string) *fleet { return h.roster.Load().byName[name] }

func (h *testHost) status(name string) v1.Plugin {
	for _, s := range h.Status() {
		if s.Name == name {
			return s
		}
	}
	h.t.Fatalf("no plugin %s", name)
	return v1.Plugin{}
}

func (h *testHost) free(name string) int {
	for _, pool := range h.Pools() {
		if pool.Plugin == name {
			return pool.Free
		}
	}
	return 0
}

// report records the reports on an attempt.
type report struct {
	done        chan job.Outcome
	told        chan json.RawMessage
	mu          sync.Mutex
	checkpoints []string
	logged      []job.LogLine
	begun       atomic.Int32
	finished    atomic.Int32
}

func newReport() *report {
	return &report{done: make(chan job.Outcome, 10), told: make(chan json.RawMessage, 10)}
}

func (r *report) Began() { r.begun.Add(1) }

func (r *report) Finished(o job.Outcome) {
	r.finished.Add(1)
	r.done <- o
}

func (r *report) Progress(p json.RawMessage) <-chan struct{} {
	r.told <- p
	return nil
}

func (r *report) Checkpoint(c json.RawMessage) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checkpoints = append(r.checkpoints, string(c))
	return nil
}

func (r *report) Log(line job.LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logged = append(r.logged, line)
}

func assignment(payload string) job.Assignment {
	return job.Assignment{
		Claimed: job.Claimed{
			Type: "TEST", Tenant: job.DefaultTenant, Payload: json.RawMessage(payload),
			Lease: job.Lease{Fence: 7}, Attempt: 1, MaxAttempts: 3, Timeout: time.Minute, CreatedAt: time.Now(),
		},
		LeaseFor: 2 * patience, // so that no slow machine ends it
	}
}

func do(what string) string { return fmt.Sprintf(`{"do":%q}`, what) }

// begin starts an attempt as soon as a slot is free.
func (h *testHost) begin(name, payload string) (job.Run, *report) {
	h.t.Helper()
	r := newReport()
	var run job.Run
	h.eventually(func() bool {
		var err error
		run, err = h.Start(name, assignment(payload), r)
		return err == nil
	}, "a slot of "+name+" is free")
	return run, r
}

// run starts an attempt and returns how it ends.
func (h *testHost) run(name, payload string) job.Outcome {
	h.t.Helper()
	_, r := h.begin(name, payload)
	return h.outcome(r)
}

func (h *testHost) outcome(r *report) job.Outcome {
	h.t.Helper()
	select {
	case outcome := <-r.done:
		return outcome
	case <-time.After(patience):
		h.t.Log(h.journal.String())
		h.t.Fatal("the attempt does not end")
		return job.Outcome{}
	}
}

func (h *testHost) progress(r *report) string {
	h.t.Helper()
	select {
	case p := <-r.told:
		return string(p)
	case <-time.After(patience):
		h.t.Fatal("no progress")
		return ""
	}
}

// hostToBeKilled runs a host in its own process. It prints the ids of the plugin
// process and of its children, and then waits to be killed. It does not renew the lease
// of its attempt.
func hostToBeKilled(dir string) {
	hostile = os.Getenv("HOST_TO_BE_KILLED_PLUGIN")
	settings := testSettings(dir, io.Discard)
	settings.Cgroup = os.Getenv("HOST_TO_BE_KILLED_CGROUP")
	h, err := Start(context.Background(), settings, []Config{misbehaving("good", "-mode", os.Getenv("HOST_TO_BE_KILLED_MODE"))})
	if err != nil {
		panic(err)
	}
	for len(h.Pools()) == 0 {
		<-h.Changed()
	}
	pids := []any{h.Status()[0].PIDs[0]}
	for _, payload := range []string{`{"do":"spawn"}`, `{"do":"spawn","n":1}`, `{"do":"spawn","n":2}`} {
		r := newReport()
		if _, err := h.Start("good", assignment(payload), r); err != nil {
			panic(err)
		}
		pids = append(pids, string((<-r.done).Result))
	}
	leased := assignment(do("ignore"))
	if leased.LeaseFor, err = time.ParseDuration(os.Getenv("HOST_TO_BE_KILLED_LEASE")); err != nil {
		panic(err)
	}
	if _, err := h.Start("good", leased, newReport()); err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, pids...)
	select {}
}

// victim says how to run hostToBeKilled.
type victim struct {
	mode, cgroup string
	lease        time.Duration
}

// run runs hostToBeKilled, and returns it with the ids it has printed.
func (v victim) run(t *testing.T, dir string) (host *os.Process, family []int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "HOST_TO_BE_KILLED="+dir, "HOST_TO_BE_KILLED_PLUGIN="+hostile,
		"HOST_TO_BE_KILLED_MODE="+v.mode, "HOST_TO_BE_KILLED_CGROUP="+v.cgroup, "HOST_TO_BE_KILLED_LEASE="+v.lease.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	for _, word := range strings.Fields(line) {
		pid, err := strconv.Atoi(word)
		require.NoError(t, err, line)
		require.True(t, alive(pid))
		family = append(family, pid)
	}
	return cmd.Process, family
}

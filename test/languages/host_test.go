package languages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// path is a PATH that finds this interpreter first.
func (l interpreted) path() string { return filepath.Dir(l.interpreter) + ":/usr/bin:/bin" }

// config configures the test plugin.
func (l interpreted) config(args ...string) host.Config {
	return host.Config{
		Name: "test", Path: l.interpreter, Args: append([]string{l.handler}, args...),
		Env: []string{"PATH=" + os.Getenv("PATH"), "GIVEN=yes"}, Processes: 1, StartTimeout: patience,
	}
}

func settings(dir string, log io.Writer) host.Settings {
	s := host.DefaultSettings(dir, slog.New(slog.NewJSONHandler(log, nil)))
	s.HealthPeriod = 100 * time.Millisecond
	s.Backoff.Min = 20 * time.Millisecond
	s.LinesPerSecond = 10_000
	return s
}

// supervisor is a host with the test plugin in one language.
type supervisor struct {
	*host.Host
	t       *testing.T
	journal *journal
}

// supervise starts the test plugin. At the end of the test it checks that nothing of it
// is left.
func supervise(t *testing.T, plugin host.Config, changes ...func(*host.Settings)) *supervisor {
	t.Helper()
	dir, err := os.MkdirTemp("", "h") // short: the kernel limits the path of a socket
	require.NoError(t, err)
	s := &supervisor{t: t, journal: &journal{}}
	settings := settings(dir, s.journal)
	for _, change := range changes {
		change(&settings)
	}
	s.Host, err = host.Start(t.Context(), settings, []host.Config{plugin})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.journal.String())
		}
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		require.NoError(t, s.Close(ctx))
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "files are left in the socket directory")
		_ = os.RemoveAll(dir)
	})
	late := time.After(patience)
	for len(s.Pools()) == 0 {
		select {
		case <-s.Changed():
		case <-late:
			require.FailNow(t, "the handler does not come up", "%+v", s.Status())
		}
	}
	return s
}

func (s *supervisor) status() v1.Plugin { return s.Status()[0] }

func (s *supervisor) pid() int { return s.status().PIDs[0] }

// report records what an attempt reports.
type report struct {
	ended       chan job.Outcome
	progress    chan string
	mu          sync.Mutex
	checkpoints []string
	lines       []job.LogLine
}

func (r *report) Began() {}

func (r *report) Finished(outcome job.Outcome) { r.ended <- outcome }

func (r *report) Progress(value json.RawMessage) <-chan struct{} {
	select {
	case r.progress <- string(value):
	default:
	}
	return nil
}

func (r *report) Checkpoint(value json.RawMessage) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checkpoints = append(r.checkpoints, string(value))
	return nil
}

func (r *report) Log(line job.LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

// logged are the log lines of an attempt that has ended.
func (r *report) logged() []job.LogLine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines
}

func (r *report) lastCheckpoint() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.checkpoints) == 0 {
		return ""
	}
	return r.checkpoints[len(r.checkpoints)-1]
}

// assignment is an attempt with the payload for the test plugin.
func assignment(payload string, changes ...func(*job.Assignment)) job.Assignment {
	a := job.Assignment{
		Claimed: job.Claimed{
			Type: "TEST", Tenant: job.DefaultTenant, Payload: json.RawMessage(payload),
			Attempt: 2, MaxAttempts: 3, Timeout: patience, CreatedAt: time.Now(),
		},
		LeaseFor: patience,
	}
	for _, change := range changes {
		change(&a)
	}
	return a
}

// onLoop runs the job on Python's event loop.
func onLoop(a *job.Assignment) { a.Type = "LOOP" }

// begin starts an attempt as soon as a slot is free.
func (s *supervisor) begin(payload string, changes ...func(*job.Assignment)) (job.Run, *report) {
	s.t.Helper()
	r := &report{ended: make(chan job.Outcome, 1), progress: make(chan string, 1000)}
	var run job.Run
	require.Eventually(s.t, func() bool {
		var err error
		run, err = s.Start("test", assignment(payload, changes...), r)
		return err == nil
	}, patience, 5*time.Millisecond, "a slot is free")
	return run, r
}

// run runs an attempt to its end.
func (s *supervisor) run(payload string, changes ...func(*job.Assignment)) job.Outcome {
	s.t.Helper()
	_, r := s.begin(payload, changes...)
	return s.outcome(r)
}

func (s *supervisor) outcome(r *report) job.Outcome {
	s.t.Helper()
	select {
	case outcome := <-r.ended:
		return outcome
	case <-time.After(patience):
		s.t.Log(s.journal.String())
		require.FailNow(s.t, "the attempt does not end")
		return job.Outcome{}
	}
}

func (s *supervisor) progress(r *report) string {
	s.t.Helper()
	select {
	case value := <-r.progress:
		return value
	case outcome := <-r.ended:
		require.FailNow(s.t, "the attempt ends without progress", "%+v", outcome)
	case <-time.After(patience):
		require.FailNow(s.t, "the attempt reports no progress")
	}
	return ""
}

func (s *supervisor) awaitWords(words ...string) {
	s.t.Helper()
	for _, wanted := range words {
		require.Eventually(s.t, func() bool { return strings.Contains(s.journal.String(), wanted) },
			patience, 10*time.Millisecond, "the log says %s", wanted)
	}
}

func do(what string) string { return fmt.Sprintf(`{"do":%q}`, what) }

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

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// patience limits every wait for something that should happen soon.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEchoCanBeCalledLikeAnyFunction(t *testing.T) {
	require.NoError(t, Echo(t.Context(), plugin.Job[Args]{Args: Args{Text: "hold fast"}}))
}

func TestEchoSaysWhatItIsWhenRunByHand(t *testing.T) {
	byHand := exec.CommandContext(t.Context(), build(t))
	var stderr bytes.Buffer
	byHand.Stderr = &stderr
	err := byHand.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, stderr.String(), "It has handlers for the job types\n\n  ECHO\n")
}

func TestEchoLogsTheTextOfItsJob(t *testing.T) {
	var journal journal
	settings := host.DefaultSettings(t.TempDir(), slog.New(slog.NewJSONHandler(&journal, nil)))
	handlers, err := host.Start(t.Context(), settings, []host.Config{{Name: "echo", Path: build(t), Processes: 1, StartTimeout: patience}})
	require.NoError(t, err)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, handlers.Close(ctx))
	}()
	awaitUp(t, handlers)
	require.Equal(t, "ECHO", handlers.Types()[0].Type)

	require.Equal(t, job.Success, run(t, handlers, `{"text": "Grüße, 世界"}`).Kind)
	require.Contains(t, journal.String(), `"msg":"echo"`)
	require.Contains(t, journal.String(), `"attributes":{"text":"Grüße, 世界"}`)

	misfit := run(t, handlers, `{"text": 7}`)
	require.Equal(t, job.PermanentFailure, misfit.Kind)
	require.Equal(t, "bad_payload", misfit.Code)
}

func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "echo")
	said, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput()
	require.NoError(t, err, "%s", said)
	return path
}

func awaitUp(t *testing.T, handlers *host.Host) {
	t.Helper()
	late := time.After(patience)
	for len(handlers.Pools()) == 0 {
		select {
		case <-handlers.Changed():
		case <-late:
			require.FailNow(t, "the plugin did not start", "%+v", handlers.Status())
		}
	}
}

// run runs one job to its end.
func run(t *testing.T, handlers *host.Host, payload string) job.Outcome {
	t.Helper()
	ended := make(reporter, 1)
	_, err := handlers.Start("echo", job.Assignment{
		Claimed: job.Claimed{
			Type: "ECHO", Tenant: job.DefaultTenant, Payload: json.RawMessage(payload),
			Attempt: 1, MaxAttempts: 1, Timeout: patience,
		},
		LeaseFor: patience,
	}, ended)
	require.NoError(t, err)
	select {
	case outcome := <-ended:
		return outcome
	case <-time.After(patience):
		require.FailNow(t, "the job did not end")
		return job.Outcome{}
	}
}

// reporter passes on the outcome of the attempt.
type reporter chan job.Outcome

func (r reporter) Began()                                     {}
func (r reporter) Finished(outcome job.Outcome)               { r <- outcome }
func (r reporter) Progress(json.RawMessage) <-chan struct{}   { return nil }
func (r reporter) Checkpoint(json.RawMessage) <-chan struct{} { return nil }
func (r reporter) Log(job.LogLine)                            {}

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

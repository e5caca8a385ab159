package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// patience bounds every wait for something that should happen soon.
const patience = 2 * time.Minute

// binaryDir is where binary builds; TestMain removes it.
var binaryDir string

// binary builds the program, once for all tests: linking it takes seconds.
var binary = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(binaryDir, "handlers")
	said, err := exec.CommandContext(context.Background(), "go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return path, err
})

func TestTheBinaryServesItsTypes(t *testing.T) {
	handlers := launch(t, "HTTP_REQUEST_ALLOW_PRIVATE=false")
	declared := map[string]job.TypeSpec{}
	for _, spec := range handlers.Types() {
		declared[spec.Type] = spec
	}
	require.Len(t, declared, 5)
	require.Greater(t, declared["SLEEP_JOB"].Timeout, 300*time.Second)
	require.Greater(t, declared["HTTP_REQUEST"].Timeout, maxRequestSeconds*time.Second)
	requireMembers(t, declared["SLEEP_JOB"].Schema, "sleepSeconds")
	require.NotContains(t, string(declared["FAIL_JOB"].Schema), "required")
	requireMembers(t, declared["SEND_EMAIL"].Schema, "to", "subject")
	requireMembers(t, declared["HTTP_REQUEST"].Schema, "method", "url")
	require.Contains(t, string(declared["SLEEP_JOB"].Schema), `{"type":"integer","maximum":300,"minimum":1}`)

	cases := map[string]struct {
		jobType, payload string
		want             job.OutcomeKind
		code             string
	}{
		"it sleeps":               {"SLEEP_JOB", `{"sleepSeconds": 1}`, job.Success, ""},
		"it sleeps not at all":    {"SLEEP_JOB", `{"sleepSeconds": 0}`, job.PermanentFailure, "bad_payload"},
		"it fails":                {"FAIL_JOB", `{}`, job.Failure, ""},
		"it calls nobody at home": {"HTTP_REQUEST", `{"method": "GET", "url": "http://127.0.0.1/"}`, job.PermanentFailure, "private_address"},
		"it knows no mail server": {"SEND_EMAIL", `{"to": "a@example.com", "subject": "s", "text": "t"}`, job.Failure, "not_configured"},
		"it has no secret":        {"WEBHOOK", `{"url": "http://127.0.0.1/", "event": {}}`, job.Failure, "not_configured"},
		"it sends to nobody":      {"SEND_EMAIL", `{"to": 7, "subject": "s", "text": "t"}`, job.PermanentFailure, "bad_payload"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ended := run(t, handlers, c.jobType, c.payload)
			require.Equal(t, c.want, ended.Kind, ended.Message)
			require.Equal(t, c.code, ended.Code)
		})
	}
}

// requireMembers checks which members of a payload its schema requires.
func requireMembers(t *testing.T, schema json.RawMessage, names ...string) {
	t.Helper()
	var payload struct {
		Type     string
		Required []string
	}
	require.NoError(t, json.Unmarshal(schema, &payload))
	require.Equal(t, "object", payload.Type)
	require.Equal(t, names, payload.Required)
}

// launch has the binary supervised until the test ends.
func launch(t *testing.T, environment ...string) *host.Host {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	handlers, err := host.Start(t.Context(), host.DefaultSettings(t.TempDir(), slog.New(slog.DiscardHandler)),
		[]host.Config{{Name: "builtin", Path: path, Env: environment, Processes: 1, StartTimeout: patience}})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, handlers.Close(ctx))
	})
	late := time.After(patience)
	for len(handlers.Pools()) == 0 {
		select {
		case <-handlers.Changed():
		case <-late:
			require.FailNow(t, "the plugin does not come up", "%+v", handlers.Status())
		}
	}
	return handlers
}

// run runs one job to its end.
func run(t *testing.T, handlers *host.Host, jobType, payload string) job.Outcome {
	t.Helper()
	ended := make(reporter, 1)
	_, err := handlers.Start("builtin", job.Assignment{
		Claimed: job.Claimed{
			Type: jobType, Tenant: job.DefaultTenant, Payload: json.RawMessage(payload),
			Attempt: 1, MaxAttempts: 1, Timeout: patience,
		},
		LeaseFor: patience,
	}, ended)
	require.NoError(t, err)
	select {
	case outcome := <-ended:
		return outcome
	case <-time.After(patience):
		require.FailNow(t, "the job does not end")
		return job.Outcome{}
	}
}

// reporter hands on how the attempt ends.
type reporter chan job.Outcome

func (r reporter) Began()                                     {}
func (r reporter) Finished(outcome job.Outcome)               { r <- outcome }
func (r reporter) Progress(json.RawMessage) <-chan struct{}   { return nil }
func (r reporter) Checkpoint(json.RawMessage) <-chan struct{} { return nil }
func (r reporter) Log(job.LogLine)                            {}

package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

// ledger is a database with a job in each of some states.
type ledger struct {
	url   string
	store *store.Store
	// names has what stands for an id in a command line, by id.
	names map[string]string
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	url := pgtest.URL(t)
	l := &ledger{url: url, store: storetest.Open(t, url, 4), names: map[string]string{}}
	require.NoError(t, l.store.DeclareTypes(t.Context(), []job.TypeSpec{{
		Type: "ECHO", Plugin: "test", Version: "v1", MaxAttempts: 3, Timeout: time.Minute, Retry: job.DefaultRetryPolicy(),
		Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
	}}))
	for _, name := range []string{"SUCCEEDED", "DEAD", "DEAD2"} {
		l.submit(t, name, func(*job.Submission) {})
		l.end(t, name)
	}
	l.submit(t, "QUEUED", func(s *job.Submission) { s.Tags, s.Priority = []string{"urgent"}, 9 })
	l.submit(t, "SCHEDULED", func(s *job.Submission) { s.Delay = time.Hour })
	l.submit(t, "HELD", func(s *job.Submission) { s.Hold, s.Tenant = true, "acme" })
	return l
}

func (l *ledger) submit(t *testing.T, name string, change func(*job.Submission)) {
	t.Helper()
	id, err := uuid.NewV7()
	require.NoError(t, err)
	s := job.Submission{
		ID: job.ID(id), Type: "ECHO", Tenant: job.DefaultTenant, Payload: []byte(`{"n":1}`), MaxAttempts: 3, Timeout: time.Minute,
	}
	change(&s)
	require.NoError(t, l.store.Submit(t.Context(), []job.Submission{s})[0].Err)
	l.names[s.ID.String()] = name
}

// end runs the only job that is queued.
func (l *ledger) end(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, l.store.RegisterWorker(t.Context(), job.Worker{ID: "worker-1", Host: "here", PID: 17, Roles: job.AllRoles()}, time.Minute))
	claimed, err := l.store.Claim(t.Context(), "worker-1", []string{"ECHO"}, 1, time.Minute)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	settlement := job.Settlement{
		Lease: claimed[0].Lease, Decision: job.Decision{To: job.Succeeded, Kind: job.Success, Attempt: 1},
		Number: 1, Result: []byte(`{"text":"\u001b[2J"}`), Plugin: "test", Version: "v1",
	}
	if name != "SUCCEEDED" {
		settlement.Decision, settlement.Result = job.Decision{To: job.Dead, Kind: job.PermanentFailure, Attempt: 1}, nil
		settlement.Code, settlement.Error, settlement.Stack = "BROKEN", "it broke\nbadly", "main.go:1"
	}
	fates, err := l.store.Settle(t.Context(), []job.Settlement{settlement})
	require.NoError(t, err)
	require.Equal(t, []job.SettleResult{job.Settled}, fates)
}

// serve serves the API on the ledger and returns its address.
func (l *ledger) serve(t *testing.T, access *guard.Access) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	jobs, closeJobs, err := directJobs(l.store, job.Cell{}, config.Jobs{}, job.RetentionPolicies{}, job.EventLog{}, log)
	require.NoError(t, err)
	t.Cleanup(func() { closeJobs(context.WithoutCancel(t.Context())) })
	settings := api.Config{
		Jobs: jobs, Operations: l.store, Rules: jobs.Service, Schedules: jobs.Service, Workflows: jobs, Log: log,
		MaxBodyBytes: api.DefaultMaxBodyBytes, MaxBatchBytes: api.DefaultMaxBatchBytes, RequestTimeout: api.DefaultRequestTimeout,
	}
	if access != nil {
		settings.Guard = guard.New(guard.Config{Access: access, Log: log})
	}
	server := httptest.NewServer(api.New(settings))
	t.Cleanup(server.Close)
	return server.URL
}

// outcome is what a command line came to.
type outcome struct {
	code           int
	stdout, stderr string
}

func executeWith(t *testing.T, stdin io.Reader, environ []string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	p := program{stdin: stdin, stdout: &out, stderr: &errs, environ: environ, assemble: assemble}
	code := p.run(t.Context(), args)
	return outcome{code, out.String(), errs.String()}
}

var (
	anyID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	anyAge  = regexp.MustCompile(`\b\d+(\.\d+)?(s|ms|µs|m\d\ds)\b`)
	anySpan = regexp.MustCompile(`(Seconds|ByJobType|ECHO)":(\{"ECHO":)?[0-9.e-]+`)
	cursor  = regexp.MustCompile(`("nextCursor":"|--cursor )[\w-]+`)
	blanks  = regexp.MustCompile(` +`)
)

// plain leaves out of an output what differs from run to run.
func (l *ledger) plain(text string) string {
	for id, name := range l.names {
		text = strings.ReplaceAll(text, id, name)
	}
	text = anyID.ReplaceAllString(text, "ID")
	text = anyTime.ReplaceAllString(text, "TIME")
	text = anyAge.ReplaceAllString(text, "AGE")
	text = anySpan.ReplaceAllString(text, "$1:SPAN")
	text = cursor.ReplaceAllString(text, "${1}CURSOR")
	return blanks.ReplaceAllString(text, " ")
}

// fill puts ids in place of their names.
func (l *ledger) fill(args []string) []string {
	filled := make([]string, len(args))
	for i, arg := range args {
		filled[i] = arg
		for id, name := range l.names {
			if arg == name {
				filled[i] = id
			}
		}
	}
	return filled
}

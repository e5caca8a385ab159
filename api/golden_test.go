package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

var update = flag.Bool("update", false, "write the goldens anew")

// ledgers are the ports that the API reads jobs through.
type ledgers interface {
	api.Jobs
	api.Operations
	api.Rules
	api.Retention
	api.Bulk
	api.Schedules
	api.Workflows
	api.AllPlugins
	audit.Log
	guard.Logins
}

// newAPI is the API with every answer checked against its description.
func newAPI(t testing.TB, jobs ledgers) http.Handler {
	t.Helper()
	return documented(t, undocumented(jobs))
}

func undocumented(jobs ledgers) http.Handler {
	return api.New(api.Config{
		Jobs: jobs, Operations: jobs, Rules: jobs, Retention: jobs, Bulk: jobs, Schedules: jobs, Workflows: jobs, AllPlugins: jobs, Audit: jobs, Logins: jobs, Log: slog.New(slog.DiscardHandler), Version: "test",
		MaxBodyBytes: 4096, MaxBatchBytes: 64 << 10, RequestTimeout: time.Minute,
	})
}

// send makes a request; headers are "Name: value".
func send(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(context.Background(), method, path, reader)
	if method != http.MethodGet && body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Content-Type" {
			r.Header.Del(name)
		}
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

// transcript is the answer in the form of a golden file.
func transcript(w *httptest.ResponseRecorder) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", w.Code, http.StatusText(w.Code))
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range w.Header() {
			if !yield(name) {
				return
			}
		}
	}) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(w.Header()[name], ", "))
	}
	b.WriteString("\n" + w.Body.String())
	return uuids.ReplaceAllString(b.String(), "<uuid>")
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

const (
	known   = "/jobs/00000000-0000-7000-8000-000000000001"
	unknown = "/jobs/00000000-0000-7000-8000-0000000000ff"
)

func jobIn(state job.State) func(*ledger) {
	return func(l *ledger) {
		id, _ := job.ParseID(strings.TrimPrefix(known, "/jobs/"))
		l.jobs[id] = job.View{ID: id, Type: "SLEEP_JOB", Tenant: "acme", State: state, CreatedAt: birth, UpdatedAt: later}
	}
}

func finished(l *ledger) {
	jobIn(job.Succeeded)(l)
	for id, v := range l.jobs {
		v.StartedAt, v.FinishedAt = &birth, &later
		v.Progress, v.Result = json.RawMessage(`{"done":1.0}`), json.RawMessage(`"<a>\u0000 12345678901234567890"`)
		l.jobs[id] = v
	}
}

func failing(err error) func(*ledger) { return func(l *ledger) { l.fails = err } }

// ndjson is the header for a body of lines.
var ndjson = []string{"Content-Type: application/x-ndjson"}

const minimal = `{"jobType":"SLEEP_JOB","payload":{"sleepSeconds":5}}`

func TestAnswersAreAsAgreed(t *testing.T) {
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		given                    func(*ledger)
	}{
		{name: "submit", method: "POST", path: "/jobs", body: minimal},
		{name: "submit-scheduled", method: "POST", path: "/jobs", body: `{"jobType":"SLEEP_JOB","delay":"1h"}`},
		{name: "submit-unknown-type", method: "POST", path: "/jobs", body: `{"jobType":"NOBODYS_JOB"}`},
		{name: "submit-everything-wrong", method: "POST", path: "/jobs", body: `{"payload":1,"priority":1e9,"maxAttempts":0,"timeout":30,"delay":"-1s","runAt":"tomorrow","tenant":"","tags":["a",7],"hold":"yes","idempotencyKey":"a\u0000b","JOBTYPE":"x","a/b~ü":1,"payload":2}`},
		{name: "submit-terms-wrong", method: "POST", path: "/jobs", body: `{"jobType":"A","concurrencyKey":7,"concurrencyLimit":0,"onConflict":"cancel","fairnessKey":"","expiresAt":"soon","ttl":"-1s","uniqueFor":"1y","uniqueWhile":"running","uniqueBy":["customerId"]}`},
		{name: "submit-contradictions", method: "POST", path: "/jobs", body: `{"jobType":"A","runAt":"2031-01-01T00:00:00Z","delay":"2h","expiresAt":"2030-01-01T00:00:00Z","ttl":"1h","uniqueFor":"1h","uniqueWhile":"open"}`},
		{name: "submit-terms-without-a-key", method: "POST", path: "/jobs", body: `{"jobType":"A","concurrencyLimit":1,"onConflict":"queue","expiresAt":"2020-01-01T00:00:00Z"}`},
		{name: "submit-not-an-object", method: "POST", path: "/jobs", body: `[1]`},
		{name: "submit-not-json", method: "POST", path: "/jobs", body: "{\n  \"jobType\": nope\n}"},
		{name: "submit-not-utf8", method: "POST", path: "/jobs", body: "{\"jobType\":\"\xff\"}"},
		{name: "submit-cut-short", method: "POST", path: "/jobs", body: `{"jobType":"A"`},
		{name: "submit-two-values", method: "POST", path: "/jobs", body: minimal + minimal},
		{name: "submit-blank", method: "POST", path: "/jobs", body: " "},
		{name: "submit-too-deep", method: "POST", path: "/jobs", body: `{"payload":` + strings.Repeat("[", 1000)},
		{name: "submit-too-large", method: "POST", path: "/jobs", body: `{"payload":"` + strings.Repeat("x", 5000)},
		{name: "submit-as-form", method: "POST", path: "/jobs", body: minimal, headers: []string{"Content-Type: application/x-www-form-urlencoded"}},
		{name: "submit-cross-origin", method: "POST", path: "/jobs", body: minimal, headers: []string{"Sec-Fetch-Site: cross-site"}},
		{name: "submit-two-keys", method: "POST", path: "/jobs", body: `{"jobType":"A","idempotencyKey":"one"}`, headers: []string{`Idempotency-Key: "two"`}},
		{name: "list-busy", method: "GET", path: "/jobs", given: failing(fmt.Errorf("list: %w", job.ErrBusy))},
		{name: "submit-unavailable", method: "POST", path: "/jobs", body: minimal, given: failing(fmt.Errorf("submit: %w", job.ErrUnavailable))},
		{name: "submit-bad-data", method: "POST", path: "/jobs", body: minimal, given: failing(job.ErrBadData)},
		{name: "submit-broken", method: "POST", path: "/jobs", body: minimal, given: failing(errors.New("secret detail"))},
		{name: "submit-panic", method: "POST", path: "/jobs", body: minimal, given: func(l *ledger) { l.panics = "secret detail" }},

		{name: "batch", method: "POST", path: "/jobs/batch", body: `[` + minimal + `,{"jobType":"A","hold":true}]`},
		{name: "batch-empty", method: "POST", path: "/jobs/batch", body: ` [ ] `},
		{name: "batch-lines", method: "POST", path: "/jobs/batch", body: minimal + "\n\n" + minimal, headers: ndjson},
		{name: "batch-mistakes", method: "POST", path: "/jobs/batch", body: `[` + minimal + `,7,{"jobType":"NOBODYS_JOB"},{"jobType":"A","tags":["x",1],"a/b":0}]`},
		{name: "batch-mistakes-in-lines", method: "POST", path: "/jobs/batch", body: minimal + "\n{}", headers: ndjson},
		{name: "batch-broken", method: "POST", path: "/jobs/batch", body: "[" + minimal + ",\n {\"jobType\": A}]"},
		{name: "batch-broken-line", method: "POST", path: "/jobs/batch", body: minimal + "\n\n {\"jobType\": A}\n", headers: ndjson},
		{name: "batch-cut-short", method: "POST", path: "/jobs/batch", body: "[" + minimal + ",\n"},
		{name: "batch-not-an-array", method: "POST", path: "/jobs/batch", body: minimal},
		{name: "batch-item-too-large", method: "POST", path: "/jobs/batch", body: `[` + minimal + `,{"jobType":"A","payload":"` + strings.Repeat("x", 5000) + `"}]`},
		{name: "batch-too-large", method: "POST", path: "/jobs/batch", body: "[" + strings.Repeat(minimal+",", 2000)},
		{name: "batch-with-a-key", method: "POST", path: "/jobs/batch", body: `[]`, headers: []string{"Idempotency-Key: k"}},
		{name: "batch-as-form", method: "POST", path: "/jobs/batch", body: `[]`, headers: []string{"Content-Type: application/x-www-form-urlencoded"}},
		{
			name: "batch-key-reused", method: "POST", path: "/jobs/batch", body: `[{"jobType":"A","idempotencyKey":"k"},{"jobType":"B","idempotencyKey":"k"}]`,
		},
		{name: "batch-bad-data", method: "POST", path: "/jobs/batch", body: `[` + minimal + `]`, given: failing(job.ErrBadData)},
		{name: "submit-unknown", method: "POST", path: "/jobs", body: minimal, given: failing(fmt.Errorf("submit: %w: %w", job.ErrUnavailable, job.ErrOutcomeUnknown))},
		{name: "batch-unavailable", method: "POST", path: "/jobs/batch", body: `[` + minimal + `]`, given: failing(fmt.Errorf("submit: %w", job.ErrUnavailable))},
		{
			name: "batch-each", method: "POST", path: "/jobs/batch?atomic=false", body: `[{"jobType":"A","idempotencyKey":"k"},{},{"jobType":"B","idempotencyKey":"k"},{"jobType":"A","idempotencyKey":"k"},{"jobType":"BAD"}]`,
			given: func(l *ledger) { l.refuses = map[string]error{"BAD": job.ErrBadData} },
		},
		{name: "batch-each-broken", method: "POST", path: "/jobs/batch?atomic=false", body: `[` + minimal + `,`},
		{name: "batch-each-line", method: "POST", path: "/jobs/batch?atomic=false", body: minimal + "\n{}\n\nnope\n" + minimal, headers: ndjson},
		{name: "batch-each-line-empty", method: "POST", path: "/jobs/batch?atomic=false", body: "\n", headers: ndjson},
		{name: "batch-each-line-unavailable", method: "POST", path: "/jobs/batch?atomic=false", body: minimal, headers: ndjson, given: failing(job.ErrUnavailable)},
		{name: "batch-each-line-panic", method: "POST", path: "/jobs/batch?atomic=false", body: minimal, headers: ndjson, given: func(l *ledger) { l.panics = "secret detail" }},
		{name: "batch-bad-query", method: "POST", path: "/jobs/batch?atomic=maybe&all=1", body: `[]`},

		{name: "get-pending", method: "GET", path: known, given: jobIn(job.Retry)},
		{name: "get-finished", method: "GET", path: known, given: finished},
		{name: "get-unknown", method: "GET", path: unknown},
		{name: "tree", method: "GET", path: known + "/tree", given: busy},
		{name: "tree-unknown", method: "GET", path: unknown + "/tree"},
		{name: "tree-bad-query", method: "GET", path: known + "/tree?depth=0&root=perhaps&deep=1", given: busy},
		{name: "get-bad-id", method: "GET", path: "/jobs/not-a-uuid"},
		{name: "cancel-waiting", method: "POST", path: known + "/cancel", given: jobIn(job.Queued)},
		{name: "cancel-running", method: "POST", path: known + "/cancel", given: jobIn(job.Running)},
		{name: "cancel-finished", method: "POST", path: known + "/cancel", given: jobIn(job.Succeeded)},
		{name: "cancel-unknown", method: "POST", path: unknown + "/cancel"},
		{name: "list", method: "GET", path: "/jobs?limit=1&status=PENDING", given: func(l *ledger) { l.jobs = withJobs(2).jobs }},
		{name: "list-empty", method: "GET", path: "/jobs"},
		{name: "list-bad-query", method: "GET", path: "/jobs?status=DONE&jobType=&createdFrom=today&Tag=x"},
		{name: "list-bad-cursor", method: "GET", path: "/jobs?cursor=AAAA"},
		{name: "wait-too-long", method: "GET", path: known + "?wait=2m"},
		{name: "hold", method: "POST", path: known + "/hold", given: jobIn(job.Created)},
		{name: "hold-wrong-state", method: "POST", path: known + "/hold", given: jobIn(job.Queued)},
		{name: "release", method: "POST", path: known + "/release", given: jobIn(job.Created)},
		{name: "release-wrong-state", method: "POST", path: known + "/release", given: jobIn(job.Queued)},
		{name: "requeue", method: "POST", path: known + "/requeue", given: jobIn(job.Dead)},
		{name: "requeue-not-dead", method: "POST", path: known + "/requeue", given: jobIn(job.Retry)},
		{name: "requeue-bad-id", method: "POST", path: "/jobs/%7b/requeue"},

		{name: "edit", method: "PATCH", path: known, body: `{"priority":10,"delay":"1h","tags":["a","b"]}`, given: jobIn(job.Queued)},
		{name: "edit-merge-patch", method: "PATCH", path: known, body: `{"runAt":"now","tags":null}`, headers: []string{"Content-Type: application/merge-patch+json"}, given: jobIn(job.Created)},
		{name: "edit-running", method: "PATCH", path: known, body: `{"priority":10}`, given: jobIn(job.Running)},
		{name: "edit-finished", method: "PATCH", path: known, body: `{"priority":10}`, given: finished},
		{name: "edit-unknown", method: "PATCH", path: unknown, body: `{"priority":10}`},
		{name: "edit-bad-id", method: "PATCH", path: "/jobs/%7b", body: `{"priority":10}`},
		{name: "edit-everything-wrong", method: "PATCH", path: known, body: `{"priority":"high","runAt":"tomorrow","delay":7,"tags":["a",7],"payload":1,"jobType":"A","state":"queued","priority":1,"a/b":2}`, given: jobIn(job.Queued)},
		{name: "edit-out-of-bounds", method: "PATCH", path: known, body: `{"priority":32768,"delay":"-1s","tags":"a"}`, given: jobIn(job.Queued)},
		{name: "edit-two-due-times", method: "PATCH", path: known, body: `{"runAt":"now","delay":"1h"}`, given: jobIn(job.Queued)},
		{name: "edit-null-due-times", method: "PATCH", path: known, body: `{"runAt":null,"priority":null}`, given: jobIn(job.Queued)},
		{name: "edit-nothing", method: "PATCH", path: known, body: `{}`, given: jobIn(job.Queued)},
		{name: "edit-not-an-object", method: "PATCH", path: known, body: `[1]`, given: jobIn(job.Queued)},
		{name: "edit-not-json", method: "PATCH", path: known, body: `{"priority":`, given: jobIn(job.Queued)},
		{name: "edit-blank", method: "PATCH", path: known, body: ` `, given: jobIn(job.Queued)},
		{name: "edit-too-large", method: "PATCH", path: known, body: `{"tags":["` + strings.Repeat("x", 5000) + `"]}`, given: jobIn(job.Queued)},
		{name: "edit-as-form", method: "PATCH", path: known, body: `a=b`, headers: []string{"Content-Type: application/x-www-form-urlencoded"}, given: jobIn(job.Queued)},
		{name: "edit-unavailable", method: "PATCH", path: known, body: `{"priority":10}`, given: failing(fmt.Errorf("edit: %w: %w", job.ErrUnavailable, job.ErrOutcomeUnknown))},
		{name: "edit-all", method: "PATCH", path: "/jobs?state=queued,retry&jobType=SLEEP_JOB", body: `{"priority":10}`, given: jobIn(job.Queued)},
		{name: "edit-all-dry-run", method: "PATCH", path: "/jobs?tag=x&dryRun=true", body: `{"priority":10}`, given: jobIn(job.Queued)},
		{name: "edit-all-no-filter", method: "PATCH", path: "/jobs?limit=1", body: `{"priority":10}`},
		{name: "edit-all-bad-query", method: "PATCH", path: "/jobs?state=running&jobType=&dryRun=maybe&status=PENDING&createdFrom=today", body: `{"priority":10}`},
		{name: "edit-all-bad-state", method: "PATCH", path: "/jobs?state=queued,running", body: `{"priority":10}`},
		{name: "edit-all-bad-cursor", method: "PATCH", path: "/jobs?tag=x&cursor=AAAA", body: `{"priority":10}`},
		{name: "edit-all-everything-wrong", method: "PATCH", path: "/jobs?tag=x", body: `{"runAt":"0000-01-01T00:00:00Z","delay":"1 hour","hold":true}`},

		{name: "dead-letter", method: "GET", path: "/dead-letter"},
		{name: "dead-letter-first-page", method: "GET", path: "/dead-letter?limit=1", given: func(l *ledger) { l.dead = 2 }},
		{name: "find-jobs", method: "GET", path: "/debug/jobs?state=held&limit=1", given: func(l *ledger) { *l = *withJobs(2) }},
		{name: "look-up-jobs", method: "GET", path: "/debug/jobs/lookup?q=" + strings.TrimPrefix(known, "/jobs/"), given: jobIn(job.Retry)},
		{name: "count-jobs", method: "GET", path: "/debug/jobs/count?state=queued"},
		{name: "dead-letter-groups", method: "GET", path: "/dead-letter/groups", given: func(l *ledger) { l.dead = 2 }},
		{name: "dead-letter-retry", method: "POST", path: "/dead-letter/retry"},
		{name: "dead-letter-retry-not-a-number", method: "POST", path: "/dead-letter/retry?limit=1e3"},

		{name: "healthz", method: "GET", path: "/healthz", given: failing(job.ErrUnavailable)},
		{name: "readyz", method: "GET", path: "/readyz"},
		{name: "readyz-not", method: "GET", path: "/readyz", given: failing(job.ErrUnavailable)},
		{name: "not-found", method: "GET", path: "/nothing"},
		{name: "method-not-allowed", method: "DELETE", path: known},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLedger()
			if c.given != nil {
				c.given(l)
			}
			requireGolden(t, c.name, transcript(send(newAPI(t, l), c.method, c.path, c.body, c.headers...)))
		})
	}
}

package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// printing is a job type with all properties; plain has no schema.
var (
	printing = job.TypeSpec{
		Type: "PRINT", Plugin: "printing", Version: "v1.2", MaxAttempts: 6, Timeout: 1500 * time.Millisecond,
		Retry: job.RetryPolicy{
			Backoff: job.Exponential, InitialDelay: 250 * time.Millisecond, Factor: 3, MaxDelay: 10 * time.Minute,
			JitterMin: 0.7, JitterMax: 1, ImmediateAfterTimeout: true,
		},
		Schema: json.RawMessage(`{"type": "object", "required": ["to"], "additionalProperties": false,
  "properties": {"to": {"type": "string", "pattern": "^<.*>$"}, "copies/n~": {"type": "integer", "minimum": 1}}}`),
	}
	plain = job.TypeSpec{
		Type: "a/b c%?", Plugin: "odd", MaxAttempts: 1, Timeout: time.Minute,
		Retry: job.RetryPolicy{Backoff: job.Immediate},
	}
)

func declaring(specs ...job.TypeSpec) func(*ledger) { return func(l *ledger) { l.declared = specs } }

func TestJobTypesAreShown(t *testing.T) {
	for _, c := range []struct {
		name, method, path, body string
		given                    func(*ledger)
	}{
		{name: "types", method: "GET", path: "/job-types", given: declaring(printing, plain)},
		{name: "types-none", method: "GET", path: "/job-types"},
		{name: "types-unavailable", method: "GET", path: "/job-types", given: failing(job.ErrUnavailable)},
		{name: "type", method: "GET", path: "/job-types/PRINT", given: declaring(printing)},
		{name: "type-odd", method: "GET", path: "/job-types/a%2Fb%20c%25%3F", given: declaring(printing, plain)},
		{name: "type-unknown", method: "GET", path: "/job-types/NOBODYS_JOB", given: declaring(printing)},
		{name: "type-schema", method: "GET", path: "/job-types/PRINT/schema", given: declaring(printing)},
		{name: "type-schema-none", method: "GET", path: "/job-types/a%2Fb%20c%25%3F/schema", given: declaring(plain)},
		{name: "type-schema-unknown", method: "GET", path: "/job-types/NOBODYS_JOB/schema"},
		{name: "submit-unfit", method: "POST", path: "/jobs", given: declaring(printing), body: `{"jobType":"PRINT","payload":{"to":"secret","copies/n~":0,"é <x>":1}}`},
		{name: "submit-unfit-text", method: "POST", path: "/jobs", given: declaring(printing), body: `{"jobType":"PRINT","payload":"{\"to\": 7}"}`},
		{name: "submit-unfit-absent", method: "POST", path: "/jobs", given: declaring(printing), body: `{"jobType":"PRINT"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLedger()
			if c.given != nil {
				c.given(l)
			}
			requireGolden(t, c.name, transcript(send(newAPI(t, l), c.method, c.path, c.body)))
			require.Empty(t, l.submitted)
		})
	}
}

func TestAPayloadThatFitsIsAccepted(t *testing.T) {
	for _, payload := range []string{`{"to":"<a>"}`, `"{\"to\": \"<a>\"}"`, `{"to":"<a>","copies/n~":12345678901234567890}`} {
		l := newLedger()
		declaring(printing)(l)
		answer := send(newAPI(t, l), "POST", "/jobs", `{"jobType":"PRINT","payload":`+payload+`}`)
		require.Equal(t, 202, answer.Code, answer.Body.String())
		require.Equal(t, payload, string(l.submitted[0].Payload), "it is kept unchanged")
	}
}

func TestAChangedSchemaCounts(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	for _, allowed := range []string{"a", "b", "a"} {
		declaring(job.TypeSpec{Type: "T", Schema: json.RawMessage(fmt.Sprintf(`{"const":%q}`, allowed))})(l)
		for _, payload := range []string{"a", "b"} {
			answer := send(h, "POST", "/jobs", fmt.Sprintf(`{"jobType":"T","payload":%q}`, payload))
			require.Equal(t, payload == allowed, answer.Code == 202)
		}
	}
}

func TestAReplayIsAnsweredThoughTheSchemaHasBecomeStricter(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	first := send(h, "POST", "/jobs", `{"jobType":"T","payload":1,"idempotencyKey":"k"}`)
	require.Equal(t, 202, first.Code)
	declaring(job.TypeSpec{Type: "T", Schema: json.RawMessage(`{"const":2}`)})(l)
	again := send(h, "POST", "/jobs", `{"jobType":"T","payload":1,"idempotencyKey":"k"}`)
	require.Equal(t, 202, again.Code)
	require.Equal(t, first.Body.String(), again.Body.String())
	require.Equal(t, 422, send(h, "POST", "/jobs", `{"jobType":"T","payload":1,"idempotencyKey":"other"}`).Code)
	require.Equal(t, 422, send(h, "POST", "/jobs", `{"jobType":"T","payload":1}`).Code)
}

func TestASchemaThatCannotBeUsedRefusesNothing(t *testing.T) {
	var log bytes.Buffer
	l := newLedger()
	h := api.New(api.Config{
		Jobs: l, Log: slog.New(slog.NewJSONHandler(&log, nil)), MaxBodyBytes: 4096, RequestTimeout: time.Minute,
	})
	declaring(job.TypeSpec{Type: "T", Plugin: "old", Schema: json.RawMessage(`{"$ref":"file:///etc/passwd"}`)})(l)
	for range 3 {
		require.Equal(t, 202, send(h, "POST", "/jobs", `{"jobType":"T","payload":1}`).Code)
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	require.Contains(t, log.String(), `"level":"WARN"`)
	require.Contains(t, log.String(), `"job_type":"T","plugin":"old"`)
	require.Contains(t, log.String(), "refers to something outside of the schema")
}

func TestManyTypesAreAllChecked(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	for i := range 1100 {
		l.declared = append(l.declared, job.TypeSpec{Type: fmt.Sprint("T", i), Schema: json.RawMessage(fmt.Sprintf(`{"const":%d}`, i))})
	}
	for range 2 {
		for i := range 1100 {
			require.Equal(t, 202, send(h, "POST", "/jobs", fmt.Sprintf(`{"jobType":"T%d","payload":%d}`, i, i)).Code)
		}
	}
	require.Equal(t, 422, send(h, "POST", "/jobs", `{"jobType":"T7","payload":8}`).Code)
}

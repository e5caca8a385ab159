package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// printed is a dead job of the tenant acme, and its type.
func printed(l *ledger) job.ID {
	jobIn(job.Dead)(l)
	l.declared = []job.TypeSpec{{
		Type: "PRINT", MaxAttempts: 6, Timeout: time.Minute, Schema: json.RawMessage(`{"type": "object", "properties": {"to": {"type": "string"}}}`),
		Terms: &job.TypeTerms{ConcurrencyKey: "/to", KeyClass: "printer", ConcurrencyLimit: 2, OnConflict: job.ConflictQueue},
	}}
	for id, view := range l.jobs {
		view.Type, view.Tenant = "PRINT", "acme"
		l.jobs[id] = view
		l.details = map[job.ID]job.Detail{id: {
			View: view, Payload: json.RawMessage(`{"to": "a", "n": 1.50}`), IdempotencyKey: "order-7", Tags: []string{"x", "y"}, Priority: 7, MaxAttempts: 3,
			Timeout: 5 * time.Second, Callback: "https://example.com/hook", RunAt: birth,
			Terms: job.Terms{ConcurrencyKey: "printer:a", ConcurrencyLimit: 2, OnConflict: job.ConflictQueue, FairnessKey: "eu"},
		}}
		return id
	}
	panic("no job")
}

const resubmit = "/debug" + known + "/resubmit"

func TestAResubmissionIsTheJobButForWhatIsChanged(t *testing.T) {
	original := job.Submission{
		Type: "PRINT", Tenant: "acme", Payload: json.RawMessage(`{"to": "a", "n": 1.50}`), Priority: 7, MaxAttempts: 3, Timeout: 5 * time.Second,
		Tags: []string{"x", "y"}, Terms: job.Terms{ConcurrencyKey: "printer:a", ConcurrencyLimit: 2, OnConflict: job.ConflictQueue, FairnessKey: "eu"},
		CallbackURL: "https://example.com/hook",
	}
	for body, change := range map[string]func(*job.Submission){
		"":   func(*job.Submission) {},
		"{}": func(*job.Submission) {},
		`{"payload": {"to": "b"}}`: func(s *job.Submission) {
			s.Payload, s.Terms.ConcurrencyKey = json.RawMessage(`{"to": "b"}`), "printer:b"
		},
		`{"payload": {}}`:                func(s *job.Submission) { s.Payload, s.Terms = json.RawMessage(`{}`), job.Terms{FairnessKey: "eu"} },
		`{"tags": [], "priority": -1}`:   func(s *job.Submission) { s.Tags, s.Priority = []string{}, -1 },
		`{"tags": null}`:                 func(s *job.Submission) { s.Tags = []string{} },
		`{"maxAttempts": null}`:          func(s *job.Submission) { s.MaxAttempts = 6 },
		`{"timeout": "9s"}`:              func(s *job.Submission) { s.Timeout = 9 * time.Second },
		`{"concurrencyKey": "other"}`:    func(s *job.Submission) { s.Terms.ConcurrencyKey = "other" },
		`{"fairnessKey": null}`:          func(s *job.Submission) { s.Terms.FairnessKey = "" },
		`{"callbackUrl": null}`:          func(s *job.Submission) { s.CallbackURL = "" },
		`{"delay": "1h", "hold": false}`: func(s *job.Submission) { s.Delay = time.Hour },
		`{"idempotencyKey": "new"}`:      func(s *job.Submission) { s.IdempotencyKey = "new" },
	} {
		l := newLedger()
		id := printed(l)
		l.declared = append(l.declared, job.TypeSpec{Type: job.DeliveryType})
		answer := send(newAPI(t, l), "POST", resubmit, body)
		require.Equal(t, 202, answer.Code, "%s: %s", body, answer.Body)
		require.Len(t, l.submitted, 1)
		want := original
		want.ResubmissionOf = id
		change(&want)
		got := l.submitted[0]
		require.NotEqual(t, id, got.ID)
		require.Equal(t, "/jobs/"+got.ID.String(), answer.Header().Get("Location"))
		require.NotContains(t, answer.Body.String(), "1.50")
		got.ID, got.Trace, got.Gates = job.ID{}, job.Trace{}, nil
		require.Equal(t, want, got, body)
		require.Equal(t, job.Dead, l.jobs[id].State, "the original stays as it is")
	}
}

func TestAResubmissionIsCheckedLikeASubmission(t *testing.T) {
	for body, places := range map[string][]string{
		`{"payload": {"to": 1}}`:                           {"#/payload/to"},
		`{"payload": {"to": true}, "priority": ""}`:        {"#/priority"},
		`{"jobType": "PRINT"}`:                             {"#/jobType"},
		`{"tenant": "acme"}`:                               {"#/tenant"},
		`{"unknown": 1}`:                                   {"#/unknown"},
		`{"tags": ["a"], "tags": ["b"]}`:                   {"#/tags"},
		`{"delay": "1s", "runAt": "2030-01-31T12:00:00Z"}`: {"#/delay"},
		`{"uniqueBy": ["/a"]}`:                             {"#/uniqueBy"},
		`[]`:                                               {"#"},
	} {
		l := newLedger()
		printed(l)
		answer := send(newAPI(t, l), "POST", resubmit, body)
		require.Equal(t, 422, answer.Code, "%s: %s", body, answer.Body)
		var refused v1.Problem
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &refused))
		var got []string
		for _, mistake := range refused.Errors {
			got = append(got, mistake.Location)
		}
		require.Equal(t, places, got[:1], body)
		require.Empty(t, l.submitted)
	}
	l := newLedger()
	printed(l)
	h := newAPI(t, l)
	require.Equal(t, 400, send(h, "POST", resubmit, `{"payload": `).Code)
	require.Equal(t, 415, send(h, "POST", resubmit, `{}`, "Content-Type: text/plain").Code)
	require.Equal(t, 404, send(h, "POST", "/debug"+unknown+"/resubmit", "").Code)
	require.Empty(t, l.submitted)
}

func TestAnErasedJobIsNotResubmitted(t *testing.T) {
	l := newLedger()
	id := printed(l)
	detail := l.details[id]
	detail.ErasedAt = &later
	l.details[id] = detail
	require.Equal(t, 409, send(newAPI(t, l), "POST", resubmit, "").Code)
	require.Empty(t, l.submitted)
}

func TestAnotherTenantsJobIsNotResubmitted(t *testing.T) {
	l := newLedger()
	id := printed(l)
	h := behind(l, guard.Config{Access: accessFor(true)})
	require.Equal(t, 202, send(h, "POST", resubmit, "", ofAcme).Code)
	detail := l.details[id]
	detail.Tenant = "other"
	l.details[id] = detail
	require.Equal(t, 404, send(h, "POST", resubmit, "", ofAcme).Code)
	require.Len(t, l.submitted, 1)
}

// The schema may have changed since, and say what the payload contains.
func TestARefusalDoesNotShowAPayloadThatTheCallerMayNotSee(t *testing.T) {
	l := newLedger()
	printed(l)
	l.declared[0].Schema = json.RawMessage(`{"properties": {"n": {"type": "string"}, "to": {"type": "null"}}}`)
	h := behind(l, guard.Config{Access: accessFor(true)})
	blind := send(h, "POST", resubmit, "", "Authorization: "+who["token observe, operate"].header)
	require.Equal(t, 422, blind.Code)
	require.Contains(t, blind.Body.String(), `"#/payload"`)
	require.NotContains(t, blind.Body.String(), "#/payload/")
	require.Contains(t, send(h, "POST", resubmit, "", "Authorization: "+who["basic"].header).Body.String(), "#/payload/n")
	edited := send(h, "POST", resubmit, `{"payload": {"n": 1}}`, "Authorization: "+who["token observe, operate"].header)
	require.True(t, strings.Contains(edited.Body.String(), "#/payload/n"), "what the caller has sent is no secret")
}

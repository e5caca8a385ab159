package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// operationBook is a Bulk in memory.
type operationBook struct {
	asked   []job.Filter
	started []job.OperationStart
	died    []job.DiedOn
	// more says that a count goes on once.
	more bool
}

func (l *ledger) PreviewOperation(_ context.Context, filter job.Filter) (job.Preview, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bulk.asked = append(l.bulk.asked, filter)
	preview := job.Preview{Count: job.Count{Jobs: 4210}, At: birth, Died: l.bulk.died}
	if l.bulk.more && filter.After == (job.ID{}) {
		preview.Count.More, preview.Next = true, job.ID{1}
	}
	for _, view := range l.jobs {
		preview.Samples = append(preview.Samples, job.Found{View: view})
	}
	return preview, l.interrupt()
}

func (l *ledger) StartOperation(_ context.Context, start job.OperationStart) (job.Operation, error) {
	for _, before := range l.bulk.started {
		if start.Key != nil && before.Key != nil && *start.Key == *before.Key {
			if !slices.Equal(start.Hash, before.Hash) {
				return job.Operation{}, job.ErrKeyReused
			}
			return before.Operation, nil
		}
	}
	start.State, start.StartedAt, start.UpdatedAt = job.OperationRunning, birth, birth
	l.bulk.started = append(l.bulk.started, start)
	return start.Operation, l.interrupt()
}

func (l *ledger) StopOperation(_ context.Context, id job.ID, by, tenant string) (job.Operation, error) {
	for i := range l.bulk.started {
		if o := &l.bulk.started[i].Operation; o.ID == id && (tenant == "" || o.Filter.Tenant == tenant) {
			o.State, o.StoppedBy, o.FinishedAt = job.OperationStopped, by, &later
			return *o, l.interrupt()
		}
	}
	return job.Operation{}, job.ErrNoOperation
}

func (l *ledger) Operations(_ context.Context, filter job.OperationFilter) (found []job.Operation, err error) {
	for _, start := range l.bulk.started {
		if (filter.Tenant == "" || start.Filter.Tenant == filter.Tenant) && (filter.ID == job.ID{} || start.ID == filter.ID) {
			found = append(found, start.Operation)
		}
	}
	return found, l.interrupt()
}

func operationIn(t testing.TB, body string) v1.OperationAnswer {
	t.Helper()
	var answer v1.OperationAnswer
	require.NoError(t, json.Unmarshal([]byte(body), &answer), body)
	return answer
}

func TestADryRunStartsNothing(t *testing.T) {
	l := newLedger()
	jobIn(job.Dead)(l)
	h := newAPI(t, l)
	requireGolden(t, "operation-dry-run", transcript(send(h, "POST", "/debug/operations",
		`{"action": "requeue", "filter": {"jobType": "ECHO", "errorCode": "timeout"}, "dryRun": true}`, asJSON)))
	require.Empty(t, l.bulk.started)
	require.Equal(t, job.Filter{States: []job.State{job.Dead}, Type: "ECHO", Code: "timeout", Within: 2 * time.Second}, l.bulk.asked[0])
}

func TestADryRunGoesOnCounting(t *testing.T) {
	l := newLedger()
	l.bulk.more = true
	h := newAPI(t, l)
	const asked = `{"action": "requeue", "dryRun": true, "countMilliseconds": 50, "filter": {"tag": "x"}`
	first := operationIn(t, send(h, "POST", "/debug/operations", asked+"}", asJSON).Body.String())
	require.True(t, first.More)
	on := fmt.Sprintf(`, "frozenAt": %q, "cursor": %q}`, first.FrozenAt.Format(time.RFC3339Nano), first.NextCursor)
	next := operationIn(t, send(h, "POST", "/debug/operations", asked+on, asJSON).Body.String())
	require.False(t, next.More)
	require.Empty(t, next.NextCursor)
	require.Equal(t, job.ID{1}, l.bulk.asked[1].After)
	require.Equal(t, 50*time.Millisecond, l.bulk.asked[1].Within)
	for _, other := range []string{
		strings.Replace(asked, `"x"`, `"y"`, 1) + on, strings.Replace(asked, "requeue", "cancel", 1) + on,
		asked + fmt.Sprintf(`, "cursor": %q}`, first.NextCursor), strings.Replace(asked, "true", "false", 1) + on,
	} {
		refused := send(h, "POST", "/debug/operations", other, asJSON)
		require.Equal(t, 422, refused.Code)
		require.Contains(t, refused.Body.String(), `"location":"#/cursor"`)
	}
	require.Len(t, l.bulk.asked, 2)
}

func TestAnOperationHasTheFilterOfItsDryRun(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	answer := send(h, "POST", "/debug/operations", `{"action": "edit", "priority": 5, "rate": 50, "reason": "why",
		"filter": {"state": ["held", "queued"], "tenant": "acme", "tag": "x"}, "frozenAt": "2026-02-19T00:00:00Z"}`, asJSON)
	require.Equal(t, 202, answer.Code, answer.Body)
	started := operationIn(t, answer.Body.String())
	require.EqualValues(t, 4210, started.Operation.Expected)
	require.Equal(t, []string{"held", "queued"}, started.Operation.Filter.State)
	o := l.bulk.started[0]
	require.EqualValues(t, 5, *o.Priority)
	require.Equal(t, 50, o.Rate)
	require.True(t, o.Filter.WithoutScheduled)
	require.Equal(t, birth, o.Filter.FrozenAt, "as the dry run says")
	require.Equal(t, map[string]string{"state": "held,queued", "tenant": "acme", "tag": "x"}, o.Shown, "what the audit log says")
	require.Equal(t, "2026-02-19T00:00:00Z", l.bulk.asked[0].FrozenAt.Format("2006-01-02T15:04:05Z"))

	path := "/debug/operations/" + o.ID.String()
	require.Equal(t, 200, send(h, "GET", path, "").Code)
	require.Equal(t, 200, send(h, "GET", "/debug/operations", "").Code)
	require.Contains(t, send(h, "POST", path+"/stop", "").Body.String(), `"state":"stopped"`)
	require.Equal(t, 404, send(h, "POST", "/debug/operations/"+strings.TrimPrefix(unknown, "/jobs/")+"/stop", "").Code)
	require.Equal(t, 404, send(h, "GET", "/debug/operations/"+strings.TrimPrefix(unknown, "/jobs/"), "").Code)
}

func TestMistakesInAnOperationAreNamed(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	for body, place := range map[string]string{
		`{"filter": {"jobType": "A"}}`:                                                         "#/action",
		`{"action": "delete", "filter": {"jobType": "A"}}`:                                     "#/action",
		`{"action": "requeue"}`:                                                                "#/filter",
		`{"action": "requeue", "filter": {}}`:                                                  "#/filter",
		`{"action": "requeue", "filter": []}`:                                                  "#/filter",
		`{"action": "requeue", "filter": {"state": ["running"]}}`:                              "#/filter/state/0",
		`{"action": "cancel", "filter": {"state": ["queued", "dead"]}}`:                        "#/filter/state/1",
		`{"action": "hold", "filter": {"state": ["queued"]}}`:                                  "#/filter/state/0",
		`{"action": "requeue", "filter": {"type": "A"}}`:                                       "#/filter/type",
		`{"action": "requeue", "filter": {"jobType": 1}}`:                                      "#/filter/jobType",
		`{"action": "requeue", "filter": {"jobType": ""}}`:                                     "#/filter/jobType",
		`{"action": "requeue", "filter": {"tag": "a", "tag": "b"}}`:                            "#/filter/tag",
		`{"action": "requeue", "filter": {"tag": null}}`:                                       "#/filter/tag",
		`{"action": "requeue", "filter": {"fingerprint": "xyz"}}`:                              "#/filter/fingerprint",
		`{"action": "requeue", "filter": {"createdFrom": "now"}}`:                              "#/filter/createdFrom",
		`{"action": "cancel", "filter": {"createdBefore": "0001-01-01T00:00:00Z"}}`:            "#/filter/createdBefore",
		`{"action": "cancel", "filter": {"parentId": "00000000-0000-0000-0000-000000000000"}}`: "#/filter/parentId",
		`{"action": "cancel", "filter": {"state": []}}`:                                        "#/filter/state",
		`{"action": "edit", "filter": {"jobType": "A"}}`:                                       "#/priority",
		`{"action": "hold", "priority": 1, "filter": {"jobType": "A"}}`:                        "#/priority",
		`{"action": "hold", "rate": 0, "filter": {"jobType": "A"}}`:                            "#/rate",
		`{"action": "hold", "countMilliseconds": 0, "filter": {"jobType": "A"}}`:               "#/countMilliseconds",
		`{"action": "hold", "rate": 10001, "filter": {"jobType": "A"}}`:                        "#/rate",
		`{"action": "hold", "reason": "` + strings.Repeat("x", 501) + `", "all": true}`:        "#/reason",
		`{"action": "hold", "frozenAt": "tomorrow", "filter": {"jobType": "A"}}`:               "#/frozenAt",
		`{"action": "hold", "everything": true, "filter": {"jobType": "A"}}`:                   "#/everything",
	} {
		answer := send(h, "POST", "/debug/operations", body, asJSON)
		require.Equal(t, 422, answer.Code, body)
		require.Contains(t, answer.Body.String(), `"location":"`+place+`"`, body)
	}
	require.Empty(t, l.bulk.asked)
	require.Equal(t, 202, send(h, "POST", "/debug/operations", `{"action": "requeue", "all": true}`, asJSON).Code)
}

func TestAnOperationIsStartedOnceForAnIdempotencyKey(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	const body = `{"action": "requeue", "filter": {"jobType": "A"}}`
	first := send(h, "POST", "/debug/operations", body, asJSON, "Idempotency-Key: k")
	require.Equal(t, 202, first.Code)
	again := send(h, "POST", "/debug/operations", body, asJSON, "Idempotency-Key: k")
	require.Equal(t, operationIn(t, first.Body.String()).Operation.OperationID, operationIn(t, again.Body.String()).Operation.OperationID)
	other := send(h, "POST", "/debug/operations", `{"action": "requeue", "filter": {"jobType": "B"}}`, asJSON, "Idempotency-Key: k")
	require.Equal(t, 422, other.Code)
	require.Contains(t, other.Body.String(), `"location":"header.Idempotency-Key"`)
	require.Len(t, l.bulk.started, 1)
}

func TestARequeueWarnsIfTheVersionThatKilledTheJobsStillServes(t *testing.T) {
	l := newLedger()
	l.bulk.died = []job.DiedOn{{Type: "A", Version: "v1", Jobs: 3}, {Type: "A", Version: "v0", Jobs: 1}, {Type: "B", Version: "v1", Jobs: 1}}
	l.workers = []v1.Worker{
		{Condition: job.WorkerAlive, Plugins: json.RawMessage(`[{"plugin": "p", "version": "v1", "jobTypes": ["A"]}]`)},
		{Condition: job.WorkerSilent, Plugins: json.RawMessage(`[{"plugin": "p", "version": "v0", "jobTypes": ["A"]}]`)},
	}
	answer := operationIn(t, send(newAPI(t, l), "POST", "/debug/operations", `{"action": "requeue", "all": true, "dryRun": true}`, asJSON).Body.String())
	require.Len(t, answer.Warnings, 1)
	require.Contains(t, answer.Warnings[0], "version v1, under which A jobs died")
}

// Whoever is bound to a tenant acts on its jobs only, and sees no operation on others.
func TestAnOperationIsOfTheCallersTenant(t *testing.T) {
	var l *ledger
	server, _ := guarded(t, guard.Config{Access: accessFor(true)}, func(given *ledger) { l = given })
	acme, operator := who["token of acme"].header, who["token operate"].header
	require.Equal(t, 404, call(t, server, "POST", "/debug/operations", acme, `{"action": "requeue", "filter": {"tenant": "globex"}}`).status)
	require.Equal(t, 202, call(t, server, "POST", "/debug/operations", acme, `{"action": "requeue", "all": true}`).status)
	require.Equal(t, "acme", l.bulk.started[0].Filter.Tenant)
	require.Equal(t, "token token of acme", l.bulk.started[0].By)
	require.Equal(t, 202, call(t, server, "POST", "/debug/operations", operator, `{"action": "requeue", "filter": {"tenant": "globex"}}`).status)
	other := "/debug/operations/" + l.bulk.started[1].ID.String()
	require.Equal(t, 404, call(t, server, "GET", other, acme, "").status)
	require.Equal(t, 404, call(t, server, "POST", other+"/stop", acme, "").status)
	require.NotContains(t, call(t, server, "GET", "/debug/operations", acme, "").body, "globex")
	require.Equal(t, 200, call(t, server, "GET", other, operator, "").status)
}

func TestThePayloadTextOfAFilterNeedsTheScopePayloads(t *testing.T) {
	var l *ledger
	server, _ := guarded(t, guard.Config{Access: accessFor(false)}, func(given *ledger) { l = given })
	const body = `{"action": "requeue", "filter": {"payload": "secret text"}}`
	require.Equal(t, 202, call(t, server, "POST", "/debug/operations", who["token operate"].header, body).status)
	require.Len(t, l.bulk.started, 1)
	require.Equal(t, "(withheld)", l.bulk.started[0].Shown["payload"])
	require.Equal(t, 403, call(t, server, "POST", "/debug/operations", who["token observe, operate"].header, body).status)
	require.NotContains(t, call(t, server, "GET", "/debug/operations", who["token observe"].header, "").body, "secret text")
}

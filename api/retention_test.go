package api_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (l *ledger) PlanRetention(context.Context) (job.RetentionPolicies, job.RetentionPlan, error) {
	policies := job.RetentionPolicies{
		Default: job.Retention{Succeeded: new(168 * time.Hour)},
		Types:   map[string]job.Retention{"SEND_EMAIL": {Dead: new(90 * time.Minute), Keys: new(time.Minute)}},
	}
	plan := job.RetentionPlan{At: later.UTC(), Sampled: 0.25, Groups: []job.RetentionGroup{
		{Type: "A", State: job.Succeeded, Fate: job.FateDelete, Jobs: 400, Bytes: 160_000, Oldest: &birth},
		{Type: "A", State: job.Queued, Fate: job.FateOpen, Jobs: 8, Bytes: 3200},
	}}
	return policies, plan, l.interrupt()
}

func (l *ledger) Erase(ctx context.Context, id job.ID, by, reason string) (job.View, error) {
	view, err := l.Get(ctx, id)
	if err == nil && !view.State.Final() {
		err = job.ErrWrongState
	}
	l.erasures = append(l.erasures, job.Erasure{ID: id, By: by, Reason: reason})
	view.ErasedAt = &later
	return view, err
}

func (l *ledger) AskErasure(_ context.Context, asked job.Erasure) (job.Erasure, error) {
	asked.AskedAt, asked.UpdatedAt = birth.UTC(), birth.UTC()
	l.erasures = append(l.erasures, asked)
	return asked, l.interrupt()
}

func (l *ledger) Erasures(_ context.Context, filter job.ErasureFilter) ([]job.Erasure, error) {
	found := slices.DeleteFunc(slices.Clone(l.erasures), func(e job.Erasure) bool {
		return filter.Tenant != "" && e.Tenant != filter.Tenant || filter.ID != job.ID{} && e.ID != filter.ID
	})
	return found, l.interrupt()
}

func TestAPlanSaysWhatIsDeletedAndWhatIsKept(t *testing.T) {
	requireGolden(t, "retention-plan", transcript(send(newAPI(t, newLedger()), "GET", "/retention/plan", "")))
}

func TestOnlyEndedJobsAreErased(t *testing.T) {
	l := newLedger()
	jobIn(job.Dead)(l)
	h := newAPI(t, l)
	requireGolden(t, "erase", transcript(send(h, "POST", known+"/erase", `{"reason": "ticket 4711"}`, asJSON)))
	require.Equal(t, "ticket 4711", l.erasures[0].Reason)
	require.Equal(t, 200, send(h, "POST", known+"/erase", "").Code, "without a reason")
	require.Equal(t, 404, send(h, "POST", unknown+"/erase", `{}`, asJSON).Code)
	jobIn(job.Running)(l)
	requireGolden(t, "erase-open", transcript(send(h, "POST", known+"/erase", `{}`, asJSON)))
}

func TestATenantIsErasedInTheBackground(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	requireGolden(t, "erase-tenant", transcript(send(h, "POST", "/erasures", `{"tenant": "acme", "reason": "contract ended"}`, asJSON)))
	requireGolden(t, "erasures", transcript(send(h, "GET", "/erasures?tenant=acme", "")))
	require.Equal(t, 200, send(h, "GET", "/erasures/"+l.erasures[0].ID.String(), "").Code)
	require.Equal(t, 404, send(h, "GET", "/erasures/"+strings.TrimPrefix(unknown, "/jobs/"), "").Code)
}

func TestMistakesInAnErasureAreNamed(t *testing.T) {
	l := newLedger()
	jobIn(job.Dead)(l)
	h := newAPI(t, l)
	for body, says := range map[string]string{
		`{}`: `"location":"#/tenant"`, `{"tenant": 1}`: `"location":"#/tenant"`, `{"tenant": "a", "all": true}`: `"location":"#/all"`,
		`{"tenant": "a", "reason": "` + strings.Repeat("x", 501) + `"}`: `"location":"#/reason"`,
	} {
		answer := send(h, "POST", "/erasures", body, asJSON)
		require.Equal(t, 422, answer.Code, body)
		require.Contains(t, answer.Body.String(), says, body)
	}
	answer := send(h, "POST", known+"/erase", `{"why": "x"}`, asJSON)
	require.Equal(t, 422, answer.Code)
	require.Contains(t, answer.Body.String(), `"location":"#/why"`)
	require.Empty(t, l.erasures)
}

// Whoever is bound to a tenant erases its jobs only.
func TestAnErasureIsOfTheCallersTenant(t *testing.T) {
	var l *ledger
	server, _ := guarded(t, guard.Config{Access: accessFor(true)}, jobIn(job.Succeeded), func(given *ledger) { l = given })
	acme, operator := who["token of acme"].header, who["token operate"].header
	require.Equal(t, 404, call(t, server, "POST", "/erasures", acme, `{"tenant": "globex"}`).status)
	require.Equal(t, 202, call(t, server, "POST", "/erasures", acme, `{}`).status)
	require.Equal(t, "acme", l.erasures[0].Tenant)
	require.Equal(t, "token token of acme", l.erasures[0].By)
	require.Equal(t, 202, call(t, server, "POST", "/erasures", operator, `{"tenant": "globex"}`).status)
	require.Equal(t, 404, call(t, server, "GET", "/erasures/"+l.erasures[1].ID.String(), acme, "").status)
	require.NotContains(t, call(t, server, "GET", "/erasures", acme, "").body, "globex")
	require.Equal(t, 200, call(t, server, "POST", known+"/erase", acme, `{}`).status)
	for id, view := range l.jobs {
		view.Tenant = "globex"
		l.jobs[id] = view
	}
	require.Equal(t, 404, call(t, server, "POST", known+"/erase", acme, `{}`).status)
}

package api_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ruleBook is Rules in memory.
type ruleBook struct {
	limits []job.Limit
	pauses []job.Pause
	used   map[job.Gate]int
	lasts  time.Duration
	// configured are the names of limits that a configuration sets.
	configured []string
	// unconfirmed is why it is not certain that a rule is gone; nil if it is.
	unconfirmed error
}

func (l *ledger) FreshRules(context.Context) (*job.Rules, error) {
	return job.NewRules(l.rules.limits, l.rules.pauses), l.interrupt()
}

func (l *ledger) SlotsUsed(context.Context, []job.Gate) (map[job.Gate]int, error) {
	return l.rules.used, l.interrupt()
}

func (l *ledger) SetLimit(_ context.Context, limit job.Limit) (job.Limit, error) {
	if slices.Contains(l.rules.configured, limit.Name) {
		return job.Limit{}, job.ErrConfigured
	}
	limit.UpdatedAt = birth.UTC()
	l.rules.limits = append(slices.DeleteFunc(l.rules.limits, func(old job.Limit) bool {
		return old.Scope == limit.Scope && old.Name == limit.Name
	}), limit)
	return limit, l.interrupt()
}

func (l *ledger) DeleteLimit(_ context.Context, scope job.LimitScope, name string) error {
	if slices.Contains(l.rules.configured, name) {
		return job.ErrConfigured
	}
	before := len(l.rules.limits)
	l.rules.limits = slices.DeleteFunc(l.rules.limits, func(old job.Limit) bool { return old.Scope == scope && old.Name == name })
	if len(l.rules.limits) == before {
		return cmp.Or(l.rules.unconfirmed, job.ErrNoLimit)
	}
	return l.interrupt()
}

func (l *ledger) SetPause(_ context.Context, pause job.Pause, lasts time.Duration) (job.Pause, error) {
	if l.rules.lasts = lasts; lasts > 0 {
		pause.Until = birth.UTC().Add(lasts)
	}
	pause.Since = birth.UTC()
	l.rules.pauses = append(l.rules.pauses, pause)
	return pause, l.interrupt()
}

func (l *ledger) EndPause(_ context.Context, scope job.PauseScope, name string) error {
	before := len(l.rules.pauses)
	l.rules.pauses = slices.DeleteFunc(l.rules.pauses, func(old job.Pause) bool { return old.Scope == scope && old.Name == name })
	if len(l.rules.pauses) == before {
		return cmp.Or(l.rules.unconfirmed, job.ErrNoPause)
	}
	return l.interrupt()
}

func (l *ledger) DrainWorker(_ context.Context, worker string) error {
	return l.condition(worker, job.WorkerDraining)
}

func (l *ledger) ResumeWorker(_ context.Context, worker string) error {
	return l.condition(worker, job.WorkerAlive)
}

func (l *ledger) condition(worker string, is job.Condition) error {
	for i := range l.workers {
		if l.workers[i].WorkerID == worker {
			l.workers[i].Condition = is
			return l.interrupt()
		}
	}
	return job.ErrNoWorker
}

func TestLimitsAreSetShownAndDeleted(t *testing.T) {
	l := newLedger()
	l.rules.used = map[job.Gate]int{"type:SEND_EMAIL": 3}
	h := newAPI(t, l)
	requireGolden(t, "limit-set", transcript(send(h, "PUT", "/debug/limits/type/SEND_EMAIL", `{"concurrency": 10, "rate": "100/1m", "fair": true}`, asJSON)))
	require.Equal(t, &job.Rate{Count: 100, Period: time.Minute, Burst: 2}, l.rules.limits[0].Rate)
	require.Equal(t, 200, send(h, "PUT", "/debug/limits/key/smtp", `{"concurrency": 0, "onConflict": "cancel_oldest"}`, asJSON).Code)
	require.Equal(t, 200, send(h, "PUT", "/debug/limits/tenant/*", `{"weight": 2}`, asJSON).Code)
	require.Equal(t, 200, send(h, "PUT", "/debug/limits/tenant/a%2Fb", `{"concurrency": 1}`, asJSON).Code)
	requireGolden(t, "limits", transcript(send(h, "GET", "/debug/limits", "")))
	requireGolden(t, "limit", transcript(send(h, "GET", "/debug/limits/tenant/a%2Fb", "")))
	requireGolden(t, "limit-deleted", transcript(send(h, "DELETE", "/debug/limits/tenant/a%2Fb", "")))
	requireGolden(t, "limit-unknown", transcript(send(h, "DELETE", "/debug/limits/tenant/a%2Fb", "")))
	l.rules.configured = []string{"smtp"}
	requireGolden(t, "limit-configured", transcript(send(h, "PUT", "/debug/limits/key/smtp", `{"concurrency": 1}`, asJSON)))
	require.Equal(t, 409, send(h, "DELETE", "/debug/limits/key/smtp", "").Code)
}

const asJSON = "Content-Type: application/json"

func TestMistakesInALimitAreNamed(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	requireGolden(t, "limit-mistakes", transcript(send(h, "PUT", "/debug/limits/tenant/acme",
		`{"concurrency": -1, "rate": "100", "burst": "x", "onConflict": "queue", "weight": 0, "fair": null, "size": 3}`, asJSON)))
	for path, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"type/A":         {`{}`, 422, `"location":"#"`},
		"fairness/a":     {`{"concurrency": 1}`, 422, `"location":"#/concurrency"`},
		"type/B":         {`{"weight": 1}`, 422, `"location":"#/weight"`},
		"tenant/a":       {`{"burst": 1}`, 422, `"location":"#/burst"`},
		"key/smtp:a":     {`{"concurrency": 1}`, 422, `"location":"path.name"`},
		"queue/a":        {`{"concurrency": 1}`, 422, `"location":"path.scope"`},
		"tenant/b":       {`{"concurrency": "3"}`, 422, `"message":"must be a whole number from 0 to 1000000","location":"#/concurrency"`},
		"type/C":         {`[]`, 422, `"location":"#"`},
		"type/D":         {`{`, 400, `not JSON`},
		"tenant/nothing": {``, 415, `send JSON`},
	} {
		headers := []string{asJSON}
		if c.status == 415 {
			headers = nil
		}
		answer := send(h, "PUT", "/debug/limits/"+path, c.body, headers...)
		require.Equal(t, c.status, answer.Code, path)
		require.Contains(t, answer.Body.String(), c.says, path)
	}
	require.Empty(t, l.rules.limits)
}

func TestPausesBeginAndEnd(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	requireGolden(t, "pause-set", transcript(send(h, "PUT", "/debug/pauses/type/SEND_EMAIL", `{"reason": "migration", "for": "1h", "drain": true}`, asJSON)))
	require.Equal(t, time.Hour, l.rules.lasts)
	require.Equal(t, 200, send(h, "PUT", "/debug/pauses/all", `{}`, asJSON).Code)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	require.Equal(t, 200, send(h, "PUT", "/debug/pauses/tenant/acme", `{"until": "`+until.Format(time.RFC3339)+`"}`, asJSON).Code)
	require.Equal(t, until, l.rules.pauses[2].Until)
	require.Equal(t, 200, send(h, "DELETE", "/debug/pauses/tenant/acme", "").Code)
	requireGolden(t, "pauses", transcript(send(h, "GET", "/debug/pauses", "")))
	requireGolden(t, "pause-ended", transcript(send(h, "DELETE", "/debug/pauses/all", "")))
	require.Equal(t, 404, send(h, "DELETE", "/debug/pauses/all", "").Code)
	require.Equal(t, 404, send(h, "DELETE", "/debug/pauses/worker/a", "").Code)
	require.Len(t, l.rules.pauses, 1)

	requireGolden(t, "pause-mistakes", transcript(send(h, "PUT", "/debug/pauses/worker/w",
		`{"reason": 1, "for": "1h", "until": "2030-01-01T00:00:00Z", "drain": "yes", "who": "me"}`, asJSON)))
	for _, scope := range []string{"type", "plugin", "tenant"} {
		answer := send(h, "PUT", "/debug/pauses/"+scope+"/*", `{}`, asJSON)
		require.Equal(t, 422, answer.Code, scope)
		require.Contains(t, answer.Body.String(), `"message":"must be one name: to pause everything, use the scope all","location":"path.name"`)
	}
	for body, location := range map[string]string{
		`{"for": "forever"}`: "#/for", `{"for": "-1h"}`: "#/for", `{"for": ""}`: "#/for", `{"for": "0s"}`: "#/for",
		`{"until": "2020-01-01T00:00:00Z"}`: "#/until", `{"until": "tomorrow"}`: "#/until", `{"until": ""}`: "#/until",
	} {
		answer := send(h, "PUT", "/debug/pauses/all", body, asJSON)
		require.Equal(t, 422, answer.Code, body)
		require.Contains(t, answer.Body.String(), `"location":"`+location+`"`, body)
	}
}

func TestAWorkerIsDrainedAndResumed(t *testing.T) {
	l := newLedger()
	l.workers = []v1.Worker{{WorkerID: "w/1", Roles: job.AllRoles(), Condition: job.WorkerAlive, Jobs: map[job.State]int64{}}}
	h := newAPI(t, l)
	answer := send(h, "POST", "/debug/workers/w%2F1/drain", "")
	require.Equal(t, 200, answer.Code, answer.Body)
	require.Contains(t, answer.Body.String(), `"condition":"draining"`)
	require.Contains(t, send(h, "POST", "/debug/workers/w%2F1/resume", "").Body.String(), `"condition":"alive"`)
	requireGolden(t, "drain-unknown", transcript(send(h, "POST", "/debug/workers/nobody/drain", "")))
}

func TestAPauseSaysWhoLoggedIn(t *testing.T) {
	server, log := guarded(t, guard.Config{Access: &guard.Access{User: "ann", Password: guard.DigestOf("canary-password")}})
	login := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:canary-password"))
	require.Contains(t, call(t, server, "PUT", "/debug/pauses/all", login, `{}`).body, `"pausedBy":"ann"`)
	require.Contains(t, call(t, server, "PUT", "/debug/limits/type/A", login, `{"concurrency": 1}`).body, `"updatedBy":"ann"`)
	require.Contains(t, log.String(), `"by":"ann"`)
}

// The row may have been deleted by a commit that the standby does not have: after a failover, the
// pause was there again.
func TestThatARuleIsGoneIsSaidOnlyWhenItIsCertain(t *testing.T) {
	for path, detail := range map[string]string{
		"/debug/pauses/all": "no such pause", "/debug/pauses/type/A": "no such pause", "/debug/limits/type/A": "no such limit",
	} {
		t.Run(path, func(t *testing.T) {
			ledger := newLedger()
			h := newAPI(t, ledger)
			answer := send(h, "DELETE", path, "")
			require.Equal(t, 404, answer.Code)
			require.Contains(t, answer.Body.String(), detail)
			ledger.rules.unconfirmed = job.ErrUnavailable
			require.Equal(t, 503, send(h, "DELETE", path, "").Code)
		})
	}
}

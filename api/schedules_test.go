package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/resolve"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// planBook is the schedules of a ledger, in memory. The service that works on them is the
// real one.
type planBook struct {
	jobs.Store
	ledger *ledger
	all    []job.Schedule
	// configured are the names of schedules that a configuration sets.
	configured []string
}

var today = time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)

func (p *planBook) Now(context.Context) (time.Time, error) { return today, p.ledger.interrupt() }

func (p *planBook) Submit(ctx context.Context, batch []job.Submission) []job.Submitted {
	return p.ledger.SubmitEach(ctx, batch)
}

func (p *planBook) Schedules(_ context.Context, filter job.ScheduleFilter) ([]job.Schedule, error) {
	var found []job.Schedule
	slices.SortFunc(p.all, func(a, b job.Schedule) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	})
	for _, one := range p.all {
		after := cmp.Or(cmp.Compare(one.Tenant, filter.AfterTenant), cmp.Compare(one.Name, filter.AfterName)) > 0
		if after && (filter.Tenant == "" || one.Tenant == filter.Tenant) && len(found) < filter.Limit {
			found = append(found, one)
		}
	}
	return found, p.ledger.interrupt()
}

func (p *planBook) at(tenant, name string) int {
	return slices.IndexFunc(p.all, func(s job.Schedule) bool { return s.Tenant == tenant && s.Name == name })
}

func (p *planBook) Schedule(_ context.Context, tenant, name string) (job.Schedule, error) {
	if at := p.at(tenant, name); at >= 0 {
		return p.all[at], p.ledger.interrupt()
	}
	return job.Schedule{}, cmp.Or(p.ledger.interrupt(), job.ErrNoSchedule)
}

func (p *planBook) SetSchedule(_ context.Context, set job.Schedule) error {
	if slices.Contains(p.configured, set.Name) {
		return job.ErrScheduleConfigured
	}
	set.CreatedAt, set.UpdatedAt = today, today
	if at := p.at(set.Tenant, set.Name); at >= 0 {
		p.all[at] = set
	} else {
		p.all = append(p.all, set)
	}
	return p.ledger.interrupt()
}

func (p *planBook) DeleteSchedule(_ context.Context, tenant, name string) error {
	if slices.Contains(p.configured, name) {
		return job.ErrScheduleConfigured
	}
	p.all = slices.Delete(p.all, p.at(tenant, name), p.at(tenant, name)+1)
	return p.ledger.interrupt()
}

func (p *planBook) PauseSchedule(_ context.Context, tenant, name, reason, by string) error {
	at := p.at(tenant, name)
	if at < 0 {
		return job.ErrNoSchedule
	}
	p.all[at].Pause, p.all[at].NextAt = &job.SchedulePause{Since: today, By: by, Reason: reason}, time.Time{}
	return p.ledger.interrupt()
}

func (p *planBook) ResumeSchedule(_ context.Context, read job.Schedule, next time.Time) (bool, error) {
	at := p.at(read.Tenant, read.Name)
	p.all[at].Pause, p.all[at].NextAt = nil, next
	return true, p.ledger.interrupt()
}

// planner is the service that the schedules of a ledger have.
func (l *ledger) planner() *jobs.Service {
	if l.plans == nil {
		l.plans = &planBook{ledger: l}
	}
	log := slog.New(slog.DiscardHandler)
	resolver := resolve.New(log, job.Cell{})
	service, err := jobs.New(jobs.Config{
		PollInterval: time.Hour, Log: log, Meter: noop.Meter{}, Resolve: func(s job.TypeSpec) job.TypeSpec { return s },
		Accept: func(ctx context.Context, _ *jobs.Service, text []byte, tenant string, trace job.Trace) (job.Submission, error) {
			return resolver.Text(ctx, l, text, tenant, trace)
		},
	}, l.plans)
	if err != nil {
		panic(err)
	}
	return service
}

func (l *ledger) Schedules(ctx context.Context, filter job.ScheduleFilter) ([]job.Schedule, error) {
	return l.planner().Schedules(ctx, filter)
}

func (l *ledger) Schedule(ctx context.Context, tenant, name string) (job.Schedule, error) {
	return l.planner().Schedule(ctx, tenant, name)
}

func (l *ledger) CheckSchedule(ctx context.Context, one job.Schedule) (faults []job.Fault, refused, err error) {
	return l.planner().CheckSchedule(ctx, one)
}

func (l *ledger) SetSchedule(ctx context.Context, one job.Schedule) (job.Schedule, error) {
	return l.planner().SetSchedule(ctx, one)
}

func (l *ledger) DeleteSchedule(ctx context.Context, tenant, name string) error {
	return l.planner().DeleteSchedule(ctx, tenant, name)
}

func (l *ledger) PauseSchedule(ctx context.Context, tenant, name, reason, by string) (job.Schedule, error) {
	return l.planner().PauseSchedule(ctx, tenant, name, reason, by)
}

func (l *ledger) ResumeSchedule(ctx context.Context, tenant, name string) (job.Schedule, error) {
	return l.planner().ResumeSchedule(ctx, tenant, name)
}

func (l *ledger) RunSchedule(ctx context.Context, tenant, name, key string) (job.Receipt, error) {
	return l.planner().RunSchedule(ctx, tenant, name, key)
}

func (l *ledger) Backfill(ctx context.Context, tenant, name string, from, to time.Time) (job.Backfilled, error) {
	return l.planner().Backfill(ctx, tenant, name, from, to)
}

func (l *ledger) Preview(ctx context.Context, timing job.Timing, after time.Time, n int) ([]time.Time, []job.Fault, error) {
	return l.planner().Preview(ctx, timing, after, n)
}

func (l *ledger) Local(timing job.Timing, tick time.Time) time.Time {
	return l.planner().Local(timing, tick)
}

func (l *ledger) DueAt(one job.Schedule, tick time.Time) time.Time {
	return l.planner().DueAt(one, tick)
}

const everyMorning = `{"cron": "30 6 * * *", "zone": "Europe/Berlin", "job": {"jobType": "SLEEP_JOB", "payload": {"a": 1.50}}}`

func TestAScheduleIsSetShownAndDeleted(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	answer := send(h, "PUT", "/schedules/morning", everyMorning)
	require.Equal(t, 200, answer.Code, answer.Body)
	var set v1.Schedule
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &set))
	require.Equal(t, "active", set.State)
	require.Equal(t, "2026-02-21T05:30:00Z", set.NextAt.Format(time.RFC3339))
	require.Equal(t, job.CatchUpLast, set.Spec.CatchUp, "defaults are filled in")
	require.Equal(t, job.OverlapAllow, set.Spec.Overlap)
	require.Equal(t, "24h0m0s", set.Spec.CatchUpWindow)
	require.JSONEq(t, `{"jobType": "SLEEP_JOB", "payload": {"a": 1.50}}`, string(set.Spec.Job))

	again, err := json.Marshal(set.Spec)
	require.NoError(t, err)
	require.Equal(t, 200, send(h, "PUT", "/schedules/morning", string(again)).Code, "what is shown can be sent")
	require.Equal(t, answer.Body.String(), send(h, "GET", "/schedules/morning", "").Body.String())
	require.NotContains(t, send(h, "GET", "/schedules", "").Body.String(), "payload")
	require.Equal(t, 200, send(h, "DELETE", "/schedules/morning", "").Code)
	require.Equal(t, 404, send(h, "DELETE", "/schedules/morning", "").Code)
	require.Equal(t, 404, send(h, "GET", "/schedules/morning", "").Code)
}

func TestNamesOfSchedulesCanHaveAnyCharacters(t *testing.T) {
	h := newAPI(t, newLedger())
	for _, name := range []string{"a/b", "ü 1", "%", "preview", "next"} {
		path := "/schedules/" + url.PathEscape(name)
		require.Equal(t, 200, send(h, "PUT", path, everyMorning).Code, name)
		require.Contains(t, send(h, "GET", path, "").Body.String(), fmt.Sprintf(`"name":%q`, name))
	}
	require.Equal(t, 422, send(h, "PUT", "/schedules/"+strings.Repeat("x", 201), everyMorning).Code)
}

func TestAScheduleThatCannotBeIsRefusedWithItsPlace(t *testing.T) {
	const sleep = `"job": {"jobType": "SLEEP_JOB", "payload": {}}`
	l := newLedger()
	l.declared = []job.TypeSpec{{Type: "STRICT", Schema: json.RawMessage(`{"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}`)}}
	h := newAPI(t, l)
	for _, c := range []struct{ body, place, message string }{
		{`{` + sleep + `}`, "#", "must have exactly one of cron, every and at"},
		{`{"cron": "0 0 30 2 *", ` + sleep + `}`, "#/cron", "has no tick, ever"},
		{`{"cron": "TZ=UTC 0 0 1 * *", ` + sleep + `}`, "#/cron", "set the member zone"},
		{`{"cron": 5, ` + sleep + `}`, "#/cron", "must be a text"},
		{`{"cron": "@daily", "zone": "Berlin", ` + sleep + `}`, "#/zone", "is not a time zone"},
		{`{"every": "5", ` + sleep + `}`, "#/every", "a duration with a unit"},
		{`{"every": "0s", ` + sleep + `}`, "#/every", "must be above zero"},
		{`{"every": "100ms", ` + sleep + `}`, "#/every", "from 1s"},
		{`{"at": "2026-02-20T11:00:00Z", ` + sleep + `}`, "#/at", "leaves no tick in the future"},
		{`{"at": "soon", ` + sleep + `}`, "#/at", "an RFC 3339 time"},
		{`{"cron": "@daily", "endsAt": "2026-02-20T13:00:00Z", ` + sleep + `}`, "#/endsAt", "leaves no tick in the future"},
		{`{"cron": "@daily", "jitter": "-1s", ` + sleep + `}`, "#/jitter", "from 0s"},
		{`{"cron": "@daily", "overlap": "maybe", ` + sleep + `}`, "#/overlap", "one of allow, skip, queue, cancel_previous"},
		{`{"cron": "@daily", "catchUp": "some", ` + sleep + `}`, "#/catchUp", "one of none, last, all"},
		{`{"cron": "@daily", "catchUpWindow": "1s", ` + sleep + `}`, "#/catchUpWindow", "from 1m0s"},
		{`{"cron": "@daily", "paused": true, ` + sleep + `}`, "#/paused", "is not known"},
		{`{"cron": "@daily"}`, "#/job", "is required"},
		{`{"cron": "@daily", "cron": "@hourly", "job": {"jobType": "SLEEP_JOB"}}`, "#/cron", "is duplicated"},
		{`{"cron": "@daily", "job": {"jobType": "SLEEP_JOB", "jobType": "STRICT"}}`, "#/job/jobType", "is duplicated"},
		{`{"cron": "0 6 * * 5-1", "job": {"jobType": "SLEEP_JOB"}}`, "#/cron", "write 5-6,0-1"},
		{`{"cron": "@daily", "job": {"jobType": "SLEEP_JOB", "payload": {}, "uniqueFor": "1h"}}`, "#/job/uniqueFor", "needs uniqueBy"},
		{`{"cron": "@daily", "job": []}`, "#/job", "must be a submission"},
		{`{"cron": "@daily", "job": {}}`, "#/job/jobType", "is required"},
		{`{"cron": "@daily", "job": {"jobType": "NOBODYS_JOB"}}`, "#/job/jobType", "no handler has declared"},
		{`{"cron": "@daily", "job": {"jobType": "SLEEP_JOB", "runAt": "2030-01-01T00:00:00Z"}}`, "#/job/runAt", "the schedule says when"},
		{`{"cron": "@daily", "job": {"jobType": "SLEEP_JOB", "idempotencyKey": "k"}}`, "#/job/idempotencyKey", "a key of its own"},
		{`{"cron": "@daily", "job": {"jobType": "SLEEP_JOB", "tenant": "x"}}`, "#/job/tenant", "must be left out"},
		{`{"cron": "@daily", "job": {"jobType": "SLEEP_JOB", "priority": "high"}}`, "#/job/priority", "must be a whole number"},
		{`{"cron": "@daily", "overlap": "queue", "job": {"jobType": "SLEEP_JOB", "concurrencyKey": "k"}}`, "#/job/concurrencyKey", "excludes overlap queue"},
		{`{"cron": "@daily", "job": {"jobType": "STRICT", "payload": {"n": "x"}}}`, "#/job/payload/n", "integer"},
	} {
		t.Run(c.body, func(t *testing.T) {
			answer := send(h, "PUT", "/schedules/s", c.body)
			require.Equal(t, 422, answer.Code, answer.Body)
			var refused v1.Problem
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &refused))
			require.Len(t, refused.Errors, 1, refused.Errors)
			require.Equal(t, c.place, refused.Errors[0].Location)
			require.Contains(t, refused.Errors[0].Message, c.message)
		})
	}
	require.Equal(t, 200, send(h, "PUT", "/schedules/s", `{"cron": "@daily", "job": {"jobType": "STRICT", "payload": {"n": 1}}}`).Code,
		"a type that allows no scheduledTime gets none")
	require.Equal(t, 415, send(h, "PUT", "/schedules/s", everyMorning, "Content-Type: text/plain").Code)
	require.Equal(t, 400, send(h, "PUT", "/schedules/s", `{`).Code)
}

func TestAConfiguredScheduleCanBePausedButNotChanged(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	require.Equal(t, 200, send(h, "PUT", "/schedules/s", everyMorning).Code)
	l.plans.configured = []string{"s"}
	require.Equal(t, 409, send(h, "PUT", "/schedules/s", everyMorning).Code)
	require.Equal(t, 409, send(h, "DELETE", "/schedules/s", "").Code)
	paused := send(h, "POST", "/schedules/s/pause", `{"reason": "closing"}`)
	require.Equal(t, 200, paused.Code)
	require.Contains(t, paused.Body.String(), `"reason":"closing"`)
	require.NotContains(t, paused.Body.String(), "nextAt")
	require.Contains(t, send(h, "POST", "/schedules/s/resume", "").Body.String(), `"state":"active"`)
	require.Equal(t, 422, send(h, "POST", "/schedules/s/pause", `{"reason": "`+strings.Repeat("x", 501)+`"}`).Code)
	for verb, body := range map[string]string{"pause": "{}", "resume": "", "run": "", "backfill": `{"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}`} {
		require.Equal(t, 404, send(h, "POST", "/schedules/none/"+verb, body).Code, verb)
	}
}

func TestARunByHandAndABackfillMakeJobs(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	require.Equal(t, 200, send(h, "PUT", "/schedules/s", everyMorning).Code)
	first := send(h, "POST", "/schedules/s/run", "", "Idempotency-Key: once")
	require.Equal(t, 202, first.Code, first.Body)
	require.Equal(t, first.Body.String(), send(h, "POST", "/schedules/s/run", "", "Idempotency-Key: once").Body.String())
	require.JSONEq(t, `{"a": 1.50, "scheduledTime": "2026-02-20T12:00:00Z"}`, string(l.submitted[0].Payload))
	require.Equal(t, 202, send(h, "POST", "/schedules/s/run", "").Code)

	const days = `{"from": "2026-02-10T00:00:00Z", "to": "2026-02-12T00:00:00Z"}`
	require.JSONEq(t, `{"ticks": 2, "made": 2, "found": 0, "skipped": 0}`, send(h, "POST", "/schedules/s/backfill", days).Body.String())
	require.JSONEq(t, `{"ticks": 2, "made": 0, "found": 2, "skipped": 0}`, send(h, "POST", "/schedules/s/backfill", days).Body.String())
	for body, place := range map[string]string{
		`{}`: "#/from", `{"from": "2026-02-10T00:00:00Z"}`: "#/to", `{"from": 1, "to": "2026-02-12T00:00:00Z"}`: "#/from",
		`{"from": "2026-02-12T00:00:00Z", "to": "2026-02-10T00:00:00Z"}`: "#/to",
		`{"from": "2026-02-12T00:00:00Z", "to": "2100-02-10T00:00:00Z"}`: "#/to",
		`{"from": "1900-02-12T00:00:00Z", "to": "2026-02-10T00:00:00Z"}`: "#/to",
	} {
		answer := send(h, "POST", "/schedules/s/backfill", body)
		require.Equal(t, 422, answer.Code, body)
		require.Contains(t, answer.Body.String(), `"location":"`+place+`"`, body)
	}
}

func TestTheNextRunsArePreviewed(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	require.Equal(t, 200, send(h, "PUT", "/schedules/s", everyMorning).Code)
	next := send(h, "GET", "/schedules/s/next?limit=2&after=2026-03-28T00:00:00Z", "")
	require.JSONEq(t, `{"runs": [
		{"at": "2026-03-28T05:30:00Z", "local": "2026-03-28T06:30:00+01:00", "dueAt": "2026-03-28T05:30:00Z"},
		{"at": "2026-03-29T04:30:00Z", "local": "2026-03-29T06:30:00+02:00", "dueAt": "2026-03-29T04:30:00Z"}]}`, next.Body.String())
	preview := send(h, "POST", "/schedules/preview", `{"every": "1h", "limit": 1}`)
	require.JSONEq(t, `{"runs": [{"at": "2026-02-20T13:00:00Z", "local": "2026-02-20T13:00:00Z", "dueAt": "2026-02-20T13:00:00Z"}]}`, preview.Body.String())
	for body, place := range map[string]string{
		`{"every": "1h", "limit": 0}`: "#/limit", `{"every": "1h", "limit": 101}`: "#/limit", `{"every": "1h", "cron": "@daily"}`: "#",
		`{"cron": "61 * * * *"}`: "#/cron", `{"every": "1h", "job": {}}`: "#/job",
	} {
		answer := send(h, "POST", "/schedules/preview", body)
		require.Equal(t, 422, answer.Code, body)
		require.Contains(t, answer.Body.String(), `"location":"`+place+`"`, body)
	}
}

func TestSchedulesAreListedInPages(t *testing.T) {
	h := newAPI(t, newLedger())
	for _, name := range []string{"c", "a", "b"} {
		require.Equal(t, 200, send(h, "PUT", "/schedules/"+name, everyMorning).Code)
	}
	require.Equal(t, 200, send(h, "PUT", "/schedules/z?tenant=acme", everyMorning).Code)
	var names []string
	for cursor := ""; ; {
		answer := send(h, "GET", "/schedules?limit=2"+cursor, "")
		var page v1.ScheduleList
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &page))
		for _, one := range page.Schedules {
			names = append(names, one.Tenant+" "+one.Name)
		}
		if page.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + page.NextCursor
	}
	require.Equal(t, []string{"acme z", "default a", "default b", "default c"}, names)
	for _, cursor := range []string{"x", "AAAA", strings.Repeat("A", 40)} {
		require.Equal(t, 422, send(h, "GET", "/schedules?cursor="+cursor, "").Code)
	}
}

func TestACallerOfATenantHasOnlyItsOwnSchedules(t *testing.T) {
	server, _ := guarded(t, guard.Config{Access: accessFor(false)}, func(l *ledger) {
		l.planner()
		l.plans.all = []job.Schedule{{
			Tenant: "default", Name: "s", Timing: job.Timing{Every: time.Hour}, Job: json.RawMessage(`{"jobType": "SLEEP_JOB", "payload": {"secret": 1}}`),
		}}
	})
	acme := who["token of acme"].header
	require.Equal(t, 404, call(t, server, "GET", "/schedules/s", acme, "").status)
	require.Equal(t, 404, call(t, server, "GET", "/schedules/s?tenant=default", acme, "").status)
	require.Equal(t, 404, call(t, server, "PUT", "/schedules/s?tenant=default", acme, everyMorning).status)
	require.NotContains(t, call(t, server, "GET", "/schedules", acme, "").body, "SLEEP_JOB")
	require.Equal(t, 200, call(t, server, "PUT", "/schedules/s", acme, everyMorning).status)
	require.Contains(t, call(t, server, "GET", "/schedules/s", acme, "").body, `"tenant":"acme"`)
	require.Contains(t, call(t, server, "GET", "/schedules/s", who["basic"].header, "").body, "secret")
	require.NotContains(t, call(t, server, "GET", "/schedules/s", who["token read"].header, "").body, "secret", "payloads are for operators")
}

package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// behind is the API behind a guard.
func behind(l ledgers, config guard.Config) http.Handler {
	config.Log = slog.New(slog.DiscardHandler)
	return api.New(api.Config{
		Jobs: l, Operations: l, Rules: l, Retention: l, Schedules: l, Workflows: l, AllPlugins: l, Guard: guard.New(config), Log: config.Log, Version: "test",
		MaxBodyBytes: 4096, MaxBatchBytes: 64 << 10, RequestTimeout: time.Minute,
	})
}

// ofAcme are the credentials of a caller bound to the tenant acme.
var ofAcme = "Authorization: " + who["token of acme"].header

func TestAnotherTenantsJobDoesNotExist(t *testing.T) {
	for _, c := range []struct {
		route string
		state job.State
	}{
		{"GET " + known, job.Queued},
		{"GET " + known + "?wait=1m", job.Queued},
		{"POST " + known + "/cancel", job.Queued},
		{"POST " + known + "/hold", job.Created},
		{"POST " + known + "/release", job.Created},
		{"POST " + known + "/requeue", job.Dead},
		{"PATCH " + known, job.Queued},
	} {
		body := ""
		if strings.HasPrefix(c.route, "PATCH") {
			body = `{"priority": 1}`
		}
		method, path, _ := strings.Cut(c.route, " ")
		for _, tenant := range []string{"acme", "other"} {
			l := newLedger()
			jobIn(c.state)(l)
			for id, v := range l.jobs {
				v.Tenant = tenant
				l.jobs[id] = v
			}
			if tenant == "acme" {
				path = strings.ReplaceAll(path, "1m", "1ms")
			}
			answer := send(behind(l, guard.Config{Access: accessFor(true)}), method, path, body, ofAcme)
			if tenant == "acme" {
				require.Equal(t, 200, answer.Code, c.route)
				continue
			}
			require.Equal(t, 404, answer.Code, c.route)
			nobodys := send(newAPI(t, newLedger()), method, strings.ReplaceAll(path, known, unknown), body)
			require.Equal(t, nobodys.Body.String(), answer.Body.String(), "as if there were no such job")
			for _, v := range l.jobs {
				require.Equal(t, c.state, v.State, "nothing was done")
				require.Equal(t, later, v.UpdatedAt)
			}
		}
	}
}

func TestListsContainOnlyTheCallersTenant(t *testing.T) {
	for _, route := range []string{"GET /jobs", "GET /dead-letter", "GET /dead-letter/groups", "GET /debug/jobs", "GET /debug/jobs/count", "POST /dead-letter/retry", "PATCH /jobs"} {
		body := ""
		if strings.HasPrefix(route, "PATCH") {
			body = `{"priority": 1}`
		}
		method, path, _ := strings.Cut(route, " ")
		for query, code := range map[string]int{"": 200, "?tenant=acme": 200, "?tenant=other": 404} {
			l := newLedger()
			answer := send(behind(l, guard.Config{Access: accessFor(true)}), method, path+query, body, ofAcme)
			require.Equal(t, code, answer.Code, route+query)
			if code == 200 {
				require.Equal(t, "acme", l.filter.Tenant+l.deadLetters.Tenant)
			} else {
				require.Zero(t, l.limit, "nothing was looked for")
			}
		}
	}
	l := withJobs(3)
	everybodys := nextPage(t, send(newAPI(t, l), "GET", "/jobs?limit=1", ""))
	require.Equal(t, 422, send(behind(l, guard.Config{Access: accessFor(true)}), "GET", everybodys, "", ofAcme).Code,
		"a cursor of another caller")
}

func TestSubmissionsGetTheCallersTenant(t *testing.T) {
	for _, c := range []struct {
		path, body string
		code       int
		place      string
	}{
		{path: "/jobs", body: `{"jobType":"A"}`, code: 202},
		{path: "/jobs", body: `{"jobType":"A","tenant":"acme"}`, code: 202},
		{path: "/jobs", body: `{"jobType":"A","tenant":"default"}`, code: 403, place: "#/tenant"},
		{path: "/jobs/batch", body: `[{"jobType":"A"}]`, code: 202},
		{path: "/jobs/batch", body: `[{"jobType":"A"},{"jobType":"A","tenant":"other"}]`, code: 403, place: "#/1/tenant"},
		{path: "/jobs/batch?atomic=false", body: `[{"jobType":"A"},{"jobType":"A","tenant":"other"}]`, code: 200, place: "#/tenant"},
	} {
		l := newLedger()
		answer := send(behind(l, guard.Config{Access: accessFor(true)}), "POST", c.path, c.body, ofAcme)
		require.Equal(t, c.code, answer.Code, answer.Body)
		require.Contains(t, answer.Body.String(), c.place)
		for _, s := range l.submitted {
			require.Equal(t, "acme", s.Tenant)
		}
		if c.code == 403 {
			require.Empty(t, l.submitted)
		}
	}
}

// tenAMinute limits both submissions and requeues.
var tenAMinute = guard.Config{PerMinute: map[guard.Limit]int{guard.Jobs: 10, guard.Requeue: 10}}

func TestEveryJobOfABatchCounts(t *testing.T) {
	l := newLedger()
	h := behind(l, tenAMinute)
	require.Equal(t, `"jobs";r=9;t=120`, send(h, "POST", "/jobs", minimal).Header().Get("RateLimit"))
	require.Equal(t, `"jobs";r=6;t=120`, send(h, "POST", "/jobs/batch", array(minimal, 3)).Header().Get("RateLimit"))
	require.Equal(t, `"jobs";r=4;t=120`, send(h, "POST", "/jobs/batch?atomic=false", "["+minimal+",{},"+minimal+"]").Header().Get("RateLimit"))

	for _, path := range []string{"/jobs/batch", "/jobs/batch?atomic=false"} {
		answer := send(h, "POST", path, array(minimal, 5))
		require.Equal(t, 429, answer.Code)
		require.NotEmpty(t, answer.Header().Get("Retry-After"))
		require.Equal(t, `"jobs";r=4;t=120`, answer.Header().Get("RateLimit"), "a refused batch does not count")
	}
	require.Equal(t, 422, send(h, "POST", "/jobs", "{}").Code, "nor do mistakes")
	require.Len(t, l.submitted, 6)
}

func TestAStreamIsSlowedToTheRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := newLedger(), time.Now()
		body := strings.Repeat(minimal+"\n", 12) + "{}\n" + minimal + "\n"
		answer := send(behind(l, tenAMinute), "POST", "/jobs/batch?atomic=false", body, ndjson...)
		require.Equal(t, 200, answer.Code)
		require.Len(t, l.submitted, 13)
		lines := strings.Split(strings.TrimSpace(answer.Body.String()), "\n")
		require.Len(t, lines, 15)
		for i, line := range lines[:14] {
			require.True(t, strings.HasPrefix(line, fmt.Sprintf(`{"index":%d,`, i)), line)
		}
		require.Contains(t, lines[12], `"status":422`)
		require.Equal(t, `{"done":true,"accepted":13,"refused":1}`, lines[14])
		// Ten at once; a minute later the first of them begin to fade.
		require.InDelta(t, 78, time.Since(began).Seconds(), 2)
	})
}

func TestAStreamThatWaitsForItsRateLimitDoesNotHoldUpTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stopping := newLedger(), make(chan struct{})
		h := api.New(api.Config{
			Jobs: l, Log: slog.New(slog.DiscardHandler), Version: "test", Guard: guard.New(tenAMinute), Stopping: stopping,
			MaxBodyBytes: api.DefaultMaxBodyBytes, RequestTimeout: api.DefaultRequestTimeout,
		})
		time.AfterFunc(time.Second, func() { close(stopping) })
		answer := send(h, "POST", "/jobs/batch?atomic=false", strings.Repeat(minimal+"\n", 12), ndjson...)
		require.Len(t, l.submitted, 10)
		lines := strings.Split(strings.TrimSpace(answer.Body.String()), "\n")
		require.Len(t, lines, 11, "those that were not stored have no result")
		require.Contains(t, lines[10], `"done":false,"accepted":10,"refused":0,"problem":{"title":"Service Unavailable","status":503`)
	})
}

func TestRequestsToRequeueCountWhateverTheyFind(t *testing.T) {
	l := newLedger()
	jobIn(job.Dead)(l)
	h := behind(l, tenAMinute)
	for i, path := range []string{"/dead-letter/retry?limit=1000", known + "/requeue", known + "/requeue", unknown + "/requeue"} {
		answer := send(h, "POST", path, "")
		require.Equal(t, []int{200, 200, 400, 404}[i], answer.Code)
		require.NotEmpty(t, answer.Header().Get("RateLimit"))
	}
	for range 6 {
		require.Equal(t, 404, send(h, "POST", unknown+"/requeue", "").Code)
	}
	for _, path := range []string{"/dead-letter/retry", known + "/requeue"} {
		require.Equal(t, 429, send(h, "POST", path, "").Code)
	}
}

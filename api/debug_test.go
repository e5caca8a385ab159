package api_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

var inspected = "/debug" + known

func TestOperatorsSeeTheInsides(t *testing.T) {
	for _, c := range []struct {
		name, path string
		given      func(*ledger)
	}{
		{name: "workers", path: "/debug/workers", given: busy},
		{name: "workers-none", path: "/debug/workers"},
		{name: "workers-unavailable", path: "/debug/workers", given: failing(job.ErrUnavailable)},
		{name: "workers-summary", path: "/debug/workers/summary?sinceMinutes=15", given: busy},
		{name: "workers-summary-ever", path: "/debug/workers/summary", given: busy},
		{name: "workers-summary-none", path: "/debug/workers/summary"},
		{name: "workers-summary-bad-query", path: "/debug/workers/summary?sinceMinutes=&since=5"},
		{name: "queues", path: "/debug/queues", given: busy},
		{name: "queues-none", path: "/debug/queues"},
		{name: "inspect", path: inspected, given: busy},
		{name: "inspect-held", path: inspected, given: func(l *ledger) {
			jobIn(job.Created)(l)
			l.details = map[job.ID]job.Detail{}
			for id, view := range l.jobs {
				l.details[id] = job.Detail{View: view, Payload: []byte("null"), MaxAttempts: 1, Timeout: time.Minute}
			}
		}},
		{name: "inspect-waiting", path: inspected, given: waiting},
		{name: "inspect-unknown", path: inspected},
		{name: "inspect-bad-id", path: "/debug/jobs/1"},
		{name: "logs", path: inspected + "/logs", given: busy},
		{name: "logs-none", path: inspected + "/logs", given: jobIn(job.Queued)},
		{name: "logs-unknown", path: inspected + "/logs"},
		{name: "logs-bad-query", path: inspected + "/logs?attempt=0&tries=1", given: busy},
		{name: "doctor", path: "/debug/doctor", given: busy},
		{name: "doctor-none", path: "/debug/doctor"},
		{name: "series-bad-query", path: "/debug/series?window=2h&tenant=acme"},
		{name: "metrics", path: "/metrics", given: busy},
		{name: "metrics-none", path: "/metrics"},
		{name: "metrics-bad-query", path: "/metrics?sinceMinutes=x&since=5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLedger()
			if c.given != nil {
				c.given(l)
			}
			requireGolden(t, c.name, transcript(send(newAPI(t, l), "GET", c.path, "")))
		})
	}
}

func TestHowFarToLookBackIsClamped(t *testing.T) {
	for _, c := range []struct {
		query          string
		summary, since time.Duration
	}{
		{query: "", summary: 0, since: 5 * time.Minute},
		{query: "?sinceMinutes=1", summary: time.Minute, since: time.Minute},
		{query: "?sinceMinutes=0", summary: time.Minute, since: time.Minute},
		{query: "?sinceMinutes=-99999999999999999999", summary: time.Minute, since: time.Minute},
		{query: "?sinceMinutes=1440", summary: 24 * time.Hour, since: 24 * time.Hour},
		{query: "?sinceMinutes=99999999999999999999", summary: 24 * time.Hour, since: 24 * time.Hour},
	} {
		l := newLedger()
		require.Equal(t, 200, send(newAPI(t, l), "GET", "/debug/workers/summary"+c.query, "").Code)
		require.Equal(t, c.summary, l.window, c.query)
		require.Equal(t, 200, send(newAPI(t, l), "GET", "/metrics"+c.query, "").Code)
		require.Equal(t, c.since, l.window, c.query)
	}
}

func TestASeriesIsOfAnHourUnlessAskedOtherwise(t *testing.T) {
	for query, want := range map[string]string{
		"": "1h ", "?window=15m": "15m ", "?window=24h&jobType=SLEEP_JOB": "24h SLEEP_JOB",
	} {
		l := newLedger()
		answer := send(newAPI(t, l), "GET", "/debug/series"+query, "")
		require.Equal(t, 200, answer.Code)
		require.Equal(t, want, l.series)
		var series v1.Series
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &series))
		require.Len(t, series.Slots, series.Window.Slots())
		require.EqualValues(t, 1, series.Slots[len(series.Slots)-1].Open)
		require.EqualValues(t, 2, series.Slots[0].Open)
	}
}

func TestAJobOfAnotherTenantIsNotInspected(t *testing.T) {
	access := accessFor(false)
	access.Tokens = append(access.Tokens, guard.Token{
		Name: "beta", Digest: guard.DigestOf("beta"), Scopes: guard.Scopes(), Tenant: "beta",
	})
	server, _ := guarded(t, guard.Config{Access: access}, busy)
	for _, path := range []string{inspected, inspected + "/logs", known + "/tree"} {
		require.Equal(t, 404, call(t, server, "GET", path, "Bearer beta", "").status)
		require.Equal(t, 200, call(t, server, "GET", path, who["token of acme"].header, "").status)
		require.Equal(t, 200, call(t, server, "GET", path, who["basic"].header, "").status)
	}
}

func TestTheLogsOfOneAttemptCanBeAskedFor(t *testing.T) {
	l := newLedger()
	busy(l)
	require.Equal(t, 200, send(newAPI(t, l), "GET", inspected+"/logs?attempt=2", "").Code)
	require.Equal(t, job.LogFilter{Number: 2, Limit: 20}, l.logged)
	for _, wrong := range []string{"", "0", "-1", "x", "1000001", "99999999999999999999"} {
		require.Equal(t, 422, send(newAPI(t, l), "GET", inspected+"/logs?attempt="+wrong, "").Code, wrong)
	}
}

// held lets a test watch slow work: it reports each start, and waits until the test
// releases it.
type held struct {
	begun chan context.Context
	goOn  chan struct{}
}

func hold(l *ledger) held {
	h := held{begun: make(chan context.Context, 10), goOn: make(chan struct{})}
	l.looking = func(ctx context.Context) error {
		h.begun <- ctx
		select {
		case <-h.goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return h
}

func TestThereIsOneDiagnosisAtATime(t *testing.T) {
	l := newLedger()
	doctor := hold(l)
	server := serve(t, l)
	first := make(chan int, 1)
	go func() { first <- statusOf(server, "/debug/doctor") }()
	bounded := <-doctor.begun

	answer := send(server.Config.Handler, "GET", "/debug/doctor", "")
	require.Equal(t, 503, answer.Code)
	require.Equal(t, "10", answer.Header().Get("Retry-After"))
	require.Contains(t, answer.Body.String(), "another diagnosis is in progress")

	deadline, bound := bounded.Deadline()
	require.True(t, bound)
	require.Greater(t, time.Until(deadline), time.Minute, "it has more time than other requests")
	close(doctor.goOn)
	require.Equal(t, 200, <-first)
	require.Equal(t, 200, statusOf(server, "/debug/doctor"), "the next one may begin")
}

func TestADiagnosisOutlivesTheDeadlinesOfTheServer(t *testing.T) {
	t.Parallel()
	l := newLedger()
	doctor := hold(l)
	server := serve(t, l, func(s *http.Server) { s.ReadTimeout, s.WriteTimeout = outlived, outlived })
	first := make(chan int, 1)
	go func() { first <- statusOf(server, "/debug/doctor") }()
	<-doctor.begun
	time.AfterFunc(outlived*3/2, func() { close(doctor.goOn) })
	require.Equal(t, 200, <-first)
}

func TestADiagnosisEndsWhenTheServerStops(t *testing.T) {
	l := newLedger()
	doctor := hold(l)
	server := serve(t, l)
	first := make(chan int, 1)
	go func() { first <- statusOf(server, "/debug/doctor") }()
	<-doctor.begun
	server.stop()
	require.Equal(t, 503, <-first)
}

// statusOf returns 0 when there is no answer.
func statusOf(server *served, path string) int {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL+path, strings.NewReader(""))
	if err != nil {
		return 0
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func TestTheDetailOfAJobNamesItsTermsAsASubmissionDoes(t *testing.T) {
	for _, members := range []string{
		`{"concurrencyKey":"customer:42","concurrencyLimit":3,"onConflict":"cancel_oldest","fairnessKey":"eu"}`,
		`{"concurrencyKey":"customer:42"}`, `{"fairnessKey":"eu"}`, `{}`,
	} {
		var terms, shown map[string]any
		require.NoError(t, json.Unmarshal([]byte(members), &terms))
		asked := maps.Clone(terms)
		asked["jobType"] = "A"
		body, err := json.Marshal(asked)
		require.NoError(t, err)
		l := newLedger()
		jobIn(job.Queued)(l)
		l.details = map[job.ID]job.Detail{}
		for id, view := range l.jobs {
			l.details[id] = job.Detail{View: view, Payload: []byte("null"), MaxAttempts: 1, Timeout: time.Minute, Terms: submitted(t, string(body)).Terms}
		}
		require.NoError(t, json.Unmarshal(send(newAPI(t, l), "GET", inspected, "").Body.Bytes(), &shown))
		maps.DeleteFunc(shown, func(name string, _ any) bool {
			return !slices.Contains([]string{"concurrencyKey", "concurrencyLimit", "onConflict", "fairnessKey"}, name)
		})
		require.Equal(t, terms, shown)
	}
}

package ui

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// life is what the API says of the times of a job.
type life struct {
	CreatedAt, FinishedAt time.Time
	TraceID               string
	Attempts              []struct {
		Outcome                   string
		Number                    int
		DueAt, ClaimedAt, EndedAt time.Time
		BeganAt, DoneAt           *time.Time
	}
}

// stretch is what the job did for a while, in one attempt.
type stretch struct {
	kind     string
	from, to time.Time
}

// stretches are those of each attempt.
func (l life) stretches() (all [][]stretch) {
	before := l.CreatedAt
	for i, a := range l.Attempts {
		waits := "backoff"
		switch {
		case i == 0:
			waits = "scheduled"
		case l.Attempts[i-1].Outcome == "failed" && l.Attempts[i-1].Number == a.Number:
			waits = "dead" // It begins anew, after a requeue.
		}
		done, began := a.EndedAt, a.ClaimedAt
		if a.DoneAt != nil {
			done = *a.DoneAt
		}
		if a.BeganAt != nil {
			began = *a.BeganAt
		}
		due := a.DueAt
		if due.Before(before) {
			due = before
		}
		var of []stretch
		for _, s := range []stretch{{waits, before, due}, {"wait", due, a.ClaimedAt}, {"slot", a.ClaimedAt, began}, {"run", began, done}, {"lease", done, a.EndedAt}} {
			if s.to.After(s.from) {
				of = append(of, s)
			}
		}
		all, before = append(all, of), a.EndedAt
	}
	return all
}

// drawn is a stretch on the page.
type drawn struct {
	Kind     string
	X, Width float64
	Title    string
}

const waterfall = `Object.values(Object.groupBy(document.querySelectorAll("svg.waterfall rect"), e => e.getAttribute("y"))).map(of => of.map(e => ({
	kind: e.getAttribute("class").replace("span-", "").replace(" lost", ""), x: Number(e.getAttribute("x")), width: Number(e.getAttribute("width")), title: e.textContent})))`

// shows checks that the page draws, and lists, what the API says.
func (b *tab) shows(l life) {
	b.t.Helper()
	end := l.FinishedAt
	for _, a := range l.Attempts {
		if a.EndedAt.After(end) {
			end = a.EndedAt
		}
	}
	x := func(at time.Time) float64 { return 90 + 900*float64(at.Sub(l.CreatedAt))/float64(end.Sub(l.CreatedAt)) }
	bars, rows := value[[][]drawn](b, waterfall), value[[]map[string]string](b, `Array.from(document.querySelectorAll("section:has(svg.waterfall) tbody tr"),
		tr => Object.fromEntries(Array.from(tr.querySelectorAll("td[data-label]"), td => [td.dataset.label, td.innerText.trim()])))`)
	want := l.stretches()
	require.Len(b.t, bars, len(want))
	require.Len(b.t, rows, len(want))
	for i, of := range want {
		require.Equal(b.t, l.Attempts[i].Outcome, rows[i]["Outcome"])
		require.Len(b.t, bars[i], len(of), "attempt %d: %v", i, bars[i])
		for j, s := range of {
			got, as := bars[i][j], fmt.Sprintf("attempt %d, %s", i, s.kind)
			require.Equal(b.t, s.kind, got.Kind, as)
			assert.InDelta(b.t, x(s.from), got.X, 1.5, as)
			assert.InDelta(b.t, math.Max(x(s.to)-x(s.from), 2), got.Width, 2, as)
			column := map[string]string{"wait": "Queue wait", "slot": "Slot wait", "run": "Run", "lease": "Lease wait", "backoff": "Backoff"}[s.kind]
			if column == "" {
				continue
			}
			assert.Equal(b.t, column+" "+rows[i][column], got.Title, as)
			shown, err := time.ParseDuration(strings.NewReplacer(" min ", "m", " ", "").Replace(rows[i][column]))
			require.NoError(b.t, err)
			assert.InEpsilon(b.t, s.to.Sub(s.from).Seconds(), shown.Seconds(), 0.02, as)
		}
	}
}

func (s *scene) life(t testing.TB, id string) (l life) {
	t.Helper()
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/debug/jobs/"+id, nil, http.StatusOK, &l))
	return l
}

func TestAJobShowsItsTimesItsLogsAndItsTrace(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	traces := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>a trace</title><link rel=icon href=data:,>")
		asked <- r.URL.Path
	}))
	t.Cleanup(traces.Close)
	url, settings := database(t, postgres.server.URL()), []string{"worker.lease=5s", "worker.kill_grace=300ms", "tracing.trace_url_template=" + traces.URL + "/trace/{trace_id}"}
	first := sceneOn(t, url, settings...)
	dir := t.TempDir()
	logged, later := filepath.Join(dir, "logged"), filepath.Join(dir, "later")
	b := newTab(t, first.origin)
	b.login(first)

	first.Header = http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	logging := first.submit(t, `{"jobType": "LOG", "payload": {"when": "`+logged+`"}}`)
	rigtest.Await(t, first.Orchestrator, logging, "RUNNING")
	b.open("/ui/jobs/" + logging)
	b.await(`/line 299/.test(document.querySelector("#log-1")?.innerText)`, "while the handler runs")
	require.Contains(t, b.text("#job-state"), "Running")
	traceID := first.life(t, logging).TraceID
	require.NotEmpty(t, traceID)
	b.expect("a request to " + traces.URL)
	b.follow(func() {
		b.run(chromedp.Click(chromedp.Search(`//main//a[text()="Trace"]`), chromedp.NodeVisible))
	})
	require.Equal(t, "/trace/"+traceID, <-asked)
	require.NoError(t, os.WriteFile(logged, nil, 0o600))
	rigtest.Await(t, first.Orchestrator, logging, "COMPLETED")

	jobs, outcomes := map[string]string{}, map[string][]string{
		"retry": {"failed", "succeeded"}, "crash": {"crashed"}, "timeout": {"timeout"}, "snooze": {"snoozed", "succeeded"}, "requeue": {"failed", "failed"},
		"lost": {"interrupted", "succeeded"},
	}
	for name, submission := range map[string]string{
		"retry":   `{"jobType": "WORK", "payload": {"failFirst": 1}}`,
		"timeout": `{"jobType": "WORK", "payload": {"millis": 600000}, "timeout": "1s", "maxAttempts": 1}`,
		"snooze":  `{"jobType": "WORK", "payload": {"snoozeMillis": 100}}`,
		"requeue": `{"jobType": "WORK", "payload": {"error": "it is closed"}, "maxAttempts": 1}`,
	} {
		jobs[name] = first.submit(t, submission)
	}
	rigtest.Await(t, first.Orchestrator, jobs["requeue"], "FAILED")
	first.call(t, http.MethodPost, "/jobs/"+jobs["requeue"]+"/requeue", nil, http.StatusOK)
	for name, status := range map[string]string{"retry": "COMPLETED", "timeout": "FAILED", "snooze": "COMPLETED", "requeue": "FAILED"} {
		rigtest.Await(t, first.Orchestrator, jobs[name], status)
	}
	jobs["crash"] = first.submit(t, `{"jobType": "CRASH", "payload": {}, "maxAttempts": 1}`)
	rigtest.Await(t, first.Orchestrator, jobs["crash"], "FAILED")
	jobs["lost"] = first.submit(t, `{"jobType": "WORK", "payload": {"when": "`+later+`"}}`)
	rigtest.Await(t, first.Orchestrator, jobs["lost"], "RUNNING")
	require.NoError(t, first.Kill())
	second := sceneOn(t, url, append(settings, "worker.id=other")...)
	require.Eventually(t, func() bool { return second.attempts(t, jobs["lost"]) == 1 }, patience, glance, "its lease runs out")
	require.NoError(t, os.WriteFile(later, nil, 0o600))
	rigtest.Await(t, second.Orchestrator, jobs["lost"], "COMPLETED")

	b = newTab(t, second.origin)
	b.login(second)
	for name, want := range outcomes {
		l := second.life(t, jobs[name])
		var got []string
		for _, a := range l.Attempts {
			got = append(got, a.Outcome)
		}
		require.Equal(t, want, got, name)
		b.open("/ui/jobs/" + jobs[name])
		b.shows(l)
	}
}

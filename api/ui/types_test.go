package ui_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const mailSchema = `{"type":"object","required":["to","subject"],"properties":{
	"to":{"type":"array","items":{"type":"string"},"description":"Who gets it."},"subject":{"type":"string"},"copies":{"type":"integer"}}}`

// someTypes answers what the pages of types ask for.
func someTypes() map[string]any {
	mail := v1.JobType{
		JobType: "SEND_EMAIL", Plugin: "builtin", Version: "v1", Description: "Sends <mail>.", MaxAttempts: 4, TimeoutSeconds: 60, HasSchema: true,
		Retry: v1.Retry{Backoff: job.Exponential, InitialDelaySeconds: 1, Factor: 2, MaxDelaySeconds: 300},
	}
	odd := v1.JobType{JobType: "a/b <img onerror=x>"}
	return map[string]any{
		"GET /metrics": v1.Metrics{
			At: noon, AvgDurationSecondsByJobType: map[string]float64{"SEND_EMAIL": 0.42},
			Queues: []v1.Queue{
				{JobType: "FAX", Queued: 2, OldestQueuedSeconds: 90, Dead: 12345},
				{JobType: "SEND_EMAIL", Queued: 12, OldestQueuedSeconds: 0.25, Scheduled: 2, Held: 3, Retrying: 4, Running: 3, Dead: 7, Served: true},
			},
		},
		"GET /debug/series": func(r *http.Request) any {
			lately := v1.SeriesType{JobType: "SEND_EMAIL", Ended: []int64{8, 0, 12}, Failed: []int64{0, 0, 3}, Run: &v1.SeriesLatency{Attempts: 20, P50: .2, P95: 1.5}}
			if r.URL.Query().Get("jobType") == "" {
				return v1.Series{JobTypes: []v1.SeriesType{lately}}
			}
			return v1.Series{JobType: "SEND_EMAIL", Run: lately.Run, Slots: []v1.SeriesSlot{{Succeeded: 8}, {Retried: 1, Dead: 2, Succeeded: 8, Canceled: 1}}}
		},
		"GET /job-types":                                v1.JobTypeList{JobTypes: []v1.JobType{mail, odd}},
		"GET /job-types/SEND_EMAIL":                     mail,
		"GET /job-types/" + url.PathEscape(odd.JobType): odd,
		"GET /job-types/SEND_EMAIL/schema":              json.RawMessage(mailSchema),
		"GET /debug/pauses":                             v1.PauseList{Pauses: []v1.Pause{{Scope: job.PauseTenant, Name: "SEND_EMAIL"}}},
	}
}

func TestTypesAreListed(t *testing.T) {
	w := newPages(someTypes()).get("/ui/types")
	requireGolden(t, "types", w)
	require.NotContains(t, w.Body.String(), "<img")
	answers := someTypes()
	answers["GET /metrics"], answers["GET /job-types"] = v1.Metrics{At: noon}, v1.JobTypeList{}
	requireGolden(t, "types-empty", newPages(answers).get("/ui/types"))
}

func TestATypeIsShown(t *testing.T) {
	requireGolden(t, "type", newPages(someTypes()).get("/ui/types/SEND_EMAIL"))
	require.Contains(t, newPages(someTypes()).get("/ui/types/FAX").Body.String(), "No handler has declared this type")
	require.Equal(t, 404, newPages(someTypes()).get("/ui/types/NONE").Code)
	odd := newPages(someTypes()).get("/ui/types/a%2Fb%20%3Cimg%20onerror=x%3E")
	require.Equal(t, 200, odd.Code)
	require.NotContains(t, odd.Body.String(), "<img")
}

func TestALimitAndAPauseOfAType(t *testing.T) {
	answers := someTypes()
	answers["GET /debug/limits/type/SEND_EMAIL"] = v1.Limit{Scope: job.LimitType, Name: "SEND_EMAIL", Concurrency: new(5), Rate: "100/1m", Burst: 2, Used: new(3), UpdatedBy: "ann", UpdatedAt: noon, Fair: true}
	answers["GET /debug/pauses"] = v1.PauseList{Pauses: []v1.Pause{{Scope: job.PauseType, Name: "SEND_EMAIL", Reason: "<b>broken</b>", PausedBy: "ann", Since: noon, Until: new(noon.Add(time.Hour))}}}
	requireGolden(t, "type-paused", newPages(answers).get("/ui/types/SEND_EMAIL"))

	answers["PUT /debug/limits/type/SEND_EMAIL"] = v1.Limit{}
	p := newPages(answers)
	w := p.post("/ui/types/SEND_EMAIL/limit", "concurrency", "7", "rate", "5/1s", "burst", "many")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Equal(t, []string{`PUT /debug/limits/type/SEND_EMAIL {"burst":"many","concurrency":7,"fair":true,"rate":"5/1s"}`}, p.api.sent)

	answers["PUT /debug/limits/type/SEND_EMAIL"] = v1.Invalid(v1.Mistake{Location: "#/rate", Message: "must be a rate"})
	w = newPages(answers).post("/ui/types/SEND_EMAIL/limit", "rate", "often")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), `id="rate-mistake">must be a rate`)
	require.Contains(t, w.Body.String(), `value="often"`)

	answers["DELETE /debug/limits/type/SEND_EMAIL"], answers["DELETE /debug/pauses/type/SEND_EMAIL"] = nil, nil
	p = newPages(answers)
	require.Equal(t, 303, p.post("/ui/types/SEND_EMAIL/limit/remove").Code)
	w = p.post("/ui/types/SEND_EMAIL/resume")
	require.Equal(t, 303, w.Code)
	undo := p.get("/ui/settings", "Cookie: "+w.Header().Get("Set-Cookie")).Body.String()
	require.Contains(t, undo, `<form method="post" action="/ui/types/SEND_EMAIL/pause"><input type="hidden" name="for" value="1h0m0s"><input type="hidden" name="reason" value="&lt;b&gt;broken&lt;/b&gt;"><button>Undo`)
	require.Equal(t, []string{"DELETE /debug/limits/type/SEND_EMAIL", "DELETE /debug/pauses/type/SEND_EMAIL"}, p.api.sent)
}

func TestATypeIsPaused(t *testing.T) {
	answers := someTypes()
	answers["PUT /debug/pauses/type/SEND_EMAIL"] = v1.Pause{}
	p := newPages(answers)
	w := p.post("/ui/types/SEND_EMAIL/pause", "reason", "the provider is down", "for", "1h", "drain", "on")
	require.Equal(t, 303, w.Code, w.Body)
	require.Equal(t, "/ui/types/SEND_EMAIL", w.Header().Get("Location"))
	require.Equal(t, []string{`PUT /debug/pauses/type/SEND_EMAIL {"reason":"the provider is down","for":"1h","drain":true}`}, p.api.sent)
	answers["PUT /debug/pauses/type/SEND_EMAIL"] = v1.Invalid(v1.Mistake{Location: "#/for", Message: "must be a duration"})
	w = newPages(answers).post("/ui/types/SEND_EMAIL/pause", "for", "soon")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), `data-live data-src="/ui/types/SEND_EMAIL"`, "the form's own URL cannot be read")
	require.Contains(t, w.Body.String(), `id="for-mistake">must be a duration`)
}

// observers are callers that see, and may change nothing.
var observers = guard.New(guard.Config{Access: &guard.Access{NoPassword: true, Closed: true, Tokens: []guard.Token{
	{Name: "observer", Digest: guard.DigestOf("observer"), Scopes: []guard.Scope{guard.Read, guard.Observe}},
}}})

// requireNothingToDo checks that every button that does something is disabled, with the reason.
func requireNothingToDo(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, 200, w.Code, w.Body)
	_, content, _ := strings.Cut(w.Body.String(), `<main id="main"`)
	content, _, _ = strings.Cut(content, "</main>")
	buttons := 0
	for button := range strings.SplitSeq(content, "<button") {
		tag, rest, _ := strings.Cut(button, ">")
		if buttons++; buttons == 1 || strings.Contains(tag, "data-") || strings.Contains(tag, "name=\"edit\"") || strings.Contains(tag, "aria-hidden") {
			continue
		}
		require.Contains(t, tag, `disabled title="Needs the scope`, rest)
	}
	require.Greater(t, buttons, 1, "there are some")
}

func TestObserversChangeNothingOfTypes(t *testing.T) {
	for _, path := range []string{"/ui/types/SEND_EMAIL", "/ui/types/SEND_EMAIL/new"} {
		requireNothingToDo(t, newPagesFor(observers, someTypes()).get(path, "Authorization: Bearer observer"))
	}
}

func TestObserversOnlySeeTheFiguresOfTypes(t *testing.T) {
	answers := someTypes()
	refused := v1.NewProblem(http.StatusForbidden, "it needs the scope read")
	answers["GET /job-types"], answers["GET /job-types/SEND_EMAIL"], answers["GET /job-types/SEND_EMAIL/schema"] = refused, refused, refused
	p := newPagesFor(closed(), answers)
	list := p.get("/ui/types", "Authorization: Bearer eyes")
	require.Equal(t, 200, list.Code, list.Body)
	require.Contains(t, list.Body.String(), `href="/ui/types/SEND_EMAIL"`)
	one := p.get("/ui/types/SEND_EMAIL", "Authorization: Bearer eyes")
	requireNothingToDo(t, one)
	require.Contains(t, one.Body.String(), "What its handler declares: Needs the scope read, which you do not have.")
	require.NotContains(t, one.Body.String(), "the handler has declared no schema", "nobody knows")
}

func TestANewJobIsSubmitted(t *testing.T) {
	answers := someTypes()
	requireGolden(t, "newjob", newPages(answers).get("/ui/types/SEND_EMAIL/new"))

	id, err := job.ParseID("019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa")
	require.NoError(t, err)
	answers["POST /jobs"] = v1.Accepted{JobID: id}
	p := newPages(answers)
	w := p.post("/ui/types/SEND_EMAIL/new", "o:", "on", "s:/mto/i0", "a@b.c", "s:/mto/i1", "", "s:/msubject", "Hello", "n:/mcopies", "1.0",
		"priority", "5", "tags", "a, b", "hold", "on")
	require.Equal(t, 303, w.Code, w.Body)
	require.Equal(t, "/ui/jobs/"+id.String(), w.Header().Get("Location"))
	require.Equal(t, []string{
		`POST /jobs {"hold":true,"jobType":"SEND_EMAIL","priority":5,"tags":["a","b"],"payload":{"copies":1.0,"subject":"Hello","to":["a@b.c"]}}`,
	}, p.api.sent)

	p = newPages(answers)
	w = p.post("/ui/types/SEND_EMAIL/new", "o:", "on", "s:/mto/i0", "a@b.c", "edit", "json", "tags", "kept")
	require.Equal(t, 200, w.Code)
	require.Empty(t, p.api.sent, "nothing is submitted yet")
	require.Contains(t, w.Body.String(), `&#34;a@b.c&#34;`)
	require.Contains(t, w.Body.String(), `value="kept"`)

	p = newPages(answers)
	require.Equal(t, 303, p.post("/ui/types/SEND_EMAIL/new", "json", `{"to": [1e2]}`).Code)
	require.Equal(t, []string{`POST /jobs {"jobType":"SEND_EMAIL","payload":{"to": [1e2]}}`}, p.api.sent, "to the letter")
}

func TestMistakesInANewJobAreAtTheirFields(t *testing.T) {
	answers := someTypes()
	answers["POST /jobs"] = v1.Invalid(
		v1.Mistake{Location: "#/payload/to/0", Message: "is no address"}, v1.Mistake{Location: "#/delay", Message: "must be a duration"},
		v1.Mistake{Location: "#/payload/subject", Message: "is required"})
	w := newPages(answers).post("/ui/types/SEND_EMAIL/new", "o:", "on", "s:/mto/i0", "<script>", "delay", "soon")
	require.Equal(t, 422, w.Code)
	requireGolden(t, "newjob-refused", w)
	require.NotContains(t, w.Body.String(), "<script>")
	p := newPages(answers)
	w = p.post("/ui/types/SEND_EMAIL/new", "n:/mcopies", "many")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), "must be a number, such as 5")
	require.Empty(t, p.api.sent)
}

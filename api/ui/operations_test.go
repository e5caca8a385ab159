package ui_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const operationID = "019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa"

func anOperation(t *testing.T, change func(*v1.Operation)) v1.Operation {
	t.Helper()
	o := v1.Operation{
		Action: job.ActionRequeue, Filter: v1.JobFilter{State: []string{"dead"}, JobType: "SEND_EMAIL", ErrorCode: "<img onerror>"},
		FrozenAt: noon.Add(-time.Minute), Rate: 200, Reason: "mail is back", State: job.OperationRunning, Expected: 4210, Found: 1200, Done: 1197,
		Skipped: map[string]int64{"erased": 3}, StartedBy: "token ops", StartedAt: noon.Add(-time.Minute), UpdatedAt: noon,
	}
	require.NoError(t, o.OperationID.UnmarshalText([]byte(operationID)))
	if change != nil {
		change(&o)
	}
	return o
}

func TestOperationsAreListedWithTheirProgress(t *testing.T) {
	p := newPages(map[string]any{"GET /debug/operations": v1.OperationList{Operations: []v1.Operation{
		anOperation(t, nil), anOperation(t, func(o *v1.Operation) {
			o.State, o.FinishedAt, o.Action = job.OperationFinished, &noon, job.ActionCancel
		}),
	}}})
	requireGolden(t, "operations", p.get("/ui/operations"))
	empty := newPages(map[string]any{"GET /debug/operations": v1.OperationList{}}).get("/ui/operations")
	require.Contains(t, empty.Body.String(), "Nobody has started an operation")
}

func TestAnOperationIsShownAndStopped(t *testing.T) {
	p := newPages(map[string]any{
		"GET /debug/operations/" + operationID: anOperation(t, nil),
		"POST /debug/operations/" + operationID + "/stop": anOperation(t, func(o *v1.Operation) {
			o.State = job.OperationStopped
		}),
	})
	requireGolden(t, "operation", p.get("/ui/operations/"+operationID))
	w := p.post("/ui/operations/" + operationID + "/stop")
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/operations/"+operationID, w.Header().Get("Location"))
	require.Equal(t, []string{"POST /debug/operations/" + operationID + "/stop"}, p.api.sent)
	require.Equal(t, 404, p.get("/ui/operations/unknown").Code)
}

// preview is what a dry run of n jobs finds.
func preview(n int) map[string]any {
	sample := v1.FoundJob{Job: v1.Job{JobType: "SEND_EMAIL", CreatedAt: noon.Add(-time.Hour)}, State: job.Dead, Tenant: "acme", LastError: "<img onerror>"}
	return map[string]any{"POST /debug/operations": v1.OperationAnswer{
		Count: n, FrozenAt: noon, Samples: []v1.FoundJob{sample}, Warnings: []string{"version v1, under which SEND_EMAIL jobs died, still serves"},
	}}
}

func TestAnOperationIsCountedBeforeItStarts(t *testing.T) {
	p := newPages(preview(4210))
	w := p.get("/ui/operations/new?state=dead&jobType=SEND_EMAIL&fingerprint=8d8f5b0d3c6c5a3e")
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), `<button class="primary">Requeue 4,210 jobs</button>`)
	require.Contains(t, w.Body.String(), `data-typed="4210"`)
	require.Contains(t, w.Body.String(), `href="/ui/jobs?fingerprint=8d8f5b0d3c6c5a3e&amp;jobType=SEND_EMAIL&amp;state=dead"`)
	require.NotContains(t, w.Body.String(), "<img")
	require.Len(t, p.api.sent, 1)
	require.Contains(t, p.api.sent[0], `"dryRun":true`)
	require.Contains(t, p.api.sent[0], `"filter":{"state":["dead"],"jobType":"SEND_EMAIL","fingerprint":"8d8f5b0d3c6c5a3e"}`)

	few := newPages(preview(12)).get("/ui/operations/new?action=cancel&tag=x")
	require.Contains(t, few.Body.String(), `<button class="danger">Cancel 12 jobs</button>`)
	require.NotContains(t, few.Body.String(), "data-typed")
	none := newPages(preview(0)).get("/ui/operations/new?action=cancel&tag=x")
	require.NotContains(t, none.Body.String(), `action="/ui/operations"`)
	unchosen := newPages(preview(1))
	require.Equal(t, 200, unchosen.get("/ui/operations/new?tag=x").Code)
	require.Empty(t, unchosen.api.sent, "no action was chosen")
}

// A link that was cut must not act on more than was meant.
func TestAFilterThatCannotBeReadSelectsNothing(t *testing.T) {
	for _, part := range []string{"createdBefore=2026-01", "createdFrom=x", "parentId=019aa3e5-7f10"} {
		p := newPages(preview(4210))
		w := p.get("/ui/operations/new?action=cancel&state=scheduled&" + part)
		require.Equal(t, 422, w.Code, part)
		require.Contains(t, w.Body.String(), "The filter cannot be read", part)
		require.NotContains(t, w.Body.String(), `action="/ui/operations"`, part)
		name, value, _ := strings.Cut(part, "=")
		require.Equal(t, 422, p.post("/ui/operations", "action", "cancel", "state", "scheduled", name, value).Code, part)
		require.Empty(t, p.api.sent, part)
	}
}

func TestALongCountGoesOnWhileThePageIsOpen(t *testing.T) {
	goOn := make(chan struct{})
	p := newPages(map[string]any{"POST /debug/operations": func(r *http.Request) any {
		var sent map[string]any
		require.NoError(t, json.NewDecoder(r.Body).Decode(&sent))
		if sent["cursor"] == nil {
			return v1.OperationAnswer{Count: 1200, More: true, NextCursor: "c", FrozenAt: noon}
		}
		<-goOn
		require.Equal(t, "c", sent["cursor"])
		require.Equal(t, noon.Format(time.RFC3339Nano), sent["frozenAt"])
		return v1.OperationAnswer{Count: 34, FrozenAt: noon}
	}})
	const form = "/ui/operations/new?state=dead&jobType=SEND_EMAIL"
	first := p.get(form).Body.String()
	require.Contains(t, first, "1,200+ jobs")
	require.NotContains(t, first, "<button class=\"primary\">", "there is nothing to start yet")
	again := html.UnescapeString(regexp.MustCompile(`data-live data-src="([^"]*)"`).FindStringSubmatch(first)[1])
	require.Contains(t, first, `href="`+html.EscapeString(again)+`"`, "for those without JavaScript")
	require.Contains(t, p.get(form).Body.String(), "1,200+ jobs", "a count that goes on is everybody's")

	enough := html.UnescapeString(p.get(again + "&enough=true").Body.String())
	require.Contains(t, enough, "Requeue 1,200+ jobs</button>")
	require.NotContains(t, enough, "data-src")

	close(goOn)
	require.Eventually(t, func() bool { return strings.Contains(p.get(again).Body.String(), "Requeue 1,234 jobs</button>") }, time.Minute, time.Millisecond)
	require.Contains(t, p.get(again).Body.String(), `data-typed="1234"`)
}

func TestACountThatHasStoppedSaysWhy(t *testing.T) {
	p := newPages(map[string]any{"POST /debug/operations": func(r *http.Request) any {
		var sent map[string]any
		require.NoError(t, json.NewDecoder(r.Body).Decode(&sent))
		if sent["cursor"] == nil {
			return v1.OperationAnswer{Count: 1200, More: true, NextCursor: "c", FrozenAt: noon}
		}
		return v1.Unavailable("the <b>database</b> is not available")
	}})
	page := ""
	require.Eventually(t, func() bool {
		page = p.get("/ui/operations/new?state=dead&frozenAt=" + noon.Format(time.RFC3339Nano)).Body.String()
		return strings.Contains(page, "Counting has stopped: the &lt;b&gt;database&lt;/b&gt; is not available.")
	}, time.Minute, time.Millisecond)
	require.Contains(t, page, "1,200+ jobs")
	require.Contains(t, page, ">Look again</a>")
	require.Contains(t, page, `data-announce="Counting has stopped"`)
	enough := html.UnescapeString(p.get("/ui/operations/new?state=dead&enough=true&frozenAt=" + noon.Format(time.RFC3339Nano)).Body.String())
	require.NotContains(t, enough, "has stopped", "nobody waits for it any more")
	require.Contains(t, enough, "Requeue 1,200+ jobs</button>")
}

func TestWhatWasTypedStaysWhileJobsAreCounted(t *testing.T) {
	counted, goOn := make(chan struct{}), make(chan struct{})
	p := newPages(map[string]any{"POST /debug/operations": func(r *http.Request) any {
		var sent map[string]any
		require.NoError(t, json.NewDecoder(r.Body).Decode(&sent))
		require.NotContains(t, sent, "reason", "the count does not depend on it")
		if sent["cursor"] == nil {
			return v1.OperationAnswer{Count: 1200, More: true, NextCursor: "c", FrozenAt: noon}
		}
		close(counted)
		<-goOn
		return v1.OperationAnswer{Count: 34, FrozenAt: noon}
	}})
	const typed = "&rate=7&reason=mail+%26+more"
	first := html.UnescapeString(p.get("/ui/operations/new?state=dead" + typed).Body.String())
	require.Regexp(t, `<a href="/ui/operations/new\?[^"]*&rate=7&reason=mail\+%26\+more&state=dead">Look again</a>`, first)
	require.Contains(t, first, `name="rate" value="7" data-from="rate"`, "the form for another action keeps it, too")
	require.Contains(t, first, `name="reason" value="mail & more" data-from="reason"`)
	<-counted
	enough := html.UnescapeString(p.get("/ui/operations/new?state=dead&enough=true&frozenAt=" + noon.Format(time.RFC3339Nano) + typed).Body.String())
	require.Contains(t, enough, `name="rate" value="7" inputmode`)
	require.Contains(t, enough, `name="reason" value="mail & more" maxlength`)
	require.Contains(t, enough, "1,200+ jobs", "which needed no count of its own")
	close(goOn)
}

// A refused form comes back whole, with what is wrong at its field.
func TestARefusedRateIsSaidAtItsField(t *testing.T) {
	answers := preview(12)
	counted := answers["POST /debug/operations"]
	p := newPages(map[string]any{"POST /debug/operations": func(r *http.Request) any {
		var sent map[string]any
		require.NoError(t, json.NewDecoder(r.Body).Decode(&sent))
		if sent["dryRun"] == true {
			return counted
		}
		return v1.Invalid(v1.Mistake{Location: "#/rate", Message: "must be a whole number from 1 to 10000"})
	}})
	w := p.post("/ui/operations", "action", "cancel", "tag", "x", "rate", "many", "reason", "typed")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), `<p class="mistake" id="rate-mistake">must be a whole number from 1 to 10000</p>`)
	require.Contains(t, w.Body.String(), `value="typed" maxlength`)
}

func TestAnOperationStartsOnTheJobsThatWereCounted(t *testing.T) {
	started := anOperation(t, nil)
	answers := map[string]any{"POST /debug/operations": func(r *http.Request) any {
		require.Equal(t, "k", r.Header.Get("Idempotency-Key"))
		return v1.OperationAnswer{Count: 4210, Operation: &started}
	}}
	p := newPages(answers)
	fields := []string{
		"state", "dead", "jobType", "SEND_EMAIL", "action", "requeue", "frozenAt", "2026-11-23T12:00:00Z", "key", "k", "rate", "200", "reason", "mail is back",
		"jobs", "4210",
	}
	w := p.post("/ui/operations", append(fields, "typed", "4,210")...)
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/operations/"+operationID, w.Header().Get("Location"))
	require.JSONEq(t, `{"action":"requeue","filter":{"state":["dead"],"jobType":"SEND_EMAIL"},"all":false,"rate":200,"reason":"mail is back",
		"frozenAt":"2026-11-23T12:00:00Z"}`, strings.TrimPrefix(p.api.sent[0], "POST /debug/operations "))

	again := newPages(preview(4210))
	w = again.post("/ui/operations", append(fields, "typed", "42")...)
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), "must be the number of jobs: 4210")
	require.Contains(t, w.Body.String(), `value="mail is back"`)
	for _, sent := range again.api.sent {
		require.Contains(t, sent, `"dryRun":true`)
	}
}

func TestWhatTheAPIRefusesIsSaidAtTheField(t *testing.T) {
	p := newPages(map[string]any{"POST /debug/operations": v1.Invalid(v1.Mistake{Location: "#/rate", Message: "must be a whole number from 1 to 10000"})})
	w := p.get("/ui/operations/new?action=cancel&tag=x&rate=" + url.QueryEscape("many"))
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), "must be a whole number from 1 to 10000")
}

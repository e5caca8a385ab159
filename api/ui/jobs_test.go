package ui_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const hostile = "<img src=x onerror=alert(1)>\u202e"

var jobID, _ = job.ParseID("019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa")

func foundJobs() v1.FoundJobs {
	began, ended := noon.Add(-time.Minute), noon.Add(-58*time.Second)
	other := jobID
	other[15]--
	back := noon.Add(-2 * time.Hour)
	return v1.FoundJobs{
		Jobs: []v1.FoundJob{
			{
				Job:   v1.Job{JobID: jobID, JobType: "SEND_EMAIL", CreatedAt: noon.Add(-time.Hour), StartedAt: &began, FinishedAt: &ended},
				State: job.Dead, Tenant: "acme", Tags: []string{"nightly", hostile}, AttemptsCharged: 4, MaxAttempts: 4, ErrorCode: "451", LastError: hostile,
			},
			{
				Job:   v1.Job{JobID: other, JobType: "SLEEP_JOB", CreatedAt: noon.Add(-time.Hour)},
				State: job.Created, Held: true, Tenant: "default", Tags: []string{}, MaxAttempts: 4,
			},
		},
		PageCursor: "here", NextCursor: "older", SearchedBack: &back,
	}
}

func jobAnswers() map[string]any {
	return map[string]any{
		"GET /debug/jobs":       foundJobs(),
		"GET /debug/jobs/count": v1.JobCount{Count: 10_000, More: true},
		"GET /job-types":        v1.JobTypeList{JobTypes: []v1.JobType{{JobType: "SEND_EMAIL"}}},
	}
}

func TestJobsAreListed(t *testing.T) {
	w := newPages(jobAnswers()).get("/ui/jobs?state=dead&state=held&jobType=SEND_EMAIL&tag=&payload=x")
	requireGolden(t, "jobs", w)
	require.NotContains(t, w.Body.String(), "<img")
	require.Contains(t, w.Body.String(), "10,000+")
}

func TestTheFilterReachesTheAPI(t *testing.T) {
	answers, asked := jobAnswers(), url.Values{}
	answers["GET /debug/jobs"] = func(r *http.Request) any {
		asked = r.URL.Query()
		return foundJobs()
	}
	newPages(answers).get("/ui/jobs?state=retry,dead&jobType=T&tenant=a&tag=b&worker=&errorCode=c&createdFrom=2030-01-31T12:00:00Z&cursor=older")
	require.Equal(t, url.Values{
		"state": {"retrying", "dead"}, "jobType": {"T"}, "tenant": {"a"}, "tag": {"b"}, "errorCode": {"c"}, "createdFrom": {"2030-01-31T12:00:00Z"},
		"cursor": {"older"}, "limit": {"50"},
	}, asked)
}

func TestASearchThatEndedEarlySaysSo(t *testing.T) {
	answers := jobAnswers()
	page := foundJobs()
	page.Jobs, page.PageCursor = []v1.FoundJob{}, ""
	answers["GET /debug/jobs"] = page
	body := newPages(answers).get("/ui/jobs?tag=rare").Body.String()
	require.Contains(t, body, "Nothing back to 10:00:00.")
	require.Contains(t, body, `href="/ui/jobs?cursor=older&amp;tag=rare">Search older`)
}

func TestNewJobsWait(t *testing.T) {
	answers := jobAnswers()
	answers["GET /debug/jobs"] = func(r *http.Request) any {
		page := foundJobs()
		if r.URL.Query().Get("cursor") == "" {
			newer := page.Jobs[0]
			newer.JobID[15]++
			page.Jobs = append([]v1.FoundJob{newer}, page.Jobs...)
		}
		return page
	}
	part := newPages(answers).get("/ui/jobs?cursor=here", "Hf-Fragment: live-jobs").Body.String()
	require.Contains(t, part, "1 new job – Show")
	require.Equal(t, 2, strings.Count(part, "data-select>"), "the rows stay")
}

func TestAFilterThatIsWrongIsShownAgain(t *testing.T) {
	answers := jobAnswers()
	answers["GET /debug/jobs"] = v1.Invalid(v1.Mistake{Location: "query.createdFrom", Message: "must be an RFC 3339 time"})
	w := newPages(answers).get("/ui/jobs?createdFrom=yesterday")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), "must be an RFC 3339 time")
	require.Contains(t, w.Body.String(), `value="yesterday"`)
}

func TestAnIDLeadsToItsJob(t *testing.T) {
	answers := jobAnswers()
	answers["GET /debug/jobs/lookup"] = v1.Lookup{Jobs: foundJobs().Jobs[:1]}
	w := newPages(answers).get("/ui/jobs?q=order-7")
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/jobs/"+jobID.String(), w.Header().Get("Location"))
	answers["GET /debug/jobs/lookup"] = v1.Lookup{Jobs: []v1.FoundJob{}}
	require.Contains(t, newPages(answers).get("/ui/jobs?q=order-7").Body.String(), "No job or workflow has the id or idempotency key order-7.")
}

func TestSelectedJobsAreActedOnOneByOne(t *testing.T) {
	answers := jobAnswers()
	answers["POST /jobs/a/cancel"] = v1.Job{}
	answers["POST /jobs/b/cancel"] = v1.Job{}
	answers["POST /jobs/c/cancel"] = v1.NewProblem(409, "the job's state does not allow this")
	p := newPages(answers)
	selected := []string{"job", "a", "job", "c", "job", "b", "job", "gone", "back", "/ui/jobs?state=running"}
	asked := p.post("/ui/jobs/act", append([]string{"act", "cancel"}, selected...)...)
	requireGolden(t, "question", asked)
	require.Empty(t, p.api.sent, "it asks first")
	w := p.post("/ui/jobs/act", append([]string{"confirmed", "cancel"}, selected...)...)
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/jobs?state=running", w.Header().Get("Location"))
	require.Len(t, p.api.sent, 4)
	require.Contains(t, p.get("/ui/jobs", "Cookie: "+w.Header().Get("Set-Cookie")).Body.String(), "2 canceled, 1 had ended, 1 not found.")
	require.Equal(t, 422, p.post("/ui/jobs/act", "act", "delete", "job", "a").Code)
	require.Equal(t, 303, p.post("/ui/jobs/act", "act", "cancel").Code)
	many := []string{"act", "cancel"}
	for range 201 {
		many = append(many, "job", "a")
	}
	require.Equal(t, 422, p.post("/ui/jobs/act", many...).Code)
	require.Len(t, p.api.sent, 4)
}

func jobDetail() v1.JobDetail {
	found := foundJobs().Jobs[0]
	return v1.JobDetail{
		Job: found.Job, State: job.Dead, Tenant: "acme", Payload: json.RawMessage(`{"n": 1.50, "text": "` + hostile + `", "big": 12345678901234567890}`),
		Tags: found.Tags, Priority: 3, AttemptsCharged: 1, MaxAttempts: 4, TimeoutSeconds: 30, LastError: hostile, TraceURL: "https://traces.example.com/1",
		ResubmissionOf: &jobID, Resubmissions: []job.ID{jobID},
		Attempts: []v1.Attempt{{
			Number: 1, Fence: 1, Outcome: job.PermanentFailure, Worker: "w-1", Plugin: "mail", PluginVersion: "v1",
			ClaimedAt: noon.Add(-time.Minute), EndedAt: noon.Add(-58 * time.Second), Code: "451", Error: hostile, Stack: hostile,
		}},
	}
}

func detailAnswers() map[string]any {
	answers, path := jobAnswers(), "/debug/jobs/"+jobID.String()
	answers["GET "+path] = jobDetail()
	answers["GET "+path+"/logs"] = v1.JobLogs{Attempts: []v1.AttemptLog{{Number: 1, Fence: 1, Dropped: 12, Lines: []v1.LogLine{
		{Time: noon.Add(-59 * time.Second), Level: job.LogInfo, Message: hostile, Attributes: json.RawMessage(`{"a":1}`)},
		{Time: noon.Add(-58 * time.Second), Level: job.LogError, Message: "it broke"},
	}}}}
	return answers
}

func TestAJobIsShownWhole(t *testing.T) {
	w := newPages(detailAnswers()).get("/ui/jobs/" + jobID.String())
	requireGolden(t, "job", w)
	require.NotContains(t, w.Body.String(), "<img")
	require.Contains(t, w.Body.String(), "12345678901234567890", "to the letter")
	require.Contains(t, w.Body.String(), "1.50")
	require.Contains(t, w.Body.String(), "12 earlier lines not kept")
	errorsOnly := newPages(detailAnswers()).get("/ui/jobs/"+jobID.String()+"?level=error", "Hf-Fragment: live-logs").Body.String()
	require.Contains(t, errorsOnly, "it broke")
	require.NotContains(t, errorsOnly, "onerror")
}

func TestObserversChangeNothingOfAJob(t *testing.T) {
	path := "/ui/jobs/" + jobID.String()
	w := newPagesFor(observers, detailAnswers()).get(path, "Authorization: Bearer observer")
	requireNothingToDo(t, w)
	require.NotContains(t, w.Body.String(), `href="#payload"`, "no way to a form that may not be sent")
	require.Contains(t, newPages(detailAnswers()).get(path).Body.String(), `href="#payload"`, "a field within the form, so that browsers unfold it")
}

func TestAJobThatComesAfterOthersIsNotCalledHeld(t *testing.T) {
	answers, detail := detailAnswers(), jobDetail()
	detail.State, detail.Held = job.Created, true
	detail.Waits = []v1.Wait{{Reason: job.WaitHeld, Message: "is held"}}
	answers["GET /debug/jobs/"+jobID.String()] = detail
	held := newPages(answers).get("/ui/jobs/" + jobID.String()).Body.String()
	require.Contains(t, held, `data-announce="Held"`)
	detail.Waits = []v1.Wait{{Reason: job.WaitPredecessors, Message: "waits for 2 jobs"}}
	answers["GET /debug/jobs/"+jobID.String()] = detail
	follows := newPages(answers).get("/ui/jobs/" + jobID.String()).Body.String()
	require.Contains(t, follows, `data-announce="Waits for jobs"`)
	require.Contains(t, follows, `>Waits for jobs</span>`)
	require.NotContains(t, follows, ">Held</span>")
}

func TestALongPayloadIsCut(t *testing.T) {
	answers := detailAnswers()
	detail := jobDetail()
	detail.Payload = json.RawMessage(`"` + strings.Repeat("é", 1<<19) + `"`)
	answers["GET /debug/jobs/"+jobID.String()] = detail
	p := newPages(answers)
	w := p.get("/ui/jobs/" + jobID.String())
	require.Less(t, w.Body.Len(), 100_000)
	require.Contains(t, w.Body.String(), `/payload?of=payload">All of it`)
	whole := p.get("/ui/jobs/" + jobID.String() + "/payload")
	require.Equal(t, string(detail.Payload), whole.Body.String())
	require.Equal(t, "text/plain; charset=utf-8", whole.Header().Get("Content-Type"))
}

func TestAJobIsSubmittedAnew(t *testing.T) {
	answers, path := detailAnswers(), "/ui/jobs/"+jobID.String()
	made := jobID
	made[0] = 2
	answers["POST /debug/jobs/"+jobID.String()+"/resubmit"] = v1.Accepted{JobID: made}
	p := newPages(answers)
	w := p.post(path+"/resubmit", "json", `{"n": 2.50}`, "tags", "a, b", "priority", "3", "delay", "1h")
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/jobs/"+made.String(), w.Header().Get("Location"))
	require.Equal(t, []string{"POST /debug/jobs/" + jobID.String() + `/resubmit {"payload":{"n": 2.50},"tags":["a","b"],"delay":"1h"}`}, p.api.sent)

	w = p.post(path+"/resubmit", "json", `{"n": `, "priority", "high")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), `<code>#/payload</code> is not JSON`)
	require.Contains(t, w.Body.String(), `id="priority-mistake">must be a whole number`)
	answers["POST /debug/jobs/"+jobID.String()+"/resubmit"] = v1.Invalid(v1.Mistake{Location: "#/payload/n", Message: "must be a text"})
	w = newPages(answers).post(path+"/resubmit", "json", `{"n": 3}`, "tags", "", "priority", "3")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), "<code>#/payload/n</code> must be a text")
	require.Contains(t, w.Body.String(), `{&#34;n&#34;: 3}</textarea>`)
}

func TestAJobIsEditedInTheFieldsOfItsSchema(t *testing.T) {
	answers, path := detailAnswers(), "/ui/jobs/"+jobID.String()
	answers["GET /job-types/SEND_EMAIL/schema"] = json.RawMessage(`{"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}, "text": {"type": "string"}}}`)
	page := newPages(answers).get(path).Body.String()
	fields := regexp.MustCompile(`<input id="f\d+" name="([^"]+)" value="1\.50"`).FindStringSubmatch(page)
	require.Len(t, fields, 2, page)
	require.Contains(t, page, "12345678901234567890", "what the schema does not name")
	require.NotContains(t, newPages(answers).get(path, "Hf-Fragment: live-job").Body.String(), "schema")

	answers["POST /debug/jobs/"+jobID.String()+"/resubmit"] = v1.Invalid(v1.Mistake{Location: "#/payload/n", Message: "must be below 1"})
	p := newPages(answers)
	w := p.post(path+"/resubmit", fields[1], "2.50", "priority", "3", "tags", "nightly, "+hostile)
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), `-mistake">must be below 1`)
	require.Contains(t, w.Body.String(), `data-live data-src="`+path+`"`, "live parts are those of the job")
	require.Equal(t, []string{"POST /debug/jobs/" + jobID.String() + `/resubmit {"payload":{"n":2.50}}`}, p.api.sent)
	require.Contains(t, p.post(path+"/resubmit", fields[1], "2.50", "edit", "json").Body.String(), `name="json"`)
	p.post(path+"/resubmit", "json", string(jobDetail().Payload), "priority", "3", "tags", "nightly, "+hostile)
	require.Equal(t, "POST /debug/jobs/"+jobID.String()+"/resubmit {}", p.api.sent[1], "nothing has changed")
	require.Len(t, p.api.sent, 2)
}

func TestActsOnOneJob(t *testing.T) {
	answers := detailAnswers()
	answers["POST /jobs/"+jobID.String()+"/requeue"] = v1.Job{}
	p := newPages(answers)
	w := p.post("/ui/jobs/"+jobID.String()+"/act", "act", "requeue")
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/jobs/"+jobID.String(), w.Header().Get("Location"))
	asked := p.post("/ui/jobs/"+jobID.String()+"/act", "act", "cancel")
	require.Equal(t, 200, asked.Code)
	require.Contains(t, asked.Body.String(), `name="confirmed" value="cancel">Cancel the job</button>`)
	require.Len(t, p.api.sent, 1)
	require.Equal(t, 404, p.post("/ui/jobs/"+jobID.String()+"/act", "confirmed", "cancel").Code)
}

func TestHoldAndReleaseCanBeUndone(t *testing.T) {
	path, due := "/jobs/"+jobID.String(), noon.Add(time.Hour)
	scheduled, held := jobDetail(), jobDetail()
	scheduled.State, scheduled.RunAt = job.Created, &due
	held.State, held.Held = job.Created, true
	for name, c := range map[string]struct {
		before v1.JobDetail
		verb   string
		// queued says that the job cannot be held again at once.
		queued bool
		want   []string
	}{
		"a hold":                       {before: scheduled, verb: "hold", want: []string{"PATCH " + path + ` {"runAt":"2026-11-23T13:00:00Z"}`}},
		"a release of a scheduled job": {before: scheduled, verb: "release", want: []string{"PATCH " + path + ` {"runAt":"2026-11-23T13:00:00Z"}`}},
		"a release of a held job that waits for others": {before: held, verb: "release", want: []string{"POST " + path + "/hold"}},
		"a release of a held job": {
			before: held, verb: "release", queued: true,
			want: []string{"POST " + path + "/hold", "PATCH " + path + ` {"delay":"1h"}`, "POST " + path + "/hold"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]any{"GET /debug" + path: c.before, "POST " + path + "/release": v1.Job{}, "PATCH " + path: v1.Job{}}
			p := newPages(answers)
			answers["POST "+path+"/hold"] = func(*http.Request) any {
				if c.queued && len(p.api.sent) == 2 {
					return v1.NewProblem(409, "it is queued")
				}
				return v1.Job{}
			}
			w := p.post("/ui"+path+"/act", "act", c.verb)
			require.Equal(t, 303, w.Code, w.Body)
			notice := p.get("/ui/settings", "Cookie: "+w.Header().Get("Set-Cookie")).Body.String()
			require.Contains(t, notice, `action="/ui`+path+`/undo"`)
			at := regexp.MustCompile(`name="runAt" value="([^"]*)"`).FindStringSubmatch(notice)
			require.NotNil(t, at, notice)
			w = p.post("/ui"+path+"/undo", "runAt", at[1])
			require.Equal(t, 303, w.Code, w.Body)
			require.Equal(t, c.want, p.api.sent[1:])
		})
	}
}

func TestWithoutPayloadsNoneIsShown(t *testing.T) {
	answers := detailAnswers()
	detail := jobDetail()
	detail.Payload, detail.PayloadsWithheld = json.RawMessage("null"), true
	answers["GET /debug/jobs/"+jobID.String()] = detail
	g := guard.New(guard.Config{Access: &guard.Access{Tokens: []guard.Token{
		{Name: "looks", Digest: guard.DigestOf("looks"), Scopes: []guard.Scope{guard.Observe}},
	}}})
	p := newPagesFor(g, answers)
	w := p.get("/ui/jobs/"+jobID.String(), "Authorization: Bearer looks")
	require.Equal(t, 200, w.Code, w.Body)
	for _, text := range []string{"it broke", "curl -u", "1.50"} {
		require.NotContains(t, w.Body.String(), text)
	}
	require.Contains(t, w.Body.String(), "Needs the scope operate")
	require.Zero(t, p.api.calls["GET /debug/jobs/"+jobID.String()+"/logs"], "not even asked for")
	require.Equal(t, 403, p.get("/ui/jobs/"+jobID.String()+"/payload", "Authorization: Bearer looks").Code)
	require.Regexp(t, `name="payload"[^>]* disabled`, p.get("/ui/jobs", "Authorization: Bearer looks").Body.String())
}

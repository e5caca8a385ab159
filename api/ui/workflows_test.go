package ui_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// numbered is an id.
func numbered(n int) job.ID {
	id := jobID
	id[14], id[15] = byte(n>>8), byte(n)
	return id
}

// diamond is a workflow that is stuck.
func diamond() v1.WorkflowDetail {
	w := v1.WorkflowDetail{Workflow: v1.Workflow{
		WorkflowID: jobID, Name: "nightly " + hostile, Tenant: "acme", State: job.WorkflowStuck, Jobs: 5, Remaining: 3, Unsuccessful: 1, CreatedAt: noon.Add(-time.Hour),
	}}
	for i, one := range []v1.WorkflowStep{
		{Name: "extract", State: job.Succeeded},
		{Name: "orders " + hostile, State: job.Dead, After: []string{"extract"}, OnDeath: job.OnDeathWait},
		{Name: "customers", State: job.Running, After: []string{"extract"}, OnDeath: job.OnDeathWait},
		{Name: "", State: job.Created, After: []string{"orders " + hostile, "customers"}, Missing: 2, OnDeath: job.OnDeathSkip},
		{Name: "report", State: job.Canceled, Skipped: true, Reason: "one before it died", After: []string{"customers"}, OnDeath: job.OnDeathSkip},
		{JobType: "NOTIFY", State: job.Created, Missing: 1, OnComplete: true, OnDeath: job.OnDeathWait},
	} {
		if one.JobID, one.Status = numbered(i), one.State.Status(); one.JobType == "" {
			one.JobType = "IMPORT"
		}
		w.Steps = append(w.Steps, one)
	}
	return w
}

// wide is a workflow of which one job comes after n, and those after one.
func wide(n int) v1.WorkflowDetail {
	w := v1.WorkflowDetail{Workflow: v1.Workflow{WorkflowID: jobID, Tenant: "acme", State: job.WorkflowRunning, Jobs: n + 2, Remaining: n + 1}}
	last := v1.WorkflowStep{JobID: numbered(n + 1), Name: "last", JobType: "JOIN", State: job.Created, Missing: n}
	w.Steps = append(w.Steps, v1.WorkflowStep{JobID: numbered(0), Name: "first", JobType: "SPLIT", State: job.Succeeded})
	for i := range n {
		step := v1.WorkflowStep{JobID: numbered(i + 1), Name: fmt.Sprintf("part-%d", i), JobType: "PART", State: job.Queued, After: []string{"first"}}
		if i%3 == 0 {
			step.State = job.Succeeded
		}
		w.Steps = append(w.Steps, step)
		last.After = append(last.After, step.Name)
	}
	w.Steps = append(w.Steps, last)
	return w
}

const workflowURL = "/ui/workflows/019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa"

func workflowAnswers(w v1.WorkflowDetail) map[string]any {
	done := w.Workflow
	done.WorkflowID, done.Name, done.State, done.FinishedAt = numbered(9), "", job.WorkflowSucceeded, &noon
	return map[string]any{
		"GET /workflows":                   v1.WorkflowList{Workflows: []v1.Workflow{w.Workflow, done}, NextCursor: "older"},
		"GET /workflows/count":             v1.WorkflowCount{Count: 10_000, More: true},
		"GET /workflows/" + jobID.String(): w,
	}
}

func TestWorkflowsAreListed(t *testing.T) {
	answers, asked := workflowAnswers(diamond()), []string{}
	list := answers["GET /workflows"]
	answers["GET /workflows"] = func(r *http.Request) any {
		asked = append(asked, r.URL.RawQuery)
		return list
	}
	w := newPages(answers).get("/ui/workflows?state=stuck&tenant=acme")
	requireGolden(t, "workflows", w)
	require.NotContains(t, w.Body.String(), "<img")
	require.Contains(t, w.Body.String(), "10,000+ workflows")
	newPages(answers).get("/ui/workflows?cursor=older")
	require.Equal(t, []string{"limit=50&state=stuck&tenant=acme", "cursor=older&limit=50"}, asked)
	back := noon.Add(-time.Hour)
	answers["GET /workflows"] = v1.WorkflowList{NextCursor: "older", SearchedBack: &back}
	require.Contains(t, newPages(answers).get("/ui/workflows?state=stuck").Body.String(), "Nothing in the newest 10,000, back to 11:00:00.")
	answers["GET /workflows"], answers["GET /workflows/count"] = v1.WorkflowList{}, v1.WorkflowCount{}
	require.Contains(t, newPages(answers).get("/ui/workflows").Body.String(), "No workflows.")
}

func TestAListOfWorkflowsSaysWhichStatesThereAre(t *testing.T) {
	answers, asked := workflowAnswers(diamond()), ""
	answers["GET /workflows"] = func(r *http.Request) any {
		asked = r.URL.RawQuery
		return v1.Invalid(v1.Mistake{Location: "query.state", Message: "must be one of running, held"})
	}
	body := newPages(answers).get("/ui/workflows?state=zzz,stuck&state=").Body.String()
	require.Equal(t, "limit=50&state=zzz&state=stuck", asked)
	require.Contains(t, body, "<code>query.state</code> must be one of running, held")
	require.Contains(t, body, `value="stuck" checked`)
	require.NotContains(t, body, "No workflow")
}

func TestAWorkflowIsShown(t *testing.T) {
	w := newPages(workflowAnswers(diamond())).get(workflowURL)
	requireGolden(t, "workflow", w)
	require.NotContains(t, w.Body.String(), "<img")
	dead := newPages(workflowAnswers(diamond())).get(workflowURL + "?state=dead&depth=1").Body.String()
	require.Equal(t, 1, strings.Count(dead, `<tr id="step-`))
	require.Contains(t, dead, "1 job</caption>")
	ended := diamond()
	ended.State, ended.FinishedAt = job.WorkflowCanceled, &noon
	require.Equal(t, 4, strings.Count(newPages(workflowAnswers(ended)).get(workflowURL).Body.String(), `disabled title="It has ended."`))
	requireNothingToDo(t, newPagesFor(observers, workflowAnswers(diamond())).get(workflowURL, "Authorization: Bearer observer"))
}

func TestAWideWorkflowIsDrawnWhole(t *testing.T) {
	body := newPages(workflowAnswers(wide(998))).get(workflowURL).Body.String()
	require.Equal(t, 1000, strings.Count(body, `<a id="node-`))
	require.Equal(t, 100, strings.Count(body, `<tr id="step-`))
	require.Contains(t, body, "1,996 lines between columns")
	require.Contains(t, body, `?from=100#steps">More`)
	last := newPages(workflowAnswers(wide(998))).get(workflowURL + "?from=900").Body.String()
	require.Contains(t, last, "and 988 others")
	require.NotContains(t, last, `#steps">More`)
}

func TestTheJobsOfALargeWorkflowShareBoxes(t *testing.T) {
	body := newPages(workflowAnswers(wide(3000))).get(workflowURL).Body.String()
	require.Equal(t, 4, strings.Count(body, `<a id="node-`))
	require.Contains(t, body, `href="`+workflowURL+`?depth=1&amp;state=queued#steps" class="queued"><title>2,000 jobs: Queued</title>`)
}

func TestAWorkflowsActs(t *testing.T) {
	answers := workflowAnswers(diamond())
	path := "/workflows/" + jobID.String()
	for _, verb := range []string{"hold", "release", "cancel"} {
		answers["POST "+path+"/"+verb] = diamond().Workflow
	}
	reasons := []string{}
	answers["POST "+path+"/requeue"] = func(r *http.Request) any {
		reasons = append(reasons, r.Header.Get("X-Holdfast-Reason"))
		return v1.Requeued{Count: 3}
	}
	p := newPages(answers)
	for _, verb := range []string{"hold", "release", "requeue", "cancel"} {
		w := p.post(workflowURL+"/act", "act", verb, "reason", "the source is mended")
		require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
		require.Equal(t, workflowURL, w.Header().Get("Location"))
		if verb == "requeue" {
			require.Contains(t, p.get(workflowURL, "Cookie: "+w.Header().Get("Set-Cookie")).Body.String(), "Requeued 3 jobs.")
		}
	}
	require.Equal(t, []string{"the source is mended"}, reasons)
	require.Equal(t, []string{"POST " + path + "/hold", "POST " + path + "/release", "POST " + path + "/requeue", "POST " + path + "/cancel"}, p.api.sent)
	require.Equal(t, 422, p.post(workflowURL+"/act", "act", "delete").Code)
	answers["POST "+path+"/hold"] = v1.NewProblem(http.StatusConflict, "the workflow has ended")
	require.Equal(t, 409, p.post(workflowURL+"/act", "act", "hold").Code)
}

func TestTheCancelOfAManyJobsIsTyped(t *testing.T) {
	answers := workflowAnswers(wide(1200))
	answers["POST /workflows/"+jobID.String()+"/cancel"] = wide(1200).Workflow
	p := newPages(answers)
	require.Contains(t, p.get(workflowURL).Body.String(), `data-typed="1201"`)
	w := p.post(workflowURL+"/act", "act", "cancel", "jobs", "1201", "typed", "12")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), `id="typed-mistake">must be the number of jobs: 1201`)
	require.Empty(t, p.api.sent)
	require.Equal(t, 303, p.post(workflowURL+"/act", "act", "cancel", "jobs", "1201", "typed", "1,201").Code)
}

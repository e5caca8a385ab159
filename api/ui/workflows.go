package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const workflowsPerPage = 50

func (s *site) workflows(r chi.Router) {
	r.Get("/workflows", s.serve(showWorkflows))
	r.Get("/workflows/{id}", s.serve(showWorkflow))
	r.Post("/workflows/{id}/act", s.serve(actOnWorkflow))
}

// workflowList is a page of the list.
type workflowList struct {
	Page   v1.WorkflowList
	Count  v1.WorkflowCount
	States []choice
	Tenant string
	// Filtered says that there is a filter. Next is the next page; empty on the last.
	Filtered bool
	Next     string
}

// workflowClasses are the colours of the states.
var workflowClasses = map[job.WorkflowState]string{
	job.WorkflowRunning: "running", job.WorkflowHeld: "held", job.WorkflowStuck: "problem", job.WorkflowCanceling: "warning",
	job.WorkflowSucceeded: "ok", job.WorkflowCanceled: "canceled",
}

// workflowState is the state of a workflow as people see it.
func workflowState(state job.WorkflowState) shownState {
	return shownState{Name: capital(string(state)), Class: workflowClasses[state], Exact: "state " + string(state)}
}

func workflowPath(id job.ID, below ...string) string {
	return Root + client.Path(append([]string{"workflows", id.String()}, below...)...)
}

func showWorkflows(v *visit) (answer, error) {
	asked, query := v.request.URL.Query(), url.Values{}
	shown := workflowList{Tenant: v.query("tenant")}
	for _, state := range statesIn(asked) {
		query.Add("state", state)
	}
	for _, state := range job.WorkflowStates() {
		shown.States = append(shown.States, choice{string(state), workflowState(state).Name, slices.Contains(query["state"], string(state))})
	}
	if shown.Tenant != "" {
		query.Set("tenant", shown.Tenant)
	}
	shown.Filtered = len(query) > 0
	page := url.Values{"limit": {strconv.Itoa(workflowsPerPage)}}
	for name, values := range query {
		page[name] = values
	}
	if cursor := v.query("cursor"); cursor != "" {
		page.Set("cursor", cursor)
	}
	if err := v.get(client.Path("workflows"), page, &shown.Page); err != nil {
		return filterRefused(view{Template: "workflows", Title: "Workflows", Data: shown}, err, http.StatusUnprocessableEntity)
	}
	counted, err := shared[v1.WorkflowCount](v, client.Path("workflows", "count"), query)
	if err != nil {
		return nil, err
	}
	shown.Count = *counted.Value
	if shown.Page.NextCursor != "" {
		query.Set("cursor", shown.Page.NextCursor)
		shown.Next = withQuery(Root+"/workflows", query)
	}
	return view{Template: "workflows", Title: "Workflows", Data: shown}, nil
}

// workflowActs are the acts on the whole.
var workflowActs = []jobAct{
	{Verb: "hold", Label: "Hold", Done: "Held the workflow: no further job of it starts.", Scope: guard.Submit},
	{Verb: "release", Label: "Release", Done: "Released the workflow.", Scope: guard.Submit},
	{Verb: "requeue", Label: "Requeue dead jobs", Scope: guard.Operate},
	{Verb: "cancel", Label: "Cancel", Done: "Canceled the workflow: jobs that run were asked to stop.", Scope: guard.Submit},
}

// actsOnWorkflow are the acts. Those that the state does not allow are disabled.
func actsOnWorkflow(v *visit, w v1.WorkflowDetail) []jobAct {
	reasons := map[string]string{}
	if w.State != job.WorkflowHeld {
		reasons["release"] = "It is not held."
	}
	if !slices.ContainsFunc(w.Steps, func(s v1.WorkflowStep) bool { return s.State == job.Dead }) {
		reasons["requeue"] = "No job of it is dead."
	}
	switch {
	case w.FinishedAt != nil:
		for _, one := range workflowActs {
			reasons[one.Verb] = "It has ended."
		}
	case w.CanceledAt != nil:
		for _, one := range workflowActs {
			reasons[one.Verb] = "It is being canceled."
		}
	case w.State == job.WorkflowHeld:
		reasons["hold"], reasons["requeue"] = "It is held.", "It is held: release it first."
	}
	acts := slices.Clone(workflowActs)
	for i := range acts {
		if acts[i].Denied = v.denied(acts[i].Scope); acts[i].Denied == "" {
			acts[i].Denied = reasons[acts[i].Verb]
		}
	}
	return acts
}

func actOnWorkflow(v *visit) (answer, error) {
	at := slices.IndexFunc(workflowActs, func(a jobAct) bool { return a.Verb == v.form("act") })
	if at < 0 {
		return nil, v1.NewProblem(http.StatusUnprocessableEntity, "There is no such act.")
	}
	act := workflowActs[at]
	if jobs := v.form("jobs"); act.Verb == "cancel" && jobs != "" && digits(v.form("typed")) != jobs {
		return v.workflowPage(v1.Invalid(v1.Mistake{Location: "#/typed", Message: "must be the number of jobs: " + jobs}))
	}
	request := client.Request{Method: http.MethodPost, Path: client.Path("workflows", v.param("id"), act.Verb), Header: http.Header{}}
	if reason := v.form("reason"); reason != "" {
		request.Header.Set("X-Holdfast-Reason", reason)
	}
	var requeued v1.Requeued
	err := v.api.Call(v.context(), request, &requeued)
	if problem := client.ProblemOf(err); problem != nil && problem.Status == http.StatusUnprocessableEntity {
		return v.workflowPage(problem)
	}
	if err != nil {
		return nil, err
	}
	done := back{To: Root + client.Path("workflows", v.param("id")), Notice: act.Done}
	switch act.Verb {
	case "requeue":
		done.Notice = "Requeued " + plural(requeued.Count, "job", "jobs") + "."
	case "hold":
		done.Undo = &undo{To: done.To + "/act", Fields: map[string]string{"act": "release"}}
	}
	return done, nil
}

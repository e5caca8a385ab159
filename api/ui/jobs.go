package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	jobsPerPage = 50
	// maxSelected bounds how many jobs one act changes.
	maxSelected = 200
)

func (s *site) jobs(r chi.Router) {
	r.Get("/jobs", s.serve(showJobs))
	r.Post("/jobs/act", s.serve(actOnJobs))
	r.Get("/jobs/{id}", s.serve(showJob))
	r.Get("/jobs/{id}/payload", s.serve(showPayload))
	r.Post("/jobs/{id}/act", s.serve(actOnJob))
	r.Post("/jobs/{id}/undo", s.serve(undoJob))
	r.Post("/jobs/{id}/resubmit", s.serve(resubmitJob))
}

// jobList is the list of jobs.
type jobList struct {
	jobFilter
	Page  v1.FoundJobs
	Count v1.JobCount
	// Counting is set while they are counted for the first time.
	Counting bool
	Workflow *v1.Workflow
	// Asked is what was looked up; empty for a list.
	Asked string
	// Live is where the rows are read again, Newest the first page, Older the next one.
	Live, Newest, Older string
	// News is how many jobs are newer than the first row, with a + if there may be more.
	News  string
	Types []string
	// Tenants are those of the jobs of the page.
	Tenants []string
	// Matching is where to act on all jobs that match; empty without a filter.
	Matching string
	Acts     []jobAct
}

// jobAct is an act on jobs.
type jobAct struct {
	Verb, Label, Done, Not string
	// Final says that it cannot be undone, so that it is asked about first.
	Final  bool
	Scope  guard.Scope
	Denied string
}

var jobActs = []jobAct{
	{Verb: "cancel", Label: "Cancel", Done: "canceled", Not: "had ended", Final: true, Scope: guard.Submit},
	{Verb: "hold", Label: "Hold", Done: "held", Not: "not scheduled", Scope: guard.Submit},
	{Verb: "release", Label: "Release", Done: "released", Not: "not scheduled or held", Scope: guard.Submit},
	{Verb: "requeue", Label: "Requeue", Done: "requeued", Not: "not dead, or erased", Scope: guard.Operate},
}

func showJobs(v *visit) (answer, error) {
	shown := jobList{jobFilter: jobFilterOf(v), Asked: strings.TrimSpace(v.query("q"))}
	for _, one := range jobActs {
		one.Denied = v.denied(one.Scope)
		shown.Acts = append(shown.Acts, one)
	}
	if shown.Asked != "" {
		return lookUpJobs(v, shown)
	}
	query := shown.with("cursor", v.query("cursor"))
	query.Set("limit", strconv.Itoa(jobsPerPage))
	var (
		count     snapshot.Figures[*v1.JobCount]
		uncounted error
		counting  sync.WaitGroup
	)
	counting.Go(func() { count, uncounted = counted[v1.JobCount](v, client.Path("debug", "jobs", "count"), shown.query) })
	err := v.get(client.Path("debug", "jobs"), query, &shown.Page)
	counting.Wait()
	switch {
	case err != nil:
		return shown.refused(err)
	case uncounted != nil:
		return nil, uncounted
	}
	if shown.Counting = count.Pending(); !shown.Counting {
		shown.Count = *count.Value
	}
	shown.Newest = withQuery(Root+"/jobs", shown.query)
	shown.Live = withQuery(Root+"/jobs", shown.with("cursor", cmp.Or(v.query("cursor"), shown.Page.PageCursor)))
	if shown.Page.NextCursor != "" {
		shown.Older = withQuery(Root+"/jobs", shown.with("cursor", shown.Page.NextCursor))
	}
	if len(shown.query) > 0 {
		shown.Matching = withQuery(Root+"/operations/new", shown.query)
	}
	if v.fragment != "" {
		shown.countNews(v)
	}
	shown.propose(v)
	return view{Template: "jobs", Title: "Jobs", Data: shown}, nil
}

// refused shows what is wrong with the filter.
func (l jobList) refused(err error) (answer, error) {
	return filterRefused(view{Template: "jobs", Title: "Jobs", Data: l}, err, http.StatusUnprocessableEntity, http.StatusForbidden)
}

// countNews counts the jobs that came after the first row. It reads no more than a page.
func (l *jobList) countNews(v *visit) {
	var newest v1.FoundJobs
	query := l.with("limit", strconv.Itoa(jobsPerPage))
	if v.get(client.Path("debug", "jobs"), query, &newest) != nil || len(l.Page.Jobs) == 0 {
		return
	}
	first := l.Page.Jobs[0].JobID
	news := slices.IndexFunc(newest.Jobs, func(j v1.FoundJob) bool { return j.JobID.String() <= first.String() })
	switch {
	case news > 0:
		l.News = strconv.Itoa(news)
	case news < 0 && len(newest.Jobs) > 0:
		l.News = fmt.Sprintf("%d+", len(newest.Jobs))
	}
}

// propose fills in what the fields of the filter propose. Callers who may not list the types see
// those of the page.
func (l *jobList) propose(v *visit) {
	if v.fragment != "" {
		return
	}
	var types v1.JobTypeList
	if v.denied(guard.Read) == "" && v.get("/job-types", nil, &types) == nil {
		for _, one := range types.JobTypes {
			l.Types = append(l.Types, one.JobType)
		}
	}
	for _, one := range l.Page.Jobs {
		l.Types, l.Tenants = append(l.Types, one.JobType), append(l.Tenants, one.Tenant)
	}
	sorted := func(words []string) []string {
		slices.Sort(words)
		return slices.Compact(words)
	}
	l.Types, l.Tenants = sorted(l.Types), sorted(l.Tenants)
}

// lookUpJobs shows what has an id or a key: the page of the job itself if there is only one.
func lookUpJobs(v *visit, shown jobList) (answer, error) {
	var found v1.Lookup
	if err := v.get(client.Path("debug", "jobs", "lookup"), url.Values{"q": {shown.Asked}}, &found); err != nil {
		return shown.refused(err)
	}
	switch {
	case len(found.Jobs) == 1 && found.Workflow == nil:
		return back{To: jobPath(found.Jobs[0].JobID)}, nil
	case len(found.Jobs) == 0 && found.Workflow != nil && v.denied(guard.Read) == "":
		return back{To: workflowPath(found.Workflow.WorkflowID)}, nil
	}
	shown.Page.Jobs, shown.Workflow = found.Jobs, found.Workflow
	shown.Count = v1.JobCount{Count: len(found.Jobs), More: found.More}
	shown.Newest = Root + "/jobs"
	return view{Template: "jobs", Title: "Jobs", Data: shown}, nil
}

func jobPath(id job.ID) string { return Root + "/jobs/" + id.String() }

// actOnJobs does the same to each of the selected jobs, and says what became of them.
func actOnJobs(v *visit) (answer, error) {
	ids := v.formValues("job")
	act, confirmed, err := jobActIn(v)
	switch {
	case err != nil:
		return nil, err
	case len(ids) == 0:
		return back{To: v.returnTo(Root + "/jobs"), Notice: "No job was selected."}, nil
	case len(ids) > maxSelected:
		return nil, v1.NewProblem(http.StatusUnprocessableEntity, fmt.Sprintf("At most %d jobs can be selected.", maxSelected))
	case act.asks(v, confirmed):
		return act.question(v, ids).view(), nil
	}
	outcomes, err := act.doTo(v, ids)
	if err != nil && outcomes == "" {
		return nil, err
	}
	if err != nil {
		outcomes += ". Then it stopped: " + client.ProblemOf(err).Detail
	}
	return back{To: v.returnTo(Root + "/jobs"), Notice: sentence(outcomes)}, nil
}

// doTo returns what became of the jobs, in words: "3 canceled, 1 had ended". It stops at a
// refusal that is not about one job.
func (a jobAct) doTo(v *visit, ids []string) (string, error) {
	var words []string
	counts := map[string]int{}
	note := func(word string) {
		if counts[word]++; counts[word] == 1 {
			words = append(words, word)
		}
	}
	var stopped error
	for _, id := range ids {
		err := v.send(http.MethodPost, client.Path("jobs", id, a.Verb), nil, nil)
		if err == nil {
			note(a.Done)
			continue
		}
		problem := client.ProblemOf(err)
		switch {
		case problem == nil:
			return "", err
		case problem.Status == http.StatusNotFound:
			note("not found")
		case problem.Status == http.StatusConflict || problem.Status == http.StatusBadRequest:
			note(a.Not)
		default:
			stopped = err
		}
		if stopped != nil {
			break
		}
	}
	for i, word := range words {
		words[i] = count(counts[word]) + " " + word
	}
	return strings.Join(words, ", "), stopped
}

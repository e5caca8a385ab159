package ui

import (
	"cmp"
	"net/http"
	"slices"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// question is asked before an act on jobs that cannot be undone: in a dialog, or on a page of its
// own without JavaScript.
type question struct {
	Verb, Title, Text string
	// Label does it, Keep does not.
	Label, Keep string
	// To is the path of the act, Back where the browser goes afterwards.
	To, Back string
	// Jobs are the selected ones; none for that of the page.
	Jobs []string
}

// jobActIn is the act that a form asks for. confirmed says that somebody was asked.
func jobActIn(v *visit) (act jobAct, confirmed bool, err error) {
	verb := cmp.Or(v.form("confirmed"), v.form("act"))
	at := slices.IndexFunc(jobActs, func(a jobAct) bool { return a.Verb == verb })
	if at < 0 {
		return jobAct{}, false, v1.NewProblem(http.StatusUnprocessableEntity, "There is no such act.")
	}
	return jobActs[at], v.form("confirmed") != "", nil
}

// asks reports whether the caller must be asked first. Callers who may not do it are refused at
// once.
func (a jobAct) asks(v *visit, confirmed bool) bool {
	return a.Final && !confirmed && v.denied(a.Scope) == ""
}

// Consequence says what becomes of the jobs.
func (jobAct) Consequence() string {
	return "What runs is asked to stop, and nothing is tried again. This cannot be undone."
}

// question asks about the selected jobs, or about one if there are none.
func (a jobAct) question(v *visit, ids []string) *question {
	q := &question{Verb: a.Verb, Text: a.Consequence(), To: v.request.URL.Path, Back: v.returnTo(Root + "/jobs"), Jobs: ids}
	q.Title, q.Label, q.Keep = a.Label+" this job?", a.Label+" the job", "Keep it"
	if n := int64(len(ids)); n > 0 {
		q.Title, q.Label, q.Keep = a.Label+" "+plural(n, "job", "jobs")+"?", a.Label+" "+plural(n, "job", "jobs"), "Back"
	}
	return q
}

func (q *question) view() view { return view{Template: "question", Title: q.Title, Data: q} }

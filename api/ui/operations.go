package ui

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// shownOperation is an operation with what the page makes of it.
type shownOperation struct {
	v1.Operation
	// Verb is the action in words, and Class its state's colour.
	Verb, Class string
	// Left counts the jobs that were left as they are.
	Left int64
	// Filter says which jobs it acts on.
	Chips []chip
	// Reasons are those for which jobs were left.
	Reasons []leftJobs
}

// leftJobs are jobs that an operation has left, for one reason.
type leftJobs struct {
	Why  string
	Jobs int64
}

// chip is a part of a filter.
type chip struct{ Name, Value string }

func (s *site) operations(r chi.Router) {
	r.Get("/operations", s.serve(showOperations))
	r.Post("/operations", s.serve(startOperation))
	r.Get("/operations/new", s.serve(newOperation))
	r.Get("/operations/{id}", s.serve(showOperation))
	r.Post("/operations/{id}/stop", s.serve(stopOperation))
}

func showOperations(v *visit) (answer, error) {
	var list v1.OperationList
	if err := v.get(client.Path("debug", "operations"), nil, &list); err != nil {
		return nil, err
	}
	shown := make([]shownOperation, len(list.Operations))
	for i, one := range list.Operations {
		shown[i] = shownOf(one)
	}
	return view{Template: "operations", Title: "Operations", Data: shown}, nil
}

func showOperation(v *visit) (answer, error) {
	var one v1.Operation
	if err := v.get(client.Path("debug", "operations", v.param("id")), nil, &one); err != nil {
		return nil, err
	}
	shown := shownOf(one)
	return view{Template: "operation", Title: shown.Title(), Data: shown}, nil
}

func stopOperation(v *visit) (answer, error) {
	id := v.param("id")
	var stopped v1.Operation
	if err := v.send(http.MethodPost, client.Path("debug", "operations", id, "stop"), nil, &stopped); err != nil {
		return nil, err
	}
	said := "The operation had ended already."
	if stopped.State == job.OperationStopped {
		said = "Stopped after " + plural(stopped.Done, "job", "jobs") + ". What was done stays done."
	}
	return back{To: v.returnTo(Root + client.Path("operations", id)), Notice: said}, nil
}

var (
	verbs = map[job.Action]string{
		job.ActionRequeue: "Requeue", job.ActionCancel: "Cancel", job.ActionHold: "Hold", job.ActionRelease: "Release",
		job.ActionEdit: "Set the priority of",
	}
	operationClasses = map[job.OperationState]string{
		job.OperationRunning: "running", job.OperationFinished: "ok", job.OperationStopped: "warning", job.OperationFailed: "failed",
	}
)

func shownOf(o v1.Operation) shownOperation {
	shown := shownOperation{Operation: o, Verb: verbs[o.Action], Class: operationClasses[o.State], Left: o.Found - o.Done, Chips: chipsOf(o.Filter)}
	for _, why := range slices.Sorted(maps.Keys(o.Skipped)) {
		shown.Reasons = append(shown.Reasons, leftJobs{why, o.Skipped[why]})
	}
	return shown
}

// Title says what it does to how many jobs.
func (o shownOperation) Title() string { return o.Verb + " " + jobsOf(o.Expected, o.More) }

// jobsOf is a number of jobs in words.
func jobsOf(n int64, more bool) string {
	if more {
		return count(n) + "+ jobs"
	}
	return plural(n, "job", "jobs")
}

// filterFields are the members of a filter, in the order in which they are shown. Their names are
// those of the parameters of the list of jobs.
var filterFields = []struct {
	name, label string
	of          func(*v1.JobFilter) *string
}{
	{"jobType", "Type", func(f *v1.JobFilter) *string { return &f.JobType }},
	{"tenant", "Tenant", func(f *v1.JobFilter) *string { return &f.Tenant }},
	{"tag", "Tag", func(f *v1.JobFilter) *string { return &f.Tag }},
	{"worker", "Worker", func(f *v1.JobFilter) *string { return &f.Worker }},
	{"errorCode", "Error code", func(f *v1.JobFilter) *string { return &f.ErrorCode }},
	{"fingerprint", "Fingerprint", func(f *v1.JobFilter) *string { return &f.Fingerprint }},
	{"payload", "Payload contains", func(f *v1.JobFilter) *string { return &f.Payload }},
}

// chipsOf shows a filter.
func chipsOf(f v1.JobFilter) (chips []chip) {
	for _, state := range f.State {
		chips = append(chips, chip{"State", state})
	}
	for _, field := range filterFields {
		if value := *field.of(&f); value != "" {
			chips = append(chips, chip{field.label, value})
		}
	}
	if f.ParentID != nil {
		chips = append(chips, chip{"Submitted by", f.ParentID.String()})
	}
	if f.CreatedFrom != nil {
		chips = append(chips, chip{"Created from", f.CreatedFrom.Format(fullTime)})
	}
	if f.CreatedBefore != nil {
		chips = append(chips, chip{"Created before", f.CreatedBefore.Format(fullTime)})
	}
	return chips
}

// jobsPath leads to the list of the jobs that a filter selects.
func jobsPath(query url.Values) string {
	if len(query) == 0 {
		return Root + "/jobs"
	}
	return Root + "/jobs?" + query.Encode()
}

package resolve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxWorkflowMistakes bounds the answer to a workflow in which nothing is right.
const maxWorkflowMistakes = 100

// Workflow makes a workflow of what was sent, with new ids and every default filled in. It
// must be of the tenant given, unless that is empty. If the workflow is refused, the error is
// a *v1.Problem; other errors are of jobs.
func (r *Resolver) Workflow(ctx context.Context, jobs Jobs, sent submission.Workflow, tenant string, trace job.Trace) (job.WorkflowSubmission, error) {
	switch {
	case sent.Problem != nil:
		return job.WorkflowSubmission{}, sent.Problem
	case tenant != "" && sent.Tenant != "" && sent.Tenant != tenant:
		return job.WorkflowSubmission{}, v1.NewProblem(http.StatusForbidden, "not allowed for this tenant",
			mistake(submission.Pointer("tenant"), "is not the tenant of the credentials"))
	case tenant != "":
		sent.Tenant = tenant
	case sent.Tenant == "":
		sent.Tenant = job.DefaultTenant
	}
	id, err := uuid.NewV7()
	if err != nil {
		return job.WorkflowSubmission{}, fmt.Errorf("make workflow id: %w", err)
	}
	w := job.WorkflowSubmission{ID: r.cell.Stamp(job.ID(id)), Tenant: sent.Tenant, Name: sent.Name, IdempotencyKey: sent.IdempotencyKey}
	mistakes := sent.Mistakes
	one := func(item submission.Item, place ...string) (job.Submission, error) {
		item.Tenant = sent.Tenant
		made, err := r.Item(ctx, jobs, item, "", trace)
		var refused *v1.Problem
		if !errors.As(err, &refused) {
			return made, err
		}
		if refused.Status != http.StatusUnprocessableEntity {
			return made, v1.NewProblem(refused.Status, refused.Detail, submission.Within(refused.Errors, place...)...)
		}
		mistakes = append(mistakes, submission.Within(refused.Errors, place...)...)
		return made, nil
	}
	for i, item := range sent.Jobs {
		made, err := one(item, "jobs", strconv.Itoa(i))
		if err != nil {
			return job.WorkflowSubmission{}, err
		}
		step := job.WorkflowStep{Submission: made, Name: item.Step.Name, OnDeath: item.Step.OnDeath}
		if step.OnDeath == "" {
			step.OnDeath = job.OnDeathWait
		}
		w.Jobs = append(w.Jobs, step)
	}
	if sent.OnComplete != nil {
		last, err := one(*sent.OnComplete, "onComplete")
		if err != nil {
			return job.WorkflowSubmission{}, err
		}
		w.OnComplete = &last
	}
	if mistakes = append(mistakes, link(w.Jobs, sent.Jobs)...); len(mistakes) > 0 {
		return job.WorkflowSubmission{}, v1.Invalid(mistakes[:min(len(mistakes), maxWorkflowMistakes)]...)
	}
	return w, nil
}

// link fills in which steps come after which, and returns what is wrong about that.
func link(steps []job.WorkflowStep, sent []submission.Item) (mistakes []v1.Mistake) {
	refuse := func(message string, place ...string) {
		mistakes = append(mistakes, mistake(submission.Pointer(append([]string{"jobs"}, place...)...), message))
	}
	index := make(map[string]int, len(steps))
	for i, step := range steps {
		first, duplicated := index[step.Name]
		switch {
		case step.Name == "":
		case duplicated:
			refuse(fmt.Sprintf("is the name of job %d, too", first), strconv.Itoa(i), "name")
		default:
			index[step.Name] = i
		}
	}
	edges := 0
	for i, item := range sent {
		seen := make(map[int]bool, len(item.Step.After))
		for k, name := range item.Step.After {
			before, found := index[name]
			place := []string{strconv.Itoa(i), "after", strconv.Itoa(k)}
			switch {
			case !found:
				refuse(fmt.Sprintf("no job of the workflow has the name %q", submission.Shortened(name)), place...)
			case before == i:
				refuse("is the name of the job itself", place...)
			case seen[before]:
				refuse("is duplicated", place...)
			default:
				seen[before] = true
				steps[i].After = append(steps[i].After, before)
				edges++
			}
		}
	}
	if edges > job.MaxWorkflowEdges {
		refuse(fmt.Sprintf("have more than %d entries of after together", job.MaxWorkflowEdges))
	}
	if len(mistakes) == 0 {
		mistakes = cycles(steps)
	}
	return mistakes
}

// cycles refuses steps that wait for themselves: one mistake, which names a cycle.
func cycles(steps []job.WorkflowStep) []v1.Mistake {
	missing, next := make([]int, len(steps)), make([][]int, len(steps))
	var free []int
	for i, step := range steps {
		if missing[i] = len(step.After); missing[i] == 0 {
			free = append(free, i)
		}
		for _, before := range step.After {
			next[before] = append(next[before], i)
		}
	}
	for len(free) > 0 {
		last := free[len(free)-1]
		free = free[:len(free)-1]
		for _, i := range next[last] {
			if missing[i]--; missing[i] == 0 {
				free = append(free, i)
			}
		}
	}
	at := slices.IndexFunc(missing, func(n int) bool { return n > 0 })
	if at < 0 {
		return nil
	}
	// Each step that is left comes after another one that is left, so the way back from one to
	// the next meets itself.
	var way []int
	for !slices.Contains(way, at) {
		way = append(way, at)
		at = steps[at].After[slices.IndexFunc(steps[at].After, func(i int) bool { return missing[i] > 0 })]
	}
	way = way[slices.Index(way, at):]
	names := []string{steps[at].Name}
	for i := len(way) - 1; i >= 0; i-- {
		names = append(names, steps[way[i]].Name)
	}
	back := slices.Index(steps[at].After, way[min(1, len(way)-1)])
	return []v1.Mistake{mistake(submission.Pointer("jobs", strconv.Itoa(at), "after", strconv.Itoa(back)),
		"makes a cycle: "+described(names))}
}

// maxNamed is how many jobs of a cycle an answer names.
const maxNamed = 20

func described(names []string) string {
	if cut := len(names) - maxNamed; cut > 0 {
		names = append(slices.Clone(names[:maxNamed-1]), fmt.Sprintf("(%d more)", cut), names[len(names)-1])
	}
	return strings.Join(names, " → ")
}

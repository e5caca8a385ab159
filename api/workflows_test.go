package api_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// workflowBook is Workflows in memory.
type workflowBook struct {
	submitted []job.WorkflowSubmission
	filter    job.WorkflowFilter
	requeued  int
	// stored are listed instead of those that were submitted, newest first.
	stored []job.Workflow
	// held and canceled are what all of them are.
	held, canceled bool
}

func (l *ledger) SubmitWorkflow(_ context.Context, w job.WorkflowSubmission) (job.WorkflowReceipt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.workflows.submitted {
		if w.IdempotencyKey == "" || one.IdempotencyKey != w.IdempotencyKey {
			continue
		}
		if len(one.Jobs) != len(w.Jobs) {
			return job.WorkflowReceipt{}, job.ErrKeyReused
		}
		return job.WorkflowReceipt{ID: one.ID, CreatedAt: birth, Replayed: true}, l.fails
	}
	l.workflows.submitted = append(l.workflows.submitted, w)
	return job.WorkflowReceipt{ID: w.ID, CreatedAt: birth}, l.fails
}

func (l *ledger) found(id job.ID) (job.WorkflowDetail, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.workflows.submitted {
		if w.ID != id {
			continue
		}
		detail := job.WorkflowDetail{Workflow: job.Workflow{ID: id, Tenant: w.Tenant, Name: w.Name, Jobs: len(w.Jobs), Remaining: len(w.Jobs), CreatedAt: birth}}
		detail.Held = l.workflows.held
		if l.workflows.canceled {
			detail.CanceledAt = &detail.CreatedAt
		}
		for _, step := range w.Jobs {
			view := job.WorkflowStepView{JobID: step.ID, Type: step.Type, Name: step.Name, State: job.Created, OnDeath: step.OnDeath, Missing: len(step.After)}
			for _, before := range step.After {
				view.After = append(view.After, w.Jobs[before].ID)
			}
			detail.Steps = append(detail.Steps, view)
		}
		return detail, l.fails
	}
	return job.WorkflowDetail{}, job.ErrNoWorkflow
}

func (l *ledger) Workflows(_ context.Context, filter job.WorkflowFilter) (all []job.Workflow, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workflows.filter = filter
	for _, one := range l.workflows.stored {
		if len(all) < filter.Limit && (filter.Before == nil || one.ID.String() < filter.Before.String()) {
			all = append(all, one)
		}
	}
	for _, w := range slices.Backward(l.workflows.submitted) {
		if len(all) < filter.Limit {
			all = append(all, job.Workflow{ID: w.ID, Tenant: w.Tenant, CreatedAt: birth})
		}
	}
	return all, l.fails
}

func (l *ledger) Workflow(_ context.Context, id job.ID) (job.Workflow, error) {
	detail, err := l.found(id)
	return detail.Workflow, err
}

func (l *ledger) WorkflowDetail(_ context.Context, id job.ID) (job.WorkflowDetail, error) {
	return l.found(id)
}

func (l *ledger) CancelWorkflow(_ context.Context, id job.ID) error {
	_, err := l.found(id)
	if err == nil {
		err = job.ErrWrongState
	}
	return err
}

func (l *ledger) HoldWorkflow(_ context.Context, id job.ID) error {
	_, err := l.found(id)
	return err
}

func (l *ledger) ReleaseWorkflow(_ context.Context, id job.ID) error {
	_, err := l.found(id)
	return err
}

func (l *ledger) RequeueWorkflow(_ context.Context, id job.ID) (int, error) {
	_, err := l.found(id)
	return l.workflows.requeued, err
}

const diamond = `{"name": "d", "jobs": [
	{"name": "a", "jobType": "T"}, {"name": "b", "jobType": "T", "after": ["a"]},
	{"name": "c", "jobType": "T", "after": ["a"], "onDeath": "skip"}, {"jobType": "T", "after": ["b", "c"]}],
	"onComplete": {"jobType": "LAST"}}`

func TestAWorkflowIsAccepted(t *testing.T) {
	l := newLedger()
	api := newAPI(t, l)
	answer := send(api, http.MethodPost, "/workflows", diamond)
	require.Equal(t, http.StatusAccepted, answer.Code, answer.Body)
	w := l.workflows.submitted[0]
	require.Equal(t, "/workflows/"+w.ID.String(), answer.Header().Get("Location"))
	require.Equal(t, "d", w.Name)
	require.Equal(t, [][]int{nil, {0}, {0}, {1, 2}}, [][]int{w.Jobs[0].After, w.Jobs[1].After, w.Jobs[2].After, w.Jobs[3].After})
	require.Equal(t, job.OnDeathWait, w.Jobs[1].OnDeath)
	require.Equal(t, job.OnDeathSkip, w.Jobs[2].OnDeath)
	require.Equal(t, "LAST", w.OnComplete.Type)
	require.Equal(t, job.DefaultTenant, w.OnComplete.Tenant)

	shown := send(api, http.MethodGet, "/workflows/"+w.ID.String(), "")
	require.Equal(t, http.StatusOK, shown.Code)
	require.Contains(t, shown.Body.String(), `"after":["b","c"]`)
	require.Equal(t, http.StatusNotFound, send(api, http.MethodGet, "/workflows/00000000-0000-7000-8000-00000000ffff", "").Code)
	require.Equal(t, http.StatusOK, send(api, http.MethodPost, "/workflows/"+w.ID.String()+"/hold", "").Code)
	require.Equal(t, http.StatusConflict, send(api, http.MethodPost, "/workflows/"+w.ID.String()+"/cancel", "").Code)
}

func TestAWorkflowSentAgainIsAnsweredAlike(t *testing.T) {
	l := newLedger()
	api := newAPI(t, l)
	body := `{"jobs": [{"name": "a", "jobType": "T"}, {"name": "b", "jobType": "T", "after": ["a"]}]}`
	first := send(api, http.MethodPost, "/workflows", body, "Idempotency-Key: k")
	second := send(api, http.MethodPost, "/workflows", body, "Idempotency-Key: k")
	require.Equal(t, first.Body.String(), second.Body.String())
	require.Len(t, l.workflows.submitted, 1)
	other := send(api, http.MethodPost, "/workflows", `{"jobs": [{"jobType": "T"}], "idempotencyKey": "k"}`)
	require.Equal(t, http.StatusUnprocessableEntity, other.Code)
	require.Contains(t, other.Body.String(), "#/idempotencyKey")
}

func TestAWrongWorkflowIsRefusedWithItsPlaces(t *testing.T) {
	mistakes := func(answer string) map[string]string {
		var problem struct {
			Errors []struct{ Location, Message string }
		}
		require.NoError(t, json.Unmarshal([]byte(answer), &problem), answer)
		all := make(map[string]string)
		for _, e := range problem.Errors {
			all[e.Location] = e.Message
		}
		return all
	}
	for name, c := range map[string]struct {
		body string
		want map[string]string
	}{
		"unknown name":   {`{"jobs": [{"jobType": "T", "after": ["x"]}]}`, map[string]string{"#/jobs/0/after/0": `no job of the workflow has the name "x"`}},
		"itself":         {`{"jobs": [{"name": "a", "jobType": "T", "after": ["a"]}]}`, map[string]string{"#/jobs/0/after/0": "is the name of the job itself"}},
		"duplicate":      {`{"jobs": [{"name": "a", "jobType": "T"}, {"jobType": "T", "after": ["a", "a"]}]}`, map[string]string{"#/jobs/1/after/1": "is duplicated"}},
		"duplicate name": {`{"jobs": [{"name": "a", "jobType": "T"}, {"name": "a", "jobType": "T"}]}`, map[string]string{"#/jobs/1/name": "is the name of job 0, too"}},
		"cycle": {
			`{"jobs": [{"name": "z", "jobType": "T"}, {"name": "a", "jobType": "T", "after": ["z", "c"]}, {"name": "b", "jobType": "T", "after": ["a"]}, {"name": "c", "jobType": "T", "after": ["b"]}]}`,
			map[string]string{"#/jobs/1/after/1": "makes a cycle: a → b → c → a"},
		},
		"no jobs":  {`{"jobs": []}`, map[string]string{"#/jobs": "must have at least one job"}},
		"no list":  {`{"jobs": 3}`, map[string]string{"#/jobs": "must be a list of jobs"}},
		"no array": {`[]`, map[string]string{"#": "must be an object"}},
		"of the whole": {
			`{"jobs": [{"jobType": "T", "tenant": "x", "idempotencyKey": "k", "uniqueFor": "1h"}]}`,
			map[string]string{
				"#/jobs/0/tenant": "is that of the whole workflow: set it there", "#/jobs/0/idempotencyKey": "is that of the whole workflow: set it there",
				"#/jobs/0/uniqueFor": "is not for jobs of a workflow: another job could not take its place",
			},
		},
		"of one job":  {`{"jobs": [{"jobType": "T"}, {"jobType": "T", "priority": "high"}], "typo": 1}`, map[string]string{"#/jobs/1/priority": "must be a whole number from -32767 to 32767", "#/typo": "is not known"}},
		"on death":    {`{"jobs": [{"jobType": "T", "onDeath": "explode"}]}`, map[string]string{"#/jobs/0/onDeath": `must be one of "wait" "skip" "cancel"`}},
		"last one":    {`{"jobs": [{"jobType": "T"}], "onComplete": {"jobType": "T", "after": ["a"]}}`, map[string]string{"#/onComplete/after": "is not for onComplete, which comes after all other jobs"}},
		"last is bad": {`{"jobs": [{"jobType": "T"}], "onComplete": {}}`, map[string]string{"#/onComplete/jobType": "is required"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			answer := send(newAPI(t, l), http.MethodPost, "/workflows", c.body)
			require.Equal(t, http.StatusUnprocessableEntity, answer.Code, answer.Body)
			require.Equal(t, c.want, mistakes(answer.Body.String()))
			require.Empty(t, l.workflows.submitted)
		})
	}
	answer := send(newAPI(t, newLedger()), http.MethodPost, "/jobs", `{"jobType": "T", "after": ["a"]}`)
	require.Equal(t, map[string]string{"#/after": "is for jobs of a workflow: send them to POST /workflows"}, mistakes(answer.Body.String()))
}

func TestAWorkflowHasBounds(t *testing.T) {
	api := newAPI(t, newLedger())
	many := strings.Repeat(`{"jobType":"T"},`, 4000)
	answer := send(api, http.MethodPost, "/workflows", `{"jobs": [`+many[:len(many)-1]+`]}`)
	require.Contains(t, []int{http.StatusAccepted, http.StatusRequestEntityTooLarge}, answer.Code)
	require.Equal(t, http.StatusRequestEntityTooLarge, send(api, http.MethodPost, "/workflows",
		`{"jobs": [{"jobType": "T", "payload": "`+strings.Repeat("x", 5000)+`"}]}`).Code)
	require.Equal(t, http.StatusBadRequest, send(api, http.MethodPost, "/workflows", `{"jobs": [`).Code)
}

func TestWorkflowsAreListedInPages(t *testing.T) {
	l := newLedger()
	api := newAPI(t, l)
	for i := range 3 {
		require.Equal(t, http.StatusAccepted, send(api, http.MethodPost, "/workflows", fmt.Sprintf(`{"name": "%d", "jobs": [{"jobType": "T"}]}`, i)).Code)
	}
	answer := send(api, http.MethodGet, "/workflows?limit=2&unfinished=true", "")
	require.Equal(t, http.StatusOK, answer.Code)
	var page struct {
		Workflows  []struct{ WorkflowID job.ID }
		NextCursor string
	}
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &page))
	require.Len(t, page.Workflows, 2)
	require.Equal(t, job.WorkflowFilter{Unfinished: true, Limit: 3}, l.workflows.filter)
	send(api, http.MethodGet, "/workflows?limit=2&unfinished=true&cursor="+page.NextCursor, "")
	require.Equal(t, page.Workflows[1].WorkflowID, *l.workflows.filter.Before)
}

// storedWorkflows are so many that have succeeded, and below them one that is stuck.
func storedWorkflows(succeeded int) (all []job.Workflow) {
	for i := range succeeded + 1 {
		one := job.Workflow{Tenant: job.DefaultTenant, CreatedAt: birth, FinishedAt: &birth}
		binary.BigEndian.PutUint32(one.ID[:], uint32(succeeded+1-i))
		all = append(all, one)
	}
	all[succeeded].FinishedAt, all[succeeded].Dead = nil, true
	return all
}

func TestWorkflowsAreFoundByState(t *testing.T) {
	l := newLedger()
	l.workflows.stored = storedWorkflows(10_500)
	api := newAPI(t, l)
	read := func(path string, into any) {
		answer := send(api, http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, answer.Code, answer.Body)
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), into))
	}
	var first, second v1.WorkflowList
	read("/workflows?state=stuck,succeeded&state=held&limit=2", &first)
	require.Len(t, first.Workflows, 2)
	require.Nil(t, first.SearchedBack)
	read("/workflows?state=canceled,stuck", &first)
	require.Empty(t, first.Workflows, "the newest 10,000 have succeeded")
	require.Equal(t, birth.UTC(), *first.SearchedBack)
	read("/workflows?state=canceled,stuck&cursor="+first.NextCursor, &second)
	require.Len(t, second.Workflows, 1)
	require.Equal(t, job.WorkflowStuck, second.Workflows[0].State)
	require.Empty(t, second.NextCursor)
	require.False(t, l.workflows.filter.Unfinished)

	var counted v1.WorkflowCount
	read("/workflows/count?state=succeeded", &counted)
	require.Equal(t, v1.WorkflowCount{Count: 10_000, More: true}, counted)
	read("/workflows/count?state=stuck,running", &counted)
	require.True(t, l.workflows.filter.Unfinished, "finished ones are not looked at")
	l.workflows.stored = storedWorkflows(7)
	read("/workflows/count", &counted)
	require.Equal(t, v1.WorkflowCount{Count: 8}, counted)
	require.Equal(t, http.StatusUnprocessableEntity, send(api, http.MethodGet, "/workflows?state=dead", "").Code)
	require.Equal(t, http.StatusUnprocessableEntity, send(api, http.MethodGet, "/workflows?state=stuck&cursor="+first.NextCursor, "").Code)
}

func TestTheJobsOfAHeldOrCanceledWorkflowAreNotRequeued(t *testing.T) {
	l := newLedger()
	api := newAPI(t, l)
	require.Equal(t, http.StatusAccepted, send(api, http.MethodPost, "/workflows", diamond).Code)
	path := "/workflows/" + l.workflows.submitted[0].ID.String() + "/requeue"
	require.Equal(t, http.StatusOK, send(api, http.MethodPost, path, "").Code)
	l.workflows.held = true
	answer := send(api, http.MethodPost, path, "")
	require.Equal(t, http.StatusConflict, answer.Code)
	require.Contains(t, answer.Body.String(), "release it first")
	l.workflows.canceled = true
	answer = send(api, http.MethodPost, path, "")
	require.Equal(t, http.StatusConflict, answer.Code)
	require.Contains(t, answer.Body.String(), "canceling")
}

package api_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func inCell(t *testing.T, jobs ledgers, number uint8) http.Handler {
	t.Helper()
	return documented(t, api.New(api.Config{
		Jobs: jobs, Operations: jobs, Rules: jobs, Retention: jobs, Bulk: jobs, Schedules: jobs, Workflows: jobs, AllPlugins: jobs,
		Log: slog.New(slog.DiscardHandler), Version: "test", Cell: job.CellOf(number),
		MaxBodyBytes: 4096, MaxBatchBytes: 64 << 10, RequestTimeout: time.Minute,
	}))
}

const hiddenKey = "must be in the header Idempotency-Key: this is a cell, and its proxy does not see keys in the body"

func TestIDsOfJobsAndWorkflowsNameTheCell(t *testing.T) {
	l := newLedger()
	h := inCell(t, l, 3)
	answer := send(h, "POST", "/jobs", minimal)
	require.Equal(t, 202, answer.Code, answer.Body.String())
	answer = send(h, "POST", "/jobs/batch", "["+minimal+","+minimal+"]")
	require.Equal(t, 202, answer.Code, answer.Body.String())
	require.Len(t, l.submitted, 3)
	for _, s := range l.submitted {
		require.Equal(t, job.CellOf(3), s.ID.Cell())
	}
	answer = send(h, "POST", "/workflows", `{"name":"w","jobs":[{"jobType":"A"}]}`)
	require.Equal(t, 202, answer.Code, answer.Body.String())
	var accepted v1.WorkflowAccepted
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &accepted))
	require.Equal(t, job.CellOf(3), accepted.WorkflowID.Cell())
	require.Equal(t, job.CellOf(3), accepted.Jobs[0].JobID.Cell())
}

// A 404 would say that there is no such job.
func TestACellSendsIDsOfOtherCellsAway(t *testing.T) {
	h := inCell(t, newLedger(), 0)
	here, there := "019aa3e5-8a5c-8b0e-9d0c-52f1c1b4f300", "019aa3e5-8a5c-8b0e-9d0c-52f1c1b4f301"
	asked := 0
	for route, o := range described(t).operations {
		method, path, _ := strings.Cut(route, " ")
		if !strings.Contains(path, "{id}") {
			continue
		}
		asked++
		answer := send(h, method, strings.Replace(path, "{id}", there, 1), "")
		require.Equal(t, 421, answer.Code, "%s (%s): %s", route, o.OperationID, answer.Body)
		require.Equal(t, "0", answer.Header().Get(v1.CellHeader))
		var problem v1.Problem
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &problem))
		require.Equal(t, "this id is of cell 1, and this is cell 0: ask the proxy, or cell 1", problem.Detail)
	}
	require.NotZero(t, asked)
	require.Equal(t, 404, send(h, "GET", "/jobs/"+here, "").Code)
	require.Equal(t, 422, send(h, "GET", "/jobs/x", "").Code)
	require.Equal(t, 404, send(h, "GET", strings.Replace("/jobs/"+there, "-8b", "-7b", 1), "").Code, "an id of before may be anywhere")
	require.Equal(t, 404, send(undocumented(newLedger()), "GET", "/jobs/"+there, "").Code)
}

func TestEveryAnswerOfACellNamesIt(t *testing.T) {
	for _, path := range []string{"/healthz", "/readyz", "/jobs", "/nowhere", "/openapi.json"} {
		require.Equal(t, []string{"7"}, send(inCell(t, newLedger(), 7), "GET", path, "").Header()[v1.CellHeader], path)
		require.Empty(t, send(undocumented(newLedger()), "GET", path, "").Header()[v1.CellHeader])
	}
}

func TestACellRefusesKeysThatItsProxyDoesNotSee(t *testing.T) {
	keyed := `{"jobType":"A","idempotencyKey":"k"}`
	for name, c := range map[string]struct {
		path, body, location string
	}{
		"a job":      {path: "/jobs", body: keyed, location: "#/idempotencyKey"},
		"a workflow": {path: "/workflows", body: `{"name":"w","idempotencyKey":"k","jobs":[{"jobType":"A"}]}`, location: "#/idempotencyKey"},
		"in a batch": {path: "/jobs/batch", body: "[" + minimal + "," + keyed + "]", location: "#/1/idempotencyKey"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			answer := send(inCell(t, l, 0), "POST", c.path, c.body)
			require.Equal(t, 422, answer.Code, answer.Body.String())
			var problem v1.Problem
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &problem))
			require.Equal(t, []v1.Mistake{{Location: c.location, Message: hiddenKey}}, problem.Errors)
			require.Empty(t, l.submitted)
		})
	}
}

func TestACellSaysThatABatchCannotHaveKeys(t *testing.T) {
	answer := send(inCell(t, newLedger(), 0), "POST", "/jobs/batch", "["+minimal+"]", "Idempotency-Key: k")
	require.Equal(t, 400, answer.Code, answer.Body.String())
	require.Contains(t, answer.Body.String(), "submit jobs with keys one by one")
}

func TestABatchOfACellRefusesOnlyItsJobsWithKeysIfEachStandsAlone(t *testing.T) {
	l := newLedger()
	lines := minimal + "\n" + `{"jobType":"A","idempotencyKey":"k"}` + "\n"
	answer := send(inCell(t, l, 0), "POST", "/jobs/batch?atomic=false", lines, ndjson...)
	require.Equal(t, 200, answer.Code, answer.Body.String())
	require.Equal(t, 1, strings.Count(answer.Body.String(), hiddenKey))
	require.Len(t, l.submitted, 1)
}

func TestACellTakesKeysOfTheHeaderEvenIfTheBodyRepeatsThem(t *testing.T) {
	for _, body := range []string{minimal, `{"jobType":"A","idempotencyKey":"k"}`} {
		l := newLedger()
		answer := send(inCell(t, l, 0), "POST", "/jobs", body, "Idempotency-Key: k")
		require.Equal(t, 202, answer.Code, answer.Body.String())
		require.Equal(t, "k", l.submitted[0].IdempotencyKey)
	}
}

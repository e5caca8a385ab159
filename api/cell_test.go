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

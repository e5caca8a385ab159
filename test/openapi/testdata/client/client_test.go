// Package client_test follows jobs through the client that oapi-codegen generates beside it.
package client_test

import (
	"context"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/openapi/client"
)

// server is a running orchestrator.
var server = os.Getenv("SERVER")

// newClient returns the generated client with the operator's credentials.
func newClient(t *testing.T) *client.ClientWithResponses {
	t.Helper()
	made, err := client.NewClientWithResponses(server, client.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.SetBasicAuth(os.Getenv("OPERATOR"), os.Getenv("PASSWORD"))
			return nil
		}))
	require.NoError(t, err)
	return made
}

func TestAGeneratedClientFollowsAJobToItsEnd(t *testing.T) {
	api := newClient(t)
	submission := client.Submission{JobType: "SLEEP_JOB", Payload: map[string]any{"sleepSeconds": 1}, Tags: new([]string{"generated"})}
	key := &client.SubmitJobParams{IdempotencyKey: new(t.Name())}
	accepted, err := api.SubmitJobWithResponse(t.Context(), key, submission)
	require.NoError(t, err)
	require.NotNil(t, accepted.JSON202, "%s", accepted.Body)
	require.Equal(t, client.PENDING, accepted.JSON202.Status)
	require.Equal(t, "/jobs/"+accepted.JSON202.JobId.String(), *accepted.Headers202.Location)

	again, err := api.SubmitJobWithResponse(t.Context(), key, submission)
	require.NoError(t, err)
	require.Equal(t, accepted.JSON202.JobId, again.JSON202.JobId)

	ended, err := api.GetJobWithResponse(t.Context(), accepted.JSON202.JobId, &client.GetJobParams{Wait: new("30s")})
	require.NoError(t, err)
	require.NotNil(t, ended.JSON200, "%s", ended.Body)
	require.Equal(t, client.COMPLETED, ended.JSON200.Status)
	require.NotNil(t, ended.JSON200.FinishedAt)

	listed, err := api.ListJobsWithResponse(t.Context(), &client.ListJobsParams{Tag: new("generated"), Status: new([]client.Status{client.COMPLETED})})
	require.NoError(t, err)
	require.NotNil(t, listed.JSON200, "%s", listed.Body)
	require.Len(t, listed.JSON200.Jobs, 1)
	require.Equal(t, *ended.JSON200, listed.JSON200.Jobs[0])
}

func TestAGeneratedClientOperates(t *testing.T) {
	api := newClient(t)
	batch, err := api.SubmitJobsWithResponse(t.Context(), &client.SubmitJobsParams{Atomic: new(false)}, []client.Submission{
		{JobType: "SLEEP_JOB", Payload: map[string]any{"sleepSeconds": 1}, Hold: new(true)},
		{JobType: "SLEEP_JOB", Payload: map[string]any{"sleepSeconds": "long"}},
	})
	require.NoError(t, err)
	require.NotNil(t, batch.JSON200, "%s", batch.Body)
	require.EqualValues(t, 1, batch.JSON200.Accepted)
	require.Equal(t, "#/payload/sleepSeconds", (*batch.JSON200.Results[1].Problem.Errors)[0].Location)

	held := batch.JSON200.Results[0].Job.JobId
	canceled, err := api.CancelJobWithResponse(t.Context(), held, nil)
	require.NoError(t, err)
	require.NotNil(t, canceled.JSON200, "%s", canceled.Body)
	requeued, err := api.RequeueJobWithResponse(t.Context(), held, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, requeued.StatusCode(), "%s", requeued.Body)
	require.NotNil(t, requeued.ApplicationproblemJSON400)

	diagnosis, err := api.DiagnoseWithResponse(t.Context())
	require.NoError(t, err)
	require.NotNil(t, diagnosis.JSON200, "%s", diagnosis.Body)
}

func TestAGeneratedClientSeesProblems(t *testing.T) {
	stranger, err := client.NewClientWithResponses(server)
	require.NoError(t, err)
	refused, err := stranger.GetMetricsWithResponse(t.Context(), nil)
	require.NoError(t, err)
	require.NotNil(t, refused.ApplicationproblemJSON401, "%s", refused.Body)
	require.NotEmpty(t, refused.ApplicationproblemJSON401.Detail)

	wrong, err := newClient(t).SubmitJobWithResponse(t.Context(), nil, client.Submission{JobType: "NOBODYS"})
	require.NoError(t, err)
	require.NotNil(t, wrong.ApplicationproblemJSON422, "%s", wrong.Body)
	require.Equal(t, "#/jobType", (*wrong.ApplicationproblemJSON422.Errors)[0].Location)
}

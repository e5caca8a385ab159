package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// A process that only serves the API reads from the database what handlers of other
// processes have declared.
func TestPayloadsAreCheckedWithoutALocalHandler(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rigtest.Start(t, orchestrator(t, url, plugin(0, "builtin", "handlers")...))
	front := orchestrator(t, url)
	rigtest.Start(t, front)

	var declared struct {
		Required []string
	}
	require.Eventually(t, func() bool { // plugins come up after the API
		return front.Call(t.Context(), http.MethodGet, "/job-types/SLEEP_JOB/schema", nil, http.StatusOK, &declared) == nil
	}, patience, glance)
	require.Equal(t, []string{"sleepSeconds"}, declared.Required)

	var refused struct {
		Errors []struct{ Location, Message string }
	}
	require.NoError(t, front.Call(t.Context(), http.MethodPost, "/jobs",
		rig.Submission{JobType: "SLEEP_JOB", Payload: map[string]any{"sleepSeconds": 301}}, http.StatusUnprocessableEntity, &refused))
	require.Len(t, refused.Errors, 1)
	require.Equal(t, "#/payload/sleepSeconds", refused.Errors[0].Location)
	require.Equal(t, "must be at most 300", refused.Errors[0].Message)

	for _, payload := range []any{map[string]any{"sleepSeconds": 1}, `{"sleepSeconds": 1}`} {
		rigtest.Await(t, front, rigtest.Submit(t, front, rig.Submission{JobType: "SLEEP_JOB", Payload: payload}), "COMPLETED")
	}
}

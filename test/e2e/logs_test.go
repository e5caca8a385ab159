package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// logs is what GET /debug/jobs/{id}/logs shows.
type logs struct {
	Attempts []struct {
		Number  int   `json:"number"`
		Fence   int64 `json:"fence"`
		Dropped int   `json:"dropped"`
		Lines   []struct {
			Level      string         `json:"level"`
			Message    string         `json:"message"`
			Attributes map[string]any `json:"attributes"`
		} `json:"lines"`
	} `json:"attempts"`
}

func logsOf(t *testing.T, o *rig.Orchestrator, id string) (found logs) {
	t.Helper()
	require.NoError(t, o.Call(t.Context(), http.MethodGet, "/debug/jobs/"+id+"/logs", nil, http.StatusOK, &found))
	return found
}

func TestLogsOfAHandlerSurviveItsCrash(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	o := orchestrator(t, url, plugin(0, "good", "testhandlers")...)
	rigtest.Start(t, o)
	id := rigtest.Submit(t, o, rig.Submission{JobType: "LOG", Payload: map[string]any{"failFirst": 1}})
	rigtest.Await(t, o, id, "COMPLETED")
	found := logsOf(t, o, id)
	require.Len(t, found.Attempts, 2)
	crashed, good := found.Attempts[0], found.Attempts[1]
	require.Equal(t, 1, crashed.Number)
	require.Len(t, crashed.Lines, 1)
	require.Equal(t, "begun \x1b[2J", crashed.Lines[0].Message)
	require.Equal(t, "warn", crashed.Lines[0].Level)
	require.Equal(t, map[string]any{"attempt": 1.0}, crashed.Lines[0].Attributes)

	require.Equal(t, 2, good.Number)
	require.NotEmpty(t, good.Lines)
	require.LessOrEqual(t, len(good.Lines), 200)
	require.GreaterOrEqual(t, good.Dropped+len(good.Lines), 301, "none is lost without a word")
	last := good.Lines[len(good.Lines)-1].Message
	require.Regexp(t, `^line 299$|^\d+ log records were dropped$`, last)
	require.NoError(t, o.ShutDown(t.Context()))
}

func TestLogsOfAHandlerSurviveItsOrchestrator(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	o := orchestrator(t, url, plugin(0, "good", "testhandlers")...)
	rigtest.Start(t, o)
	id := rigtest.Submit(t, o, rig.Submission{JobType: "LOG", Timeout: "1h", Payload: map[string]any{"millis": 3_600_000}})
	require.Eventually(t, func() bool { return len(logsOf(t, o, id).Attempts) == 1 }, patience, glance, "while it runs")
	o.Look()
	require.NoError(t, o.Kill())
	rigtest.Start(t, o)
	require.NotEmpty(t, logsOf(t, o, id).Attempts[0].Lines)
	require.NoError(t, o.Call(t.Context(), http.MethodPost, "/jobs/"+id+"/cancel", nil, http.StatusOK, nil))
	rigtest.Await(t, o, id, "CANCELED")
	require.NoError(t, o.ShutDown(t.Context()))
}

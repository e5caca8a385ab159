package plugin_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/plugintest"
)

func TestAHandlerReadsTheResultsOfTheJobsBeforeIt(t *testing.T) {
	before := []plugin.Predecessor{
		{Name: "rows", ID: "1", Succeeded: true, Result: json.RawMessage(`{"count": 3}`)},
		{Name: "none", ID: "2"},
		{Name: "large", ID: "3", Succeeded: true, Omitted: true},
	}
	harness := plugintest.Start(t, plugin.HandleResult("JOIN", func(ctx context.Context, job plugin.Job[string]) (map[string]any, error) {
		require.Equal(t, before, plugin.Predecessors(ctx))
		var value any
		found, err := plugin.ResultOf(ctx, job.Args, &value)
		return map[string]any{"found": found, "value": value}, err
	}))
	for name, want := range map[string]string{
		"rows": `{"found": true, "value": {"count": 3}}`, "none": `{"found": false, "value": null}`,
	} {
		result := harness.Run(t.Context(), plugintest.Job{Payload: name, Predecessors: before})
		require.JSONEq(t, want, string(result.Result))
	}
	for name, code := range map[string]string{"large": "result_omitted", "nobody": "unknown_predecessor"} {
		result := harness.Run(t.Context(), plugintest.Job{Payload: name, Predecessors: before})
		require.Equal(t, code, result.Code)
		require.Equal(t, plugintest.Permanent, result.Outcome)
	}
	require.Nil(t, plugin.Predecessors(t.Context()))
}

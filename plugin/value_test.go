package plugin

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

func TestAValueAboveItsCapIsRefusedInTheHandler(t *testing.T) {
	text := func(bytes int) string { return strings.Repeat("x", bytes-2) }
	refused := make(chan error, 1)
	o := describing(t, &handlerv1.DescribeRequest{MaxProgressBytes: 10, MaxCheckpointBytes: 20, MaxResultBytes: 30},
		Handle("PROGRESS", func(_ context.Context, j Job[any]) error {
			require.NoError(t, j.Progress(text(10)))
			refused <- j.Progress(text(11))
			return nil
		}),
		Handle("CHECKPOINT", func(_ context.Context, j Job[any]) error {
			require.NoError(t, j.Checkpoint(text(20)))
			return j.Checkpoint(text(21))
		}),
		HandleResult("RESULT", func(_ context.Context, j Job[int]) (string, error) { return text(j.Args), nil }),
	)
	require.NotNil(t, o.run("PROGRESS", `null`).GetSucceeded())
	require.EqualError(t, <-refused, "progress: 11 bytes of JSON are more than 10")
	for _, c := range []struct{ jobType, payload, code, message string }{
		{"CHECKPOINT", `null`, "checkpoint_too_large", "checkpoint: 21 bytes of JSON are more than 20"},
		{"RESULT", `31`, "result_too_large", "result: 31 bytes of JSON are more than 30"},
	} {
		failed := o.run(c.jobType, c.payload).GetFailed()
		require.Equal(t, c.code, failed.GetCode())
		require.Equal(t, c.message, failed.GetMessage())
		require.True(t, failed.GetPermanent())
	}
	require.Equal(t, `"`+text(30)+`"`, string(o.run("RESULT", `30`).GetSucceeded().GetResult()))
	var progress, checkpoints []json.RawMessage
	for _, m := range o.seen {
		for _, p := range m.GetProgress() {
			progress = append(progress, p.GetProgress())
		}
		for _, c := range m.GetCheckpoints() {
			checkpoints = append(checkpoints, c.GetCheckpoint())
		}
	}
	require.Len(t, progress, 1)
	require.Len(t, progress[0], 10)
	require.Len(t, checkpoints, 1)
	require.Len(t, checkpoints[0], 20)
}

func TestAnOrchestratorThatSaysNothingTakesWhatAMessageHolds(t *testing.T) {
	most := valueLimits{progress: maxValue, checkpoint: maxValue, result: maxValue, followUpBytes: maxValue}
	require.Equal(t, most, limitsOf(nil))
	require.Equal(t, most, limitsOf(&handlerv1.DescribeRequest{MaxProgressBytes: math.MaxUint64}))
	require.Equal(t, valueLimits{1, 2, 3, 4, 5}, limitsOf(&handlerv1.DescribeRequest{
		MaxProgressBytes: 1, MaxCheckpointBytes: 2, MaxResultBytes: 3, MaxFollowUps: 4, MaxFollowUpBytes: 5,
	}))
}

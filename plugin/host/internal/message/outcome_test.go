package message

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// A paused orchestrator that goes on asks for an end, while the process has stopped the attempt by itself.
func TestTheLossOfALeaseIsNotTheJobsFaultIfMessagesCross(t *testing.T) {
	t.Parallel()
	read := func(canceled job.CancelReason, code string) job.OutcomeKind {
		sent := &handlerv1.Outcome{Result: &handlerv1.Outcome_Failed{Failed: &handlerv1.Failed{Code: code}}}
		return ReadOutcome(canceled, sent, SuccessCaps{}).Kind
	}
	for _, canceled := range []job.CancelReason{"", job.CancelLeaseLost, job.CancelShutdown, job.CancelRequested} {
		require.Equal(t, job.Released, read(canceled, protocol.CodeLeaseLost), "after %q", canceled)
		require.Equal(t, job.Failure, read(canceled, "out_of_paper"), "after %q", canceled)
	}
	require.Equal(t, job.Timeout, read(job.CancelTimeout, protocol.CodeLeaseLost))
}

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
	kinds := map[job.CancelReason]map[string]job.OutcomeKind{
		"":                  {protocol.CodeLeaseLost: job.Released, "out_of_paper": job.Failure},
		job.CancelLeaseLost: {protocol.CodeLeaseLost: job.Released, "out_of_paper": job.Failure},
		job.CancelShutdown:  {protocol.CodeLeaseLost: job.Released, "out_of_paper": job.Failure},
		job.CancelRequested: {protocol.CodeLeaseLost: job.Released, "out_of_paper": job.Failure}, // canceled, as the database knows
		job.CancelTimeout:   {protocol.CodeLeaseLost: job.Timeout, "out_of_paper": job.Timeout},
	}
	for canceled, byCode := range kinds {
		for code, want := range byCode {
			sent := &handlerv1.Outcome{Result: &handlerv1.Outcome_Failed{Failed: &handlerv1.Failed{Code: code}}}
			outcome := ReadOutcome(canceled, sent, SuccessCaps{})
			require.Equal(t, job.Outcome{Kind: want, Code: code}, outcome, "%s after %q", code, canceled)
		}
	}
}

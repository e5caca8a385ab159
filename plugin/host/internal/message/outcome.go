package message

import (
	"encoding/json"
	"fmt"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Codes of outcomes that are not the handler's own.
const (
	// CodeProtocol marks a failure caused by a breach of the protocol.
	CodeProtocol = "protocol"
	// CodeTooLarge marks an attempt that is too large for a message.
	CodeTooLarge = "too_large"
	// CodeCheckpointTooLarge and CodeResultTooLarge mark an attempt that reported a
	// value above its cap.
	CodeCheckpointTooLarge = "checkpoint_too_large"
	CodeResultTooLarge     = "result_too_large"
	// CodeFollowUpsTooLarge marks an attempt that submitted too many jobs.
	CodeFollowUpsTooLarge = "followups_too_large"
	// CodeCanary marks an attempt that failed on a version on trial, and was released.
	CodeCanary = "canary"
)

// ReadOutcome translates an outcome that a process reports. canceled is the reason with
// which the handler was asked to stop; empty if it was not.
func ReadOutcome(canceled job.CancelReason, sent *handlerv1.Outcome, most SuccessCaps) job.Outcome {
	switch result := sent.GetResult().(type) {
	case *handlerv1.Outcome_Succeeded:
		return readSuccess(result.Succeeded, most)
	case *handlerv1.Outcome_Failed:
		return readFailure(canceled, result.Failed)
	case *handlerv1.Outcome_Canceled:
		return job.Outcome{Kind: stopped(canceled)}
	case *handlerv1.Outcome_Snoozed:
		after := milliseconds(result.Snoozed.GetRetryAfterMs())
		return job.Outcome{Kind: job.Snoozed, RetryAfter: &after}
	default:
		return ProtocolFailure("the plugin process reported an outcome without a result")
	}
}

// SuccessCaps bound what comes with a success: the bytes of the result, how many
// follow-ups there are, and how many bytes all of them have.
type SuccessCaps struct{ Result, FollowUps, FollowUpBytes int }

func readSuccess(sent *handlerv1.Succeeded, most SuccessCaps) job.Outcome {
	result := sent.GetResult()
	switch {
	case len(result) > most.Result:
		return job.Outcome{
			Kind: job.PermanentFailure, Code: CodeResultTooLarge,
			Message: fmt.Sprintf("the result is larger than %d bytes", most.Result),
		}
	case len(result) == 0:
		result = nil
	case !IsJSON(result):
		return ProtocolFailure("the handler's result is not JSON in UTF-8")
	}
	succeeded := job.Outcome{Kind: job.Success, Result: result}
	if len(sent.GetFollowUps()) > 0 {
		return withFollowUps(succeeded, sent.GetFollowUps(), most)
	}
	return succeeded
}

// withFollowUps adds the jobs that the handler has submitted. It does not read them: they
// are checked where jobs are accepted.
func withFollowUps(succeeded job.Outcome, followUps [][]byte, most SuccessCaps) job.Outcome {
	bytes := 0
	for _, one := range followUps {
		bytes += len(one)
	}
	refused := job.Outcome{Kind: job.PermanentFailure, Code: CodeFollowUpsTooLarge}
	switch {
	case len(followUps) > most.FollowUps:
		refused.Message = fmt.Sprintf("the handler submitted more than %d jobs", most.FollowUps)
		return refused
	case bytes > most.FollowUpBytes:
		refused.Message = fmt.Sprintf("the jobs that the handler submitted have together more than %d bytes", most.FollowUpBytes)
		return refused
	}
	succeeded.FollowUps = make([]json.RawMessage, len(followUps))
	for i, one := range followUps {
		succeeded.FollowUps[i] = one
	}
	return succeeded
}

func readFailure(canceled job.CancelReason, failed *handlerv1.Failed) job.Outcome {
	outcome := job.Outcome{
		Kind:    job.Failure,
		Code:    failed.GetCode(),
		Message: failed.GetMessage(),
		Stack:   failed.GetStack(),
	}
	switch {
	case canceled == job.CancelTimeout, canceled == "" && failed.GetCode() == protocol.CodeTimeout:
		// The attempt has timed out, whatever the error says.
		outcome.Kind = job.Timeout
	case failed.GetCode() == protocol.CodeLeaseLost:
		// It said so before it was asked to stop, or the two messages have crossed.
		outcome.Kind = job.Released
	case failed.GetPermanent():
		outcome.Kind = job.PermanentFailure
	}
	if failed.RetryAfterMs != nil {
		after := milliseconds(failed.GetRetryAfterMs())
		outcome.RetryAfter = &after
	}
	return outcome
}

// stopped returns the outcome of an attempt that confirms its cancel. A handler that
// was not asked to stop has canceled its own job.
func stopped(canceled job.CancelReason) job.OutcomeKind {
	switch canceled {
	case job.CancelTimeout:
		return job.Timeout
	case job.CancelShutdown, job.CancelLeaseLost:
		return job.Released
	default:
		return job.CancelConfirmed
	}
}

// ProtocolFailure is the outcome of an attempt that failed by a breach of the protocol.
func ProtocolFailure(message string) job.Outcome {
	return job.Outcome{Kind: job.Failure, Code: CodeProtocol, Message: message}
}

// TooLarge is the outcome of an attempt that would need a message of that size.
func TooLarge(bytes, limit int) job.Outcome {
	return job.Outcome{
		Kind: job.PermanentFailure, Code: CodeTooLarge,
		Message: fmt.Sprintf("payload and checkpoint need a message of %d bytes, more than %d", bytes, limit),
	}
}

// CheckpointTooLarge is the outcome of an attempt that saved a checkpoint of more than
// that many bytes.
func CheckpointTooLarge(most int) job.Outcome {
	return job.Outcome{
		Kind: job.PermanentFailure, Code: CodeCheckpointTooLarge,
		Message: fmt.Sprintf("a checkpoint is larger than %d bytes", most),
	}
}

// OnTrial is the outcome of an attempt that failed on a version on trial: the serving
// version runs it again.
func OnTrial(version v1.PluginVersion, failed job.Outcome) job.Outcome {
	what := failed.Message
	if failed.Code != "" {
		what = failed.Code + ": " + what
	}
	return job.Outcome{
		Kind: job.Released, Code: CodeCanary, Stack: failed.Stack,
		Message: fmt.Sprintf("%s on version %q (%.12s), which was on trial: %s", failed.Kind, version.Version, version.SHA256, what),
	}
}

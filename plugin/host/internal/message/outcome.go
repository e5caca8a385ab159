package message

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Codes of outcomes that are worded here.
const (
	// CodeProtocol marks a failure whose cause is an answer that does not
	// follow the protocol.
	CodeProtocol = "protocol"
	// CodeTooLarge marks an attempt that does not fit into a message.
	CodeTooLarge = "too_large"
	// CodeCheckpointTooLarge and CodeResultTooLarge mark an attempt that has
	// reported a value above its cap.
	CodeCheckpointTooLarge = "checkpoint_too_large"
	CodeResultTooLarge     = "result_too_large"
	// CodeCanary marks an attempt that failed on a version on trial, and was
	// given back.
	CodeCanary = "canary"
)

// ReadOutcome translates what a process reports of an attempt, in the light of
// what it was told before. A result has at most maxResult bytes.
func ReadOutcome(told job.CancelReason, sent *handlerv1.Outcome, maxResult int) job.Outcome {
	switch result := sent.GetResult().(type) {
	case *handlerv1.Outcome_Succeeded:
		return readSuccess(result.Succeeded.GetResult(), maxResult)
	case *handlerv1.Outcome_Failed:
		return readFailure(told, result.Failed)
	case *handlerv1.Outcome_Canceled:
		return job.Outcome{Kind: stopped(told)}
	case *handlerv1.Outcome_Snoozed:
		after := milliseconds(result.Snoozed.GetRetryAfterMs())
		return job.Outcome{Kind: job.Snoozed, RetryAfter: &after}
	default:
		return ProtocolFailure("the handler process reported an outcome without a result")
	}
}

func readSuccess(result []byte, most int) job.Outcome {
	switch {
	case len(result) > most:
		return job.Outcome{
			Kind: job.PermanentFailure, Code: CodeResultTooLarge,
			Message: fmt.Sprintf("the result is larger than %d bytes", most),
		}
	case len(result) == 0:
		return job.Outcome{Kind: job.Success}
	case !IsJSON(result):
		return ProtocolFailure("the handler's result is not JSON in UTF-8")
	default:
		return job.Outcome{Kind: job.Success, Result: result}
	}
}

func readFailure(told job.CancelReason, failed *handlerv1.Failed) job.Outcome {
	outcome := job.Outcome{
		Kind:    job.Failure,
		Code:    failed.GetCode(),
		Message: failed.GetMessage(),
		Stack:   failed.GetStack(),
	}
	switch {
	case told == job.CancelTimeout, told == "" && failed.GetCode() == wire.CodeTimeout:
		// Whatever the handler says, its error came after it was stopped.
		outcome.Kind = job.Timeout
	case told == "" && failed.GetCode() == wire.CodeLeaseLost:
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

// stopped says what an attempt that confirms its cancel has come to. A handler
// that was told nothing has canceled its own job.
func stopped(told job.CancelReason) job.OutcomeKind {
	switch told {
	case job.CancelTimeout:
		return job.Timeout
	case job.CancelShutdown, job.CancelLeaseLost:
		return job.Released
	case job.CancelRequested:
		return job.CancelConfirmed
	default:
		return job.CancelConfirmed
	}
}

// ProtocolFailure is the outcome of an attempt that was answered against the
// protocol.
func ProtocolFailure(message string) job.Outcome {
	return job.Outcome{Kind: job.Failure, Code: CodeProtocol, Message: message}
}

// TooLarge is the outcome of an attempt that would need a message of so many bytes.
func TooLarge(bytes, limit int) job.Outcome {
	return job.Outcome{
		Kind: job.PermanentFailure, Code: CodeTooLarge,
		Message: fmt.Sprintf("payload and checkpoint need a message of %d bytes, more than %d", bytes, limit),
	}
}

// CheckpointTooLarge is the outcome of an attempt that has saved a checkpoint of
// more than so many bytes.
func CheckpointTooLarge(most int) job.Outcome {
	return job.Outcome{
		Kind: job.PermanentFailure, Code: CodeCheckpointTooLarge,
		Message: fmt.Sprintf("a checkpoint is larger than %d bytes", most),
	}
}

// OnTrial is the outcome of an attempt that failed on a version that has not
// proved itself: another does it again.
func OnTrial(version job.PluginVersion, failed job.Outcome) job.Outcome {
	what := failed.Message
	if failed.Code != "" {
		what = failed.Code + ": " + what
	}
	return job.Outcome{
		Kind: job.Released, Code: CodeCanary, Stack: failed.Stack,
		Message: fmt.Sprintf("%s on version %q (%.12s), which was on trial: %s", failed.Kind, version.Version, version.Digest, what),
	}
}

// WriteStart is an assignment on the wire, but for its handle and lease. Text that
// is not UTF-8 would end the stream, and all attempts on it, instead of one job.
func WriteStart(a *job.Assignment) *handlerv1.Start {
	return &handlerv1.Start{
		JobId:       a.JobID.String(),
		JobType:     strings.ToValidUTF8(a.Type, "?"),
		Tenant:      strings.ToValidUTF8(a.Tenant, "?"),
		Payload:     a.Payload,
		Attempt:     toCount(a.Attempt),
		MaxAttempts: toCount(a.MaxAttempts),
		Fence:       a.Fence,
		TimeoutMs:   max(toMilliseconds(a.Timeout), 1),
		Checkpoint:  a.Checkpoint,
		Traceparent: strings.ToValidUTF8(a.Trace.Parent, ""),
		Tracestate:  strings.ToValidUTF8(a.Trace.State, ""),
		Baggage:     strings.ToValidUTF8(a.Trace.Baggage, ""),
		CreatedAt:   a.CreatedAt.UTC().Format(time.RFC3339Nano),
	}
}

package plugintest

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// Outcome is how an attempt ended, with the orchestrator's name for it.
type Outcome string

// The ways in which an attempt ends.
const (
	// Succeeded: the handler returned no error.
	Succeeded Outcome = "succeeded"
	// Failed: it returned an error that may be retried, or panicked.
	Failed Outcome = "failed"
	// Permanent: it returned an error that no retry can cure, or the payload or
	// the result is invalid.
	Permanent Outcome = "permanent"
	// TimedOut: it returned an error after the attempt's time was up.
	TimedOut Outcome = "timeout"
	// Canceled: it stopped because the job was canceled, or canceled the job
	// itself.
	Canceled Outcome = "canceled"
	// Snoozed: it asked to run again later.
	Snoozed Outcome = "snoozed"
	// Released: it stopped because of a shutdown, or without a lease; the job
	// is attempted again and not charged.
	Released Outcome = "given_back"
	// Crashed: it did not stop when it had to. An orchestrator kills its process.
	Crashed Outcome = "crashed"
)

// Result is what an attempt came to.
type Result struct {
	Outcome Outcome
	// Result is what the handler returned, as JSON; nil for nothing.
	Result json.RawMessage
	// FollowUps are the jobs that the handler has submitted. Only a success has any.
	FollowUps []FollowUp
	// Code, Message and Stack describe an error.
	Code    string
	Message string
	Stack   string
	// RetryAfter is the wait that the handler asked for; nil for none.
	RetryAfter *time.Duration
	// Progress and Checkpoint are the last values that the handler reported, as
	// JSON; nil for none. Earlier values may not arrive.
	Progress   json.RawMessage
	Checkpoint json.RawMessage
	// Logs are the records of plugin.Logger, in order.
	Logs []LogRecord
	// Took is from the attempt's start to its end.
	Took time.Duration
}

// FollowUp is a job that the handler has submitted with plugin.Submit.
type FollowUp struct {
	Type    string
	Payload json.RawMessage
	// Submission is the whole of it, as POST /jobs takes it. Type and Payload are in it too.
	Submission json.RawMessage
}

// LogRecord is what a handler logged.
type LogRecord struct {
	// Level is one of slog's four.
	Level   slog.Level
	Message string
	// Attributes are decoded from JSON; nil for none.
	Attributes map[string]any
}

// String is for test messages.
func (r Result) String() string {
	text := string(r.Outcome)
	if r.Code != "" {
		text += " (" + r.Code + ")"
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	if len(r.Result) > 0 {
		text += fmt.Sprintf(": %s", r.Result)
	}
	return text
}

// take translates the outcome as the orchestrator does. Its meaning depends on why the
// attempt was asked to stop; nil if it was not.
func (r *Result) take(sent *handlerv1.Outcome, told error) {
	switch ended := sent.GetResult().(type) {
	case *handlerv1.Outcome_Succeeded:
		r.Outcome, r.Result = Succeeded, ended.Succeeded.GetResult()
		for _, sent := range ended.Succeeded.GetFollowUps() {
			one := struct {
				JobType string          `json:"jobType"`
				Payload json.RawMessage `json:"payload"`
			}{}
			_ = json.Unmarshal(sent, &one) // the SDK has made it
			r.FollowUps = append(r.FollowUps, FollowUp{Type: one.JobType, Payload: one.Payload, Submission: sent})
		}
	case *handlerv1.Outcome_Failed:
		r.takeFailure(ended.Failed, told)
	case *handlerv1.Outcome_Canceled:
		r.Outcome = stopped(told)
	case *handlerv1.Outcome_Snoozed:
		after := fromMillis(ended.Snoozed.GetRetryAfterMs())
		r.Outcome, r.RetryAfter = Snoozed, &after
	}
}

func (r *Result) takeFailure(failed *handlerv1.Failed, told error) {
	r.Code, r.Message, r.Stack = failed.GetCode(), failed.GetMessage(), failed.GetStack()
	if failed.RetryAfterMs != nil {
		after := fromMillis(failed.GetRetryAfterMs())
		r.RetryAfter = &after
	}
	switch {
	case errors.Is(told, plugin.ErrTimeout), told == nil && r.Code == protocol.CodeTimeout:
		r.Outcome = TimedOut
	case r.Code == protocol.CodeLeaseLost:
		r.Outcome = Released
	case failed.GetPermanent():
		r.Outcome = Permanent
	default:
		r.Outcome = Failed
	}
}

// stopped is the outcome of an attempt that confirms that it has stopped.
func stopped(told error) Outcome {
	switch {
	case errors.Is(told, plugin.ErrTimeout):
		return TimedOut
	case errors.Is(told, plugin.ErrShutdown), errors.Is(told, plugin.ErrLeaseLost):
		return Released
	}
	return Canceled
}

func (r *Result) log(sent *handlerv1.Log) {
	levels := map[handlerv1.Log_Level]slog.Level{
		handlerv1.Log_LEVEL_DEBUG: slog.LevelDebug,
		handlerv1.Log_LEVEL_WARN:  slog.LevelWarn,
		handlerv1.Log_LEVEL_ERROR: slog.LevelError,
	}
	record := LogRecord{Level: levels[sent.GetLevel()], Message: sent.GetMessage()}
	_ = json.Unmarshal(sent.GetAttributes(), &record.Attributes) // empty, or an object
	r.Logs = append(r.Logs, record)
}

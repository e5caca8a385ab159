package plugin

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// How much of an error's texts is kept, in bytes.
const (
	maxCode    = 200
	maxMessage = 32 << 10
	maxStack   = 32 << 10
)

// errorOutcome translates the error that a handler's function has returned. asked is why the
// orchestrator asked it to stop, nil if it did not, and cause why its context ended.
func errorOutcome(err, asked, cause error) *handlerv1.Outcome {
	verdict := VerdictOf(err)
	switch {
	case asked == nil && errors.Is(cause, ErrLeaseLost):
		// Nothing else, and no cancel above all: if the orchestrator is only late
		// and still owns the job, it must try again.
		return failure(&handlerv1.Failed{Code: protocol.CodeLeaseLost, Message: fmt.Sprint(err)})
	case errors.Is(asked, ErrTimeout), asked == nil && errors.Is(cause, ErrTimeout):
		// What the error asks for came after the attempt was stopped.
		return failure(&handlerv1.Failed{Code: protocol.CodeTimeout, Message: fmt.Sprint(err)})
	case asked != nil, verdict.Canceled:
		return &handlerv1.Outcome{Result: &handlerv1.Outcome_Canceled{Canceled: &handlerv1.Canceled{}}}
	case verdict.Snoozed:
		return &handlerv1.Outcome{Result: &handlerv1.Outcome_Snoozed{
			Snoozed: &handlerv1.Snoozed{RetryAfterMs: millis(*verdict.RetryAfter)},
		}}
	}
	sent := &handlerv1.Failed{Permanent: verdict.Permanent, Code: verdict.Code, Message: fmt.Sprint(err)}
	if verdict.RetryAfter != nil {
		after := millis(*verdict.RetryAfter)
		sent.RetryAfterMs = &after
	}
	return failure(sent)
}

func failure(failed *handlerv1.Failed) *handlerv1.Outcome {
	failed.Code = clean(failed.GetCode(), maxCode)
	failed.Message = clean(failed.GetMessage(), maxMessage)
	failed.Stack = clean(failed.GetStack(), maxStack)
	return &handlerv1.Outcome{Result: &handlerv1.Outcome_Failed{Failed: failed}}
}

func panicked(problem any, stack []byte) *handlerv1.Outcome {
	return failure(&handlerv1.Failed{Code: codePanic, Message: fmt.Sprintf("panic: %v", problem), Stack: string(stack)})
}

// clean makes a text fit for the protocol, which carries valid UTF-8, and for the
// database, which stores no NUL. It cuts a longer text between two characters, and
// does not keep the rest in memory.
func clean(text string, limit int) string {
	if len(text) > limit {
		text = strings.Clone(text[:min(len(text), limit+utf8.UTFMax)])
	}
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

package protocol

import "github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"

// Success is an outcome with the two messages in it that say that an attempt has succeeded. They
// are allocated together, because this is what most attempts report.
type Success struct {
	outcome   handlerv1.Outcome
	choice    handlerv1.Outcome_Succeeded
	succeeded handlerv1.Succeeded
}

// Outcome returns the outcome, with the result as it is.
func (s *Success) Outcome(handle uint64, result []byte) *handlerv1.Outcome {
	s.succeeded.Result = result
	s.choice.Succeeded = &s.succeeded
	s.outcome.Handle, s.outcome.Result = handle, &s.choice
	return &s.outcome
}

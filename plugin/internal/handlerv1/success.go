// Package handlerv1 has the messages of the protocol between orchestrator and handlers, generated
// from handler.proto.
package handlerv1

// Success is an outcome with the two messages in it that say that an attempt has succeeded. They
// are allocated together, because this is what most attempts report.
type Success struct {
	outcome   Outcome
	choice    Outcome_Succeeded
	succeeded Succeeded
}

// Outcome returns the outcome, with the result as it is.
func (s *Success) Outcome(handle uint64, result []byte) *Outcome {
	s.succeeded.Result = result
	s.choice.Succeeded = &s.succeeded
	s.outcome.Handle, s.outcome.Result = handle, &s.choice
	return &s.outcome
}

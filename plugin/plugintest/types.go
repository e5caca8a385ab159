package plugintest

import (
	"encoding/json"
	"time"
)

// Type is a job type as the handlers declare it.
type Type struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the payload; nil for none.
	Schema json.RawMessage
	// Timeout and MaxAttempts are 0 where the handler leaves them to the
	// orchestrator's configuration.
	Timeout     time.Duration
	MaxAttempts int
	// Concurrency is 0 where it is that of the process.
	Concurrency int
}

// Types are the job types that the handlers declare, in the order of their
// names.
func (h *Harness) Types() []Type {
	types := make([]Type, 0, len(h.manifest.GetJobTypes()))
	for _, declared := range h.manifest.GetJobTypes() {
		types = append(types, Type{
			Name: declared.GetName(), Description: declared.GetDescription(), Schema: declared.GetSchema(),
			Timeout: fromMillis(declared.GetTimeoutMs()), MaxAttempts: int(declared.GetMaxAttempts()),
			Concurrency: int(declared.GetConcurrency()),
		})
	}
	return types
}

package plugin

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// Option configures a handler. The orchestrator's configuration decides what no
// option sets. It also wins over every option but Description and Concurrency.
type Option interface{ set(h *Handler) }

type option func(*Handler)

func (o option) set(h *Handler) { o(h) }

// Bounds that the orchestrator checks too.
const (
	maxMaxAttempts = 1_000_000
	maxDescription = 1000 // bytes
	longest        = 10 * 365 * 24 * time.Hour
)

// Description says in one line what the job type is for. The API and the command
// line show it.
func Description(text string) Option {
	return option(func(h *Handler) {
		if text == "" || len(text) > maxDescription || !printable(text) {
			h.reject("the description is empty, longer than %d bytes or not one line of printable text", maxDescription)
			return
		}
		h.description = text
	})
}

// Timeout bounds each attempt. After it the context ends with ErrTimeout, and the
// attempt counts as timed out.
func Timeout(d time.Duration) Option {
	return option(func(h *Handler) {
		if d < time.Millisecond || d > longest {
			h.reject("timeout %s is not between 1ms and %s", d, longest)
			return
		}
		h.timeout = d
	})
}

// MaxAttempts bounds how often a job is attempted, including the first time.
func MaxAttempts(n int) Option {
	return option(func(h *Handler) {
		if n < 1 || n > maxMaxAttempts {
			h.reject("max attempts %d is not between 1 and %d", n, maxMaxAttempts)
			return
		}
		h.maxAttempts = n
	})
}

// Retry sets how long a job waits between attempts.
func Retry(policy RetryPolicy) Option {
	return option(func(h *Handler) {
		if err := policy.check(); err != nil {
			h.reject("retry: %w", err)
			return
		}
		h.retry = &policy
	})
}

// WithSchema replaces the JSON Schema that is made from the payload's type. The
// schema is an object or a boolean, and refers to nothing outside of itself.
func WithSchema(schema json.RawMessage) Option {
	return option(func(h *Handler) {
		var value any
		if err := json.Unmarshal(schema, &value); err != nil {
			h.reject("schema: %w", err)
			return
		}
		_, object := value.(map[string]any)
		_, boolean := value.(bool)
		switch {
		case !object && !boolean:
			h.reject("the schema is neither an object nor a boolean")
		case len(schema) > protocol.MaxSchemaBytes:
			h.reject("the schema is longer than %d bytes", protocol.MaxSchemaBytes)
		default:
			h.schema = schema
		}
	})
}

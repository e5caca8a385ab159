package plugin

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
)

// Option sets something about a job type. What no option sets is decided by
// the orchestrator's configuration, which also wins over every option but
// Description and Concurrency.
type Option interface{ set(h *Handler) }

type option func(*Handler)

func (o option) set(h *Handler) { o(h) }

// Bounds of what the orchestrator accepts.
const (
	maxMaxAttempts = 1_000_000
	maxDescription = 1000 // bytes
	longest        = 10 * 365 * 24 * time.Hour
)

// Description says in a line what the job type is for. API and command line
// show it with the type.
func Description(text string) Option {
	return option(func(h *Handler) {
		if text == "" || len(text) > maxDescription || !printable(text) {
			h.reject("the description is empty, longer than %d bytes or not one line of printable text", maxDescription)
			return
		}
		h.description = text
	})
}

// Timeout bounds each attempt. When it has passed the context ends with
// ErrTimeout, and the attempt counts as timed out.
func Timeout(d time.Duration) Option {
	return option(func(h *Handler) {
		if d < time.Millisecond || d > longest {
			h.reject("timeout %s is not between 1ms and %s", d, longest)
			return
		}
		h.timeout = d
	})
}

// MaxAttempts bounds how often a job is attempted, the first time included.
func MaxAttempts(n int) Option {
	return option(func(h *Handler) {
		if n < 1 || n > maxMaxAttempts {
			h.reject("max attempts %d is not between 1 and %d", n, maxMaxAttempts)
			return
		}
		h.maxAttempts = n
	})
}

// Retry says how long a job waits between attempts.
func Retry(policy RetryPolicy) Option {
	return option(func(h *Handler) {
		if err := policy.check(); err != nil {
			h.reject("retry: %w", err)
			return
		}
		h.retry = &policy
	})
}

// WithSchema replaces the JSON Schema that is made from the payload's type. It
// is an object or a boolean, and refers to nothing outside of itself.
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
		case len(schema) > wire.MaxSchemaBytes:
			h.reject("the schema is longer than %d bytes", wire.MaxSchemaBytes)
		default:
			h.schema = schema
		}
	})
}

package plugintest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// The defaults of a job that neither the test nor the handler sets.
const (
	defaultTimeout     = 30 * time.Second
	defaultMaxAttempts = 4
	defaultLease       = 30 * time.Second
	defaultTenant      = "default"
)

// Job is one attempt at a job. Every field has a default.
type Job struct {
	// Type may be empty if there is one handler.
	Type string
	// Payload is encoded as JSON. A json.RawMessage is sent unchanged.
	Payload any
	// ID is the job's id, by default a new one. Attempts at the same job have the
	// same id.
	ID string
	// Tenant is "default" by default.
	Tenant string
	// Attempt counts from 1, which is the default.
	Attempt int
	// MaxAttempts is the handler's own by default, or 4.
	MaxAttempts int
	// Fence grows with every attempt by default.
	Fence int64
	// Timeout bounds the attempt; by default the handler's own, or 30 s.
	Timeout time.Duration
	// Lease is how long the attempt may go on without an extension; 30 s by
	// default. It is extended in time unless the test calls FallSilent.
	Lease time.Duration
	// Checkpoint is what an earlier attempt saved, such as the Checkpoint of its
	// Result; nil for none. It is encoded as Payload is.
	Checkpoint any
	// Predecessors are the jobs that it comes after in its workflow.
	Predecessors []plugin.Predecessor
	// TraceParent and TraceState are the W3C trace context.
	TraceParent string
	TraceState  string
	// CreatedAt is now by default.
	CreatedAt time.Time
}

// start fills in the defaults.
func (j Job) start(handle uint64, declared *handlerv1.JobType) (*handlerv1.Start, error) {
	payload, err := json.Marshal(j.Payload)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	if raw, ok := j.Payload.(json.RawMessage); ok {
		payload = raw
	}
	checkpoint, err := encodeCheckpoint(j.Checkpoint)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	s := &handlerv1.Start{
		Handle: handle, JobId: j.ID, JobType: j.Type, Tenant: j.Tenant, Payload: payload,
		Attempt: uint32(max(j.Attempt, 1)), MaxAttempts: uint32(max(j.MaxAttempts, 0)), Fence: j.Fence,
		TimeoutMs: millis(j.Timeout), LeaseMs: millis(j.Lease),
		Checkpoint: checkpoint, Traceparent: j.TraceParent, Tracestate: j.TraceState,
	}
	for _, p := range j.Predecessors {
		s.Predecessors = append(s.Predecessors, &handlerv1.Predecessor{
			Name: p.Name, JobId: p.ID, Succeeded: p.Succeeded, Result: p.Result, Omitted: p.Omitted,
		})
	}
	setDefault(&s.JobId, fmt.Sprintf("00000000-0000-7000-8000-%012d", handle))
	setDefault(&s.Tenant, defaultTenant)
	setDefault(&s.Fence, int64(handle))
	setDefault(&s.MaxAttempts, declared.GetMaxAttempts())
	setDefault(&s.MaxAttempts, defaultMaxAttempts)
	setDefault(&s.TimeoutMs, declared.GetTimeoutMs())
	setDefault(&s.TimeoutMs, millis(defaultTimeout))
	setDefault(&s.LeaseMs, millis(defaultLease))
	created := j.CreatedAt
	if created.IsZero() {
		created = time.Now()
	}
	s.CreatedAt = created.UTC().Format(time.RFC3339Nano)
	return s, nil
}

func encodeCheckpoint(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok || v == nil {
		return raw, nil
	}
	return json.Marshal(v)
}

func setDefault[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

// millis rounds up: a time above zero stays above zero.
func millis(d time.Duration) uint64 {
	return uint64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

func fromMillis(ms uint64) time.Duration { return time.Duration(ms) * time.Millisecond }

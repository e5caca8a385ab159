package plugin

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"
)

// Job is one attempt at a job, with its payload decoded into Args.
//
// A test may make one by hand: it has no checkpoint, and what it reports goes
// nowhere.
type Job[A any] struct {
	Args A
	// ID is the job's id, the same in every attempt. Pass it to other systems as
	// an idempotency key.
	ID     string
	Type   string
	Tenant string
	// Payload is the JSON exactly as it was submitted.
	Payload json.RawMessage
	// Attempt counts from 1.
	Attempt     int
	MaxAttempts int
	// Fence is the fencing token: a number that grows with every attempt at the
	// job. A system that this attempt writes to can remember the highest fence it
	// has seen and refuse lower ones. That keeps out an earlier attempt that still
	// runs somewhere.
	Fence int64
	// CreatedAt is by the database's clock.
	CreatedAt time.Time

	attempt *attempt
}

func newJob[A any](a *attempt) (Job[A], error) {
	s := a.start
	j := Job[A]{
		ID: s.GetJobId(), Type: s.GetJobType(), Tenant: s.GetTenant(), Payload: s.GetPayload(),
		Attempt: int(s.GetAttempt()), MaxAttempts: int(s.GetMaxAttempts()), Fence: s.GetFence(), attempt: a,
	}
	j.CreatedAt = a.session.times.parse(s.GetCreatedAt())
	if err := decodePayload(s.GetPayload(), &j.Args); err != nil {
		return j, Code(Permanent(fmt.Errorf("payload: %w", err)), codeBadPayload)
	}
	return j, nil
}

// times parses times. Jobs that were submitted together have the same, so it keeps the last one.
type times struct{ last atomic.Pointer[textTime] }

type textTime struct {
	text string
	time time.Time
}

// parse returns the zero time for a text that is no time.
func (t *times) parse(text string) time.Time {
	if last := t.last.Load(); last != nil && last.text == text {
		return last.time
	}
	parsed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	t.last.Store(&textTime{text: text, time: parsed})
	return parsed
}

// Progress shows v, as JSON, to everyone who looks at the job. Only the last value
// is kept. Progress does not wait until it is stored. It fails when v cannot be
// encoded, is larger than the orchestrator accepts (64 KiB by default), or comes
// after the attempt's end.
func (j Job[A]) Progress(v any) error {
	limits, report := j.reporting()
	encoded, err := encode(v, limits.progress)
	if err == nil && report != nil {
		err = report.progress(j.attempt, encoded)
	}
	if err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	return nil
}

// Checkpoint saves v, as JSON, for the next attempt, which reads it with Resume.
// Only the last value is kept. Checkpoint does not wait until it is stored, but it
// is stored before the attempt's outcome, and also when the process dies after the
// orchestrator has received it.
//
// It fails as Progress does. The error for a value that is too large (above 1 MiB
// by default) is Permanent with the code checkpoint_too_large: another attempt
// would get no further.
func (j Job[A]) Checkpoint(v any) error {
	limits, report := j.reporting()
	encoded, err := encode(v, limits.checkpoint)
	if isTooLarge(err) {
		err = Code(Permanent(err), codeCheckpointTooLarge)
	}
	if err == nil && report != nil {
		err = report.checkpoint(j.attempt, encoded)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// reporting is where the attempt reports to, and what is accepted there. A job made
// by hand has no outbox.
func (j Job[A]) reporting() (valueLimits, *outbox) {
	if j.attempt == nil {
		return limitsOf(nil), nil
	}
	return j.attempt.session.limits, j.attempt.session.out
}

// Resume decodes the last checkpoint of an earlier attempt into v. Without one, it
// returns false and leaves v unchanged.
func (j Job[A]) Resume(v any) (bool, error) {
	if j.attempt == nil || len(j.attempt.start.GetCheckpoint()) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(j.attempt.start.GetCheckpoint(), v); err != nil {
		return false, fmt.Errorf("resume: %w", err)
	}
	return true, nil
}

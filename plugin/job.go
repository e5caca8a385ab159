package plugin

import (
	"encoding/json"
	"fmt"
	"time"
)

// Job is one attempt at a job, with its payload decoded into Args.
//
// One that a test makes by hand belongs to no attempt: it has no checkpoint,
// and what it reports goes nowhere.
type Job[A any] struct {
	Args A
	// ID is the job's id, the same in every attempt: what to tell others for
	// deduplication.
	ID     string
	Type   string
	Tenant string
	// Payload is the JSON to the letter as it was submitted.
	Payload json.RawMessage
	// Attempt counts from 1.
	Attempt     int
	MaxAttempts int
	// Fence grows with every attempt at the job. Whatever this attempt writes
	// to can remember the highest one it has seen and refuse lower ones, and
	// so keep out an attempt that was given up but still runs somewhere.
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
	if created, err := time.Parse(time.RFC3339Nano, s.GetCreatedAt()); err == nil {
		j.CreatedAt = created
	}
	if err := decodePayload(s.GetPayload(), &j.Args); err != nil {
		return j, Code(Permanent(fmt.Errorf("payload: %w", err)), codeBadPayload)
	}
	return j, nil
}

// Progress shows v, as JSON, to whoever looks at the job. Only the last value
// counts. It does not wait for the value to be stored, and fails only when v
// is not JSON, is larger than the orchestrator takes (64 KiB, unless it is
// configured otherwise), or comes after the attempt's end.
func (j Job[A]) Progress(v any) error {
	if err := j.progress(v); err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	return nil
}

func (j Job[A]) progress(v any) error {
	encoded, err := encode(v)
	if err != nil || j.attempt == nil {
		return err
	}
	of := j.attempt.session
	if err := within(encoded, of.caps.progress); err != nil {
		return err
	}
	return of.out.progress(j.attempt, encoded)
}

// Checkpoint saves v, as JSON, for the next attempt, which finds it with
// Resume. Only the last value counts. It is stored before this attempt's end
// is, and also when the process dies after the orchestrator has received it;
// it does not wait for that. It fails as Progress does; the error for a value
// that is too large (by default above 1 MiB) is Permanent, with the code
// checkpoint_too_large: another attempt would get no further.
func (j Job[A]) Checkpoint(v any) error {
	if err := j.checkpoint(v); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

func (j Job[A]) checkpoint(v any) error {
	encoded, err := encode(v)
	if err != nil || j.attempt == nil {
		return err
	}
	of := j.attempt.session
	if err := within(encoded, of.caps.checkpoint); err != nil {
		return Code(Permanent(err), codeCheckpointTooLarge)
	}
	return of.out.checkpoint(j.attempt, encoded)
}

// Resume decodes the last checkpoint of an earlier attempt into v. It returns
// false, and leaves v alone, when there is none.
func (j Job[A]) Resume(v any) (bool, error) {
	if j.attempt == nil || len(j.attempt.start.GetCheckpoint()) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(j.attempt.start.GetCheckpoint(), v); err != nil {
		return false, fmt.Errorf("resume: %w", err)
	}
	return true, nil
}

package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Job is one attempt at a job, with its payload decoded into Args.
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
	Fence     int64
	CreatedAt time.Time

	attempt *attempt
}

// Progress shows v, as JSON, to whoever looks at the job. Only the last value
// counts. It does not wait for the value to be stored.
func (j Job[A]) Progress(v any) error {
	encoded, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	j.attempt.progress(encoded)
	return nil
}

// Checkpoint saves v, as JSON, for the next attempt, which finds it with
// Resume. It is stored before the end of this attempt is, also when the
// process dies right after the orchestrator has received it. It does not wait
// for that.
func (j Job[A]) Checkpoint(v any) error {
	encoded, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	j.attempt.checkpoint(encoded)
	return nil
}

// Resume decodes the last checkpoint of an earlier attempt into v. It returns
// false, and leaves v alone, when there is none.
func (j Job[A]) Resume(v any) (bool, error) {
	saved := j.attempt.start.GetCheckpoint()
	if len(saved) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(saved, v); err != nil {
		return false, fmt.Errorf("resume: %w", err)
	}
	return true, nil
}

// decodeArgs reads the payload into args. A payload that is a JSON text within
// a JSON string, as some clients send it, is read as that text where args
// cannot be a string.
func decodeArgs(payload []byte, args any) error {
	err := json.Unmarshal(payload, args)
	var wrongType *json.UnmarshalTypeError
	if err == nil || !errors.As(err, &wrongType) {
		return err
	}
	var text string
	if json.Unmarshal(payload, &text) != nil {
		return err
	}
	return json.Unmarshal([]byte(text), args)
}

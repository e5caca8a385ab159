package host

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

// Ledger knows the jobs, and which plugin owns each job type. Its methods may be called
// from any goroutine.
type Ledger interface {
	// Unfinished returns how many jobs of the type wait or run.
	Unfinished(ctx context.Context, jobType string) (int64, error)
	// Waiting returns the payloads of some jobs of the type that wait or run.
	Waiting(ctx context.Context, jobType string) ([]Payload, error)
	// OwnTypes makes the plugin the owner of the job types, for every host that
	// shares the ledger. It changes nothing and returns a *job.TypeOwnedError if
	// another plugin owns one of them that is not in moved.
	OwnTypes(ctx context.Context, plugin string, types, moved []string) error
}

// Payload is the payload of an accepted job.
type Payload struct {
	JobID job.ID
	JSON  []byte
}

// compare returns an error if the new version could not run jobs that the old one has
// accepted, because their type is missing or its schema rejects their payload. If
// ledger is nil, compare returns nil.
func compare(ctx context.Context, ledger Ledger, before, now *message.Manifest) error {
	if ledger == nil {
		return nil
	}
	for _, old := range before.Specs {
		at := slices.IndexFunc(now.Specs, func(spec job.TypeSpec) bool { return spec.Type == old.Type })
		if at < 0 {
			if slices.Contains(now.SkippedTypes, old.Type) {
				continue // The operator has moved it.
			}
			if err := compareDropped(ctx, ledger, old.Type); err != nil {
				return err
			}
			continue
		}
		if err := compareSchema(ctx, ledger, old, now.Specs[at]); err != nil {
			return err
		}
	}
	return nil
}

func compareDropped(ctx context.Context, ledger Ledger, jobType string) error {
	jobs, err := ledger.Unfinished(ctx, jobType)
	switch {
	case err != nil:
		return abandoned{fmt.Errorf("it drops the job type %s, and cannot find out whether there are such jobs: %w", jobType, err)}
	case jobs > 0:
		return refused{fmt.Errorf("it drops the job type %s, but %d such jobs wait or run; use force to leave them waiting", jobType, jobs)}
	}
	return nil
}

func compareSchema(ctx context.Context, ledger Ledger, before, now job.TypeSpec) error {
	if len(now.Schema) == 0 || bytes.Equal(before.Schema, now.Schema) {
		return nil
	}
	compiled, err := schema.Compile(now.Schema)
	if err != nil {
		return refused{fmt.Errorf("job type %s: schema: %w", now.Type, err)}
	}
	payloads, err := ledger.Waiting(ctx, now.Type)
	if err != nil {
		return abandoned{fmt.Errorf("it changes the schema of the job type %s, and cannot read the payloads of its jobs: %w", now.Type, err)}
	}
	for _, payload := range payloads {
		if wrong := compiled.Check(payload.JSON); len(wrong) > 0 {
			place := wrong[0].Pointer
			if place == "" {
				place = "the payload"
			}
			return refused{fmt.Errorf("its schema of the job type %s refuses the payload of job %s, which was accepted before: %s %s; use force if such jobs may fail",
				now.Type, payload.JobID, place, wrong[0].Message)}
		}
	}
	return nil
}

package store

import (
	"context"
	"errors"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Diagnose looks for what is wrong.
func (s *Store) Diagnose(context.Context) ([]job.Check, error) {
	return nil, errors.ErrUnsupported
}

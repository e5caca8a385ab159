package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// OwnTypes makes the plugin the owner of the job types. If another plugin owns
// one of them, it changes nothing and returns a *job.TypeOwnedError, unless the
// type is among those moved: these are the operator's word, and change owner.
// Claiming what the plugin owns already is no error.
func (s *Store) OwnTypes(ctx context.Context, plugin string, types, moved []string) error {
	types = slices.Sorted(slices.Values(types))
	err := s.exec(ctx, s.worker, ownTypesSQL, types,
		column(types, func(jobType string) bool { return slices.Contains(moved, jobType) }), plugin)
	if err != nil {
		return translate("own types", err)
	}
	type row struct {
		JobType string
		Plugin  string
	}
	others, err := confirmed(ctx, s, s.worker, pgx.RowToStructByName[row], typeOwnersSQL, types, plugin)
	if err != nil {
		return translate("own types", err)
	}
	if len(others) > 0 {
		return &job.TypeOwnedError{Type: others[0].JobType, Plugin: others[0].Plugin}
	}
	return nil
}

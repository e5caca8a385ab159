package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// DeclareTypes stores what plugins declare about job types, for every process
// that shares the database. The last declaration of a type counts.
func (s *Store) DeclareTypes(ctx context.Context, specs []job.TypeSpec) error {
	specs = slices.Clone(specs)
	slices.SortFunc(specs, func(a, b job.TypeSpec) int { return cmp.Compare(a.Type, b.Type) })
	policies, terms := make([]string, len(specs)), make([]pgtype.Text, len(specs))
	for i, spec := range specs {
		encoded, err := json.Marshal(spec.Retry)
		if err != nil {
			return fmt.Errorf("declare types: retry policy of %s: %w", spec.Type, err)
		}
		policies[i] = string(encoded)
		if spec.Terms == nil {
			continue
		}
		if encoded, err = json.Marshal(spec.Terms); err != nil {
			return fmt.Errorf("declare types: terms of %s: %w", spec.Type, err)
		}
		terms[i] = postgres.Document(encoded)
	}
	return s.db.Worker.Do(ctx, "declare_types",
		postgres.Column(specs, func(t job.TypeSpec) string { return t.Type }),
		postgres.Column(specs, func(t job.TypeSpec) string { return t.Plugin }),
		postgres.Column(specs, func(t job.TypeSpec) string { return t.Version }),
		postgres.Column(specs, func(t job.TypeSpec) pgtype.Text { return postgres.Document(t.Schema) }),
		postgres.Column(specs, func(t job.TypeSpec) int32 { return int32(t.MaxAttempts) }),
		postgres.Column(specs, func(t job.TypeSpec) pgtype.Interval { return postgres.Interval(t.Timeout) }),
		policies,
		postgres.Column(specs, func(t job.TypeSpec) string { return t.Description }),
		postgres.Column(specs, func(t job.TypeSpec) int32 { return int32(t.Concurrency) }),
		terms)
}

// Types returns every job type ever declared, by name.
func (s *Store) Types(ctx context.Context) ([]job.TypeSpec, error) { return types(ctx, s.db.Lists) }

// Catalog is like Types, but uses the worker's connections, because submissions of a
// new type wait for it.
func (s *Store) Catalog(ctx context.Context) ([]job.TypeSpec, error) { return types(ctx, s.db.Worker) }

func types(ctx context.Context, from postgres.Reader) ([]job.TypeSpec, error) {
	return postgres.Read(ctx, from, "types", pgx.RowToStructByName[job.TypeSpec])
}

// OwnTypes makes the plugin the owner of the job types. If another plugin owns one of
// them, it changes nothing and returns a *job.TypeOwnedError. The types in moved are
// exempt: the operator decided that they change their owner. It is no error to claim a
// type that the plugin already owns.
func (s *Store) OwnTypes(ctx context.Context, plugin string, types, moved []string) error {
	types = slices.Sorted(slices.Values(types))
	err := s.db.Worker.Do(ctx, "own_types", types,
		postgres.Column(types, func(jobType string) bool { return slices.Contains(moved, jobType) }), plugin)
	if err != nil {
		return err
	}
	others, err := postgres.Confirm(ctx, s.db.Worker, "type_owners", pgx.RowToStructByName[job.TypeOwnedError], types, plugin)
	if err != nil || len(others) == 0 {
		return err
	}
	return &others[0]
}

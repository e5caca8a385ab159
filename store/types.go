package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// DeclareTypes writes down what handlers declare, for every process that
// shares the database. The last declaration of a type stands.
func (s *Store) DeclareTypes(ctx context.Context, specs []job.TypeSpec) error {
	specs = slices.Clone(specs)
	slices.SortFunc(specs, func(a, b job.TypeSpec) int { return cmp.Compare(a.Type, b.Type) })
	policies := make([]string, len(specs))
	for i, spec := range specs {
		encoded, err := json.Marshal(spec.Retry)
		if err != nil {
			return fmt.Errorf("declare types: retry policy of %s: %w", spec.Type, err)
		}
		policies[i] = string(encoded)
	}
	err := s.exec(ctx, s.worker, declareTypesSQL,
		column(specs, func(t job.TypeSpec) string { return t.Type }),
		column(specs, func(t job.TypeSpec) string { return t.Plugin }),
		column(specs, func(t job.TypeSpec) string { return t.Version }),
		column(specs, func(t job.TypeSpec) pgtype.Text { return document(t.Schema) }),
		column(specs, func(t job.TypeSpec) int32 { return int32(t.MaxAttempts) }),
		column(specs, func(t job.TypeSpec) pgtype.Interval { return interval(t.Timeout) }),
		policies,
		column(specs, func(t job.TypeSpec) string { return t.Description }),
		column(specs, func(t job.TypeSpec) int32 { return int32(t.Concurrency) }))
	return translate("declare types", err)
}

// Types returns every job type ever declared, by name.
func (s *Store) Types(ctx context.Context) (specs []job.TypeSpec, err error) {
	err = s.lists.read(ctx, "types", func(conn *pgxpool.Conn) (err error) {
		specs, err = types(ctx, conn)
		return err
	})
	return specs, err
}

// Catalog returns what Types does, on the worker's connections: submissions
// wait for it when their type is new.
func (s *Store) Catalog(ctx context.Context) ([]job.TypeSpec, error) { return types(ctx, s.worker) }

func types(ctx context.Context, from querier) ([]job.TypeSpec, error) {
	rows, err := from.Query(ctx, typesSQL)
	if err != nil {
		return nil, translate("types", err)
	}
	type row struct {
		JobType     string
		Plugin      string
		Version     string
		Schema      []byte
		MaxAttempts int
		Timeout     time.Duration
		Retry       []byte
		Description string
		Concurrency int
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return nil, translate("types", err)
	}
	specs := make([]job.TypeSpec, len(found))
	for i, row := range found {
		specs[i] = job.TypeSpec{
			Type: row.JobType, Plugin: row.Plugin, Version: row.Version, Schema: row.Schema,
			MaxAttempts: row.MaxAttempts, Timeout: row.Timeout,
			Description: row.Description, Concurrency: row.Concurrency,
		}
		if err := json.Unmarshal(row.Retry, &specs[i].Retry); err != nil {
			return nil, fmt.Errorf("types: retry policy of %s: %w", row.JobType, err)
		}
	}
	return specs, nil
}

package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// treeRow is a job.TreeJob with what cannot be scanned into it.
type treeRow struct {
	job.View
	Parent pgtype.UUID
	Depth  int
}

// Tree returns the part of the job's tree that the filter selects, or job.ErrNotFound.
// Ancestors that are gone are left out.
func (s *Store) Tree(ctx context.Context, id job.ID, filter job.TreeFilter) (job.Tree, error) {
	// One generation and one job more show whether there are more.
	found, err := postgres.Read(ctx, s.db.Lookups, "tree", pgx.RowToStructByNameLax[treeRow],
		postgres.UUID(id), filter.FromRoot, job.MaxTreeDepth, filter.Depth+1, filter.Limit+1)
	if err != nil {
		return job.Tree{}, err
	}
	if len(found) == 0 {
		return job.Tree{}, postgres.Translate("tree", pgx.ErrNoRows)
	}
	tree := job.Tree{Jobs: make([]job.TreeJob, 0, len(found))}
	for _, row := range found {
		if row.Depth > filter.Depth || len(tree.Jobs) == filter.Limit {
			tree.Truncated = true
			break
		}
		tree.Jobs = append(tree.Jobs, job.TreeJob{View: row.View, Parent: row.Parent.Bytes, Depth: row.Depth})
	}
	return tree, nil
}

package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Disagreement is a job whose ledger state and list do not match.
type Disagreement struct {
	ID    job.ID
	State string // "absent" when the ledger has no such job
	List  string // "none" when no list has it
}

// Audit returns up to limit jobs whose ledger state and list disagree. There
// are none unless something wrote to the database behind the store's back. It
// reads every job.
func (s *Store) Audit(ctx context.Context, limit int) ([]Disagreement, error) {
	var found []Disagreement
	err := s.relaxed(ctx, func(tx pgx.Tx) (err error) {
		found, err = audit(ctx, tx, limit)
		return err
	})
	return found, translate("audit", err)
}

func audit(ctx context.Context, tx pgx.Tx, limit int) ([]Disagreement, error) {
	type row struct {
		JobID [16]byte
		State string
		List  string
	}
	found, err := read(ctx, tx, auditSQL, pgx.RowToStructByName[row], limit)
	disagreements := make([]Disagreement, len(found))
	for i, row := range found {
		disagreements[i] = Disagreement{ID: row.JobID, State: row.State, List: row.List}
	}
	return disagreements, err
}

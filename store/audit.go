package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Disagreement is a job whose ledger row and list row do not match.
type Disagreement struct {
	ID    job.ID
	State string // "absent" when the ledger has no such job
	List  string // "none" when no list has it
	// Differs names the columns of the list that say something else than the
	// ledger, separated by commas.
	Differs string
}

func (d Disagreement) String() string {
	text := fmt.Sprintf("job %s: state %s, list %s", d.ID, d.State, d.List)
	if d.Differs != "" {
		text += " with another " + d.Differs
	}
	return text
}

// Audit returns up to limit jobs whose ledger row and list row disagree, in the
// state or in whatever else both know. There are none unless something wrote to the database behind the store's back. It
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
		JobID   [16]byte
		State   string
		List    string
		Differs string
	}
	found, err := read(ctx, tx, auditSQL, pgx.RowToStructByName[row], limit)
	disagreements := make([]Disagreement, len(found))
	for i, row := range found {
		disagreements[i] = Disagreement{ID: row.JobID, State: row.State, List: row.List, Differs: row.Differs}
	}
	return disagreements, err
}

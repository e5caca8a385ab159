package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// Disagreement is a job whose ledger row and list row do not match.
type Disagreement struct {
	ID    job.ID `db:"job_id"`
	State string // "absent" if the ledger has no such job
	List  string // "none" if no list has it
	// Differs names the columns whose values differ between the list and the
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

// Audit returns up to limit jobs whose ledger row and list row disagree, in the state
// or in any other column that both have. Unless another program wrote to the database,
// there are none. Audit reads every job.
func (d *Doctor) Audit(ctx context.Context, limit int) (found []Disagreement, err error) {
	err = d.read(ctx, func(tx pgx.Tx) (err error) {
		found, err = audit(ctx, tx, limit)
		return err
	})
	return found, postgres.Translate("audit", err)
}

func audit(ctx context.Context, tx pgx.Tx, limit int) ([]Disagreement, error) {
	return postgres.Rows(ctx, tx, "audit", pgx.RowToStructByName[Disagreement], limit)
}

package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// cellSample is how many of the newest jobs are examined for their cell.
const cellSample = 10_000

type cellRow struct {
	Number *int16
	// Others were made in other cells, Unstamped in none after the database had become one.
	Others    int64
	Unstamped int64
}

func checkCell(ctx context.Context, d *Doctor, tx pgx.Tx) (job.Check, error) {
	judge := func(found []cellRow) job.Check { return judgeCell(found[0], d.cell) }
	return judged("doctor_cell", pgx.RowToStructByName[cellRow], judge, cellSample)(ctx, d, tx)
}

func judgeCell(found cellRow, configured job.Cell) job.Check {
	var database job.Cell
	check := job.Check{Severity: job.Fine, Summary: "The database is no cell."}
	if found.Number != nil {
		database = job.CellOf(uint8(*found.Number)) //nolint:gosec // a constraint bounds it
		check.Summary = fmt.Sprintf("The database is cell %s.", database)
	}
	if err := job.MatchCell(database, configured); err != nil {
		add(&check, job.Problem, "%s", err)
	}
	if found.Others > 0 {
		add(&check, job.Problem, "%s of the newest %d carry the number of another cell: proxies look for them there", count(found.Others, "job"), cellSample)
	}
	if found.Unstamped > 0 {
		add(&check, job.Warning, "%s of the newest %d carry no cell, although the database was one already: some orchestrators run without database.cell",
			count(found.Unstamped, "job"), cellSample)
	}
	if check.Severity != job.Fine {
		check.Summary = "Not everything agrees on which cell the database is."
	}
	return check
}

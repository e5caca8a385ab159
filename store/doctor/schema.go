package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// schemaVersion is the migration that the statements need.
const schemaVersion = 24

func checkSchema(ctx context.Context, d *Doctor, tx pgx.Tx) (job.Check, error) {
	var versions []int64
	if err := tx.QueryRow(ctx, sql.Text("doctor_schema")).Scan(&versions); err != nil {
		return job.Check{}, err
	}
	if check := judgeVersions(versions); check.Severity != job.Fine {
		return check, nil
	}
	return judged("doctor_parts", pgx.RowToStructByName[missingPart], judgeParts)(ctx, d, tx)
}

// judgeVersions compares the migrations that the database has, in ascending
// order, with those that the statements need.
func judgeVersions(versions []int64) job.Check {
	const update = "Bring the schema up to date: orchestrator migrate up."
	if len(versions) == 0 {
		return job.Check{Severity: job.Problem, Summary: "No migration was applied to the database.", Remedy: update}
	}
	newest := versions[len(versions)-1]
	var missing []string
	for version := range int64(schemaVersion) {
		if !slices.Contains(versions, version+1) {
			missing = append(missing, fmt.Sprint(version+1))
		}
	}
	switch {
	case newest < schemaVersion:
		return job.Check{
			Severity: job.Problem, Remedy: update,
			Summary: fmt.Sprintf("The schema has version %d, and this program needs %d.", newest, schemaVersion),
		}
	case len(missing) > 0:
		return job.Check{
			Severity: job.Problem,
			Summary:  fmt.Sprintf("The schema has version %d, but not %s.", newest, strings.Join(missing, ", ")),
			Remedy: "Another program wrote to goose_db_version, or a backup was only partly restored. " +
				"Check that the schema contains what the migration creates, then restore the row.",
		}
	case newest > schemaVersion:
		return job.Check{
			Severity: job.Warning,
			Summary:  fmt.Sprintf("The schema has version %d, and this program knows %d.", newest, schemaVersion),
			Remedy:   "Run the same version of the program everywhere: the one that migrated the database.",
		}
	}
	return job.Check{Severity: job.Fine}
}

// missingPart is a trigger or an index that a table lacks.
type missingPart struct {
	Kind    string
	Name    string
	OnTable string
}

func judgeParts(missing []missingPart) job.Check {
	check := job.Check{
		Severity: job.Fine,
		Summary:  fmt.Sprintf("The schema has version %d, with %s missing.", schemaVersion, count(int64(len(missing)), "part")),
	}
	for _, part := range missing {
		add(&check, job.Problem, "the %s %s of %s is missing or does not work", part.Kind, part.Name, part.OnTable)
		check.Remedy = "Somebody dropped or disabled it, or did not finish building it. Create it again as the migrations do."
	}
	return check
}

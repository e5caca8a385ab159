package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// schemaVersion is the migration that the statements are written for.
const schemaVersion = 8

func lookAtSchema(ctx context.Context, tx pgx.Tx) (job.Check, error) {
	var versions []int64
	if err := tx.QueryRow(ctx, doctorSchemaSQL).Scan(&versions); err != nil {
		return job.Check{}, err
	}
	if check := judgeVersions(versions); check.Severity != job.Fine {
		return check, nil
	}
	found, err := read(ctx, tx, doctorPartsSQL, pgx.RowToStructByName[missingPart])
	return judgeParts(found), err
}

// judgeVersions compares the migrations that the database has, in order, with
// those that the statements need.
func judgeVersions(versions []int64) job.Check {
	if len(versions) == 0 {
		return job.Check{
			Severity: job.Problem, Summary: "The database says that no migration was applied.",
			Remedy: "Bring the schema up to date: orchestrator migrate up.",
		}
	}
	newest := versions[len(versions)-1]
	if newest < schemaVersion {
		return job.Check{
			Severity: job.Problem,
			Summary:  fmt.Sprintf("The schema has version %d, and this program needs %d.", newest, schemaVersion),
			Remedy:   "Bring the schema up to date: orchestrator migrate up.",
		}
	}
	var missing []string
	for version := range int64(schemaVersion) {
		if !slices.Contains(versions, version+1) {
			missing = append(missing, fmt.Sprint(version+1))
		}
	}
	if len(missing) > 0 {
		return job.Check{
			Severity: job.Problem,
			Summary:  fmt.Sprintf("The schema has version %d, but not %s.", newest, strings.Join(missing, ", ")),
			Remedy: "Something else wrote to goose_db_version, or a backup was restored in part. " +
				"See whether the schema has what the migration makes, and put the row back.",
		}
	}
	if newest > schemaVersion {
		return job.Check{
			Severity: job.Warning,
			Summary:  fmt.Sprintf("The schema has version %d, and this program knows %d.", newest, schemaVersion),
			Remedy:   "Use the program that the database was migrated with, everywhere.",
		}
	}
	return job.Check{Severity: job.Fine}
}

// missingPart is a trigger or an index that a table should have.
type missingPart struct {
	Kind  string
	Name  string
	Place string
}

func judgeParts(missing []missingPart) job.Check {
	check := job.Check{Severity: job.Fine, Summary: fmt.Sprintf("The schema has version %d.", schemaVersion)}
	if len(missing) == 0 {
		return check
	}
	check.Severity = job.Problem
	check.Summary = fmt.Sprintf("The schema has version %d, without %s of it.", schemaVersion, some(int64(len(missing)), "part"))
	check.Remedy = "Somebody dropped, disabled or half built it. Make it anew, as the migrations do."
	for _, part := range missing[:min(len(missing), examplesAtMost)] {
		check.Details = append(check.Details, fmt.Sprintf("the %s %s of %s is missing or does not work", part.Kind, part.Name, part.Place))
	}
	return check
}

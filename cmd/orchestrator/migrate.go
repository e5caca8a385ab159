package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/migrations"
)

func (p *program) migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Look after the database schema",
		Long:  "Look after the database schema. serve brings it up to date by itself.",
	}
	var asJSON bool
	up := &cobra.Command{
		Use: "up", Short: "Apply every pending migration", Args: command.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withDatabase(c.Context(), func(ctx context.Context, db *database) error {
				applied, err := db.migrate(ctx)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.stdout, "%s applied\n", show.Plural(applied, "migration"))
				return err
			})
		},
	}
	status := &cobra.Command{
		Use: "status", Short: "List every migration, applied or pending", Args: command.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withDatabase(c.Context(), func(ctx context.Context, db *database) error {
				var versions []migrations.Version
				err := db.withSQL(func(db *sql.DB) (err error) {
					versions, err = migrations.Status(ctx, db)
					return err
				})
				if err != nil {
					return err
				}
				return p.printVersions(versions, asJSON)
			})
		},
	}
	status.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(up, status)
	return c
}

// withDatabase opens the configured database for one command.
func (p *program) withDatabase(ctx context.Context, do func(context.Context, *database) error) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	ctx, release := endOnSignal(ctx)
	defer release()
	db, err := openDatabase(ctx, cfg, newLog(cfg.Log, p.stderr))
	if err != nil {
		return err
	}
	defer db.close(context.WithoutCancel(ctx))
	return do(ctx, db)
}

func (p *program) printVersions(versions []migrations.Version, asJSON bool) error {
	type row struct {
		Number    int64      `json:"number"`
		Name      string     `json:"name"`
		AppliedAt *time.Time `json:"appliedAt"`
	}
	rows := make([]row, 0, len(versions))
	for _, v := range versions {
		r := row{Number: v.Number, Name: v.Name}
		if !v.AppliedAt.IsZero() {
			r.AppliedAt = &v.AppliedAt
		}
		rows = append(rows, r)
	}
	if asJSON {
		return json.NewEncoder(p.stdout).Encode(rows)
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NUMBER\tNAME\tAPPLIED")
	for _, r := range rows {
		applied := "pending"
		if r.AppliedAt != nil {
			applied = r.AppliedAt.Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\n", r.Number, r.Name, applied)
	}
	return table.Flush()
}

package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/migrations"
)

func (p *program) migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Manage the database schema",
		Long:  "Manage the database schema. serve brings it up to date by itself.",
	}
	c.AddCommand(p.migrateUpCommand(), p.migrateStatusCommand())
	return c
}

func (p *program) migrateUpCommand() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use: "up", Short: "Apply every pending migration", Args: command.NoArguments,
		Long: `Apply every pending migration. With database.direct_url, sessions go through a pooler:
then also give the database user, in this database, the settings that sessions need.
With database.cell, make the database that cell, unless it is one already.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if wait < 0 {
				return usageError{fmt.Errorf("--wait: %s is below zero", wait)}
			}
			return p.withDatabase(c.Context(), func(ctx context.Context, db *database, log *slog.Logger) error {
				var done migrated
				waits := patience{bound: wait, setting: "--wait", log: log, waiting: func() {}}
				err := waits.until(ctx, db.reach, func(ctx context.Context) (err error) {
					// A pooler may start later than the database.
					if err := db.seemsOne(ctx); err != nil {
						return err
					}
					done, err = db.migrate(ctx)
					return err
				})
				if err != nil {
					return cmp.Or(context.Cause(ctx), err)
				}
				_, err = fmt.Fprintf(p.stdout, "%s applied\n", show.Plural(done.migrations, "migration"))
				if done.settings > 0 && err == nil {
					_, err = fmt.Fprintf(p.stdout, "%s given to the database user\n", show.Plural(done.settings, "setting"))
				}
				if _, some := done.cell.Number(); some && err == nil {
					_, err = fmt.Fprintf(p.stdout, "the database has become cell %s\n", done.cell)
				}
				return err
			})
		},
	}
	c.Flags().DurationVar(&wait, "wait", 0, "how long to wait for a database that does not answer yet, such as 1m")
	return c
}

func (p *program) migrateStatusCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "status", Short: "List every migration, applied or pending", Args: command.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.withDatabase(c.Context(), func(ctx context.Context, db *database, _ *slog.Logger) error {
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
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// withDatabase opens the database for one command.
func (p *program) withDatabase(ctx context.Context, do func(context.Context, *database, *slog.Logger) error) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	ctx, release := endOnSignal(ctx)
	defer release()
	log := inCell(newLog(cfg.Log, p.stderr), cfg.Database.Cell())
	db, err := openDatabase(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer db.close(context.WithoutCancel(ctx))
	return do(ctx, db, log)
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
	table := show.NewTable(show.NewScreen(p.stdout, show.Never, p.getenv), "NUMBER", "NAME", "APPLIED")
	for _, r := range rows {
		applied := "pending"
		if r.AppliedAt != nil {
			applied = r.AppliedAt.Format(time.RFC3339)
		}
		table.Row(strconv.FormatInt(r.Number, 10), r.Name, applied)
	}
	return table.Flush()
}

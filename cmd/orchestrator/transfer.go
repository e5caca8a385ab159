package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/store/transfer"
)

func (p *program) exportCommand() *cobra.Command {
	asJSON, reopen := false, false
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Close the ledger, and write all of it to a file",
		Long: `Close the ledger, and write all of it to a file, for orchestrator import. Stop
all orchestrators first. From then on the database refuses every change, so no
job is accepted that the file lacks, and none runs in two places. If the command
is interrupted, run it again: it goes on where it was, and succeeds at once if
FILE is the complete export of the ledger already.

export --reopen without FILE gives the move up: the ledger can be worked on
again. Never do that when the file was imported elsewhere.`,
		Args: func(c *cobra.Command, args []string) error {
			if reopen && len(args) > 0 {
				return fmt.Errorf("--reopen takes no file, and %q is one: it lets the ledger in the database change again, and leaves files as they are; "+
					"usage: %s --reopen, or %s FILE without --reopen to export", args[0], c.CommandPath(), c.CommandPath())
			}
			if reopen {
				return nil
			}
			return command.OneArgument(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if reopen {
				return p.reopenLedger(c.Context(), asJSON)
			}
			if err := p.checkSource(); err != nil {
				return err
			}
			return p.transfer(c.Context(), "exported", asJSON, func(ctx context.Context, db *database, note func(transfer.Progress)) (transfer.Report, error) {
				if err := db.isMeant(ctx); err != nil {
					return transfer.Report{}, err
				}
				return transfer.Export(ctx, db.past(), args[0], note)
			})
		},
	}
	c.Flags().BoolVar(&reopen, "reopen", false, "let a ledger that was exported change again")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *program) importCommand() *cobra.Command {
	asJSON, check := false, false
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Write a file of orchestrator export into an empty database",
		Long: `Write a file of orchestrator export into an empty database. It must have the
schema: run orchestrator migrate up there first. The file is checked before
anything is written. Until all rows are in and were compared with the file, no
orchestrator can work on the database. If the command is interrupted, run it
again: it goes on where it was, and succeeds at once if the file was imported
there already.`,
		Args: command.OneArgument,
		RunE: func(c *cobra.Command, args []string) error {
			if check {
				return p.checkFile(c.Context(), args[0], asJSON)
			}
			return p.transfer(c.Context(), "imported", asJSON, func(ctx context.Context, db *database, note func(transfer.Progress)) (transfer.Report, error) {
				if err := db.seemsOne(ctx); err != nil {
					return transfer.Report{}, err
				}
				return transfer.Import(ctx, db.past(), db.cell, args[0], note)
			})
		},
	}
	c.Flags().BoolVar(&check, "check", false, "only check the file, without a database")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// checkSource rejects a database that would have to be created first.
func (p *program) checkSource() error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	return checkDirect(cfg, false)
}

// transfer moves a ledger in one direction, and shows how far it is.
func (p *program) transfer(
	ctx context.Context, verb string, asJSON bool,
	move func(ctx context.Context, db *database, note func(transfer.Progress)) (transfer.Report, error),
) error {
	return p.withDatabase(ctx, func(ctx context.Context, db *database, _ *slog.Logger) error {
		if err := db.isCurrent(ctx); err != nil {
			return err
		}
		note, done := p.watch()
		report, err := move(ctx, db, note)
		done()
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		return p.printTransfer(verb, report, asJSON)
	})
}

func (p *program) checkFile(ctx context.Context, path string, asJSON bool) error {
	ctx, release := endOnSignal(ctx)
	defer release()
	note, done := p.watch()
	report, err := transfer.Read(ctx, path, note)
	done()
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return p.printTransfer("checked", report, asJSON)
}

func (p *program) reopenLedger(ctx context.Context, asJSON bool) error {
	if err := p.checkSource(); err != nil {
		return err
	}
	return p.withDatabase(ctx, func(ctx context.Context, db *database, _ *slog.Logger) error {
		if err := db.isMeant(ctx); err != nil {
			return err
		}
		reopened, err := transfer.Reopen(ctx, db.past())
		switch {
		case err != nil:
			return err
		case asJSON:
			return json.NewEncoder(p.stdout).Encode(map[string]bool{"reopened": reopened})
		case !reopened:
			return errors.New("the ledger is not closed")
		}
		_, err = fmt.Fprintln(p.stdout, "the ledger is open again; orchestrators can work on it")
		return err
	})
}

// watch draws progress on a terminal until done is called.
func (p *program) watch() (note func(transfer.Progress), done func()) {
	line := show.NewLine(show.NewScreen(p.stderr, show.Never, p.getenv))
	began, step, before := time.Now(), "", int64(0)
	return func(at transfer.Progress) {
		if at.Step != step { // whose first rows may have been done by an earlier run
			began, step, before = time.Now(), at.Step, at.Rows
		}
		title := at.Step + "  "
		if at.Step == transfer.Analyzing { // tables, of which each takes as long as it is large
			line.Set(title)
			return
		}
		bar := show.Progress{Noun: "row", Done: int(at.Rows - before), Share: float64(at.Rows) / float64(max(at.Of, 1)), Elapsed: time.Since(began)}
		line.Set(title + bar.Within(line.Width()-show.Width(title)))
	}, line.Clear
}

func (p *program) printTransfer(verb string, r transfer.Report, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(p.stdout).Encode(r)
	}
	if r.Already {
		return p.printAlready(verb, r)
	}
	earlier := ""
	if r.Resumed > 0 {
		earlier = ", " + show.Count(r.Resumed) + " of them before"
	}
	_, err := fmt.Fprintf(p.stdout, "%s %s and %s in all%s: %s, sha256 %s\n",
		verb, show.Plural(r.Jobs, "job"), show.Plural(r.Rows, "row"), earlier, r.File, r.SHA256)
	return err
}

// printAlready is for a command that had nothing left to do.
func (p *program) printAlready(verb string, r transfer.Report) error {
	content := fmt.Sprintf("%s and %s in all, sha256 %s", show.Plural(r.Jobs, "job"), show.Plural(r.Rows, "row"), r.SHA256)
	text := fmt.Sprintf("%s is the complete export of this database already: %s. The ledger is closed, so nothing has changed since.\n"+
		"Next: orchestrator import %s, with the configuration of the new database. For another file of the same jobs, name one that does not exist.\n",
		r.File, content, r.File)
	if verb == "imported" {
		text = fmt.Sprintf("%s was imported into this database already: %s. Nothing was changed.\nNext: start the orchestrators on it.\n", r.File, content)
	}
	_, err := fmt.Fprint(p.stdout, text)
	return err
}

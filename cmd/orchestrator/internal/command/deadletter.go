package command

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func (p *Program) deadLetterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "dead-letter",
		Short: "List and requeue jobs that failed permanently",
	}
	c.AddCommand(p.deadLetterListCommand(), p.deadLetterRetryCommand())
	return c
}

var deadLetterFilters = filters{byType, byTenant}

func (p *Program) deadLetterListCommand() *cobra.Command {
	pages := pageFlags{}
	c := &cobra.Command{
		Use:   "list",
		Short: "List dead-lettered jobs, newest first",
		Args:  NoArguments, PreRunE: pages.check,
	}
	deadLetterFilters.register(c)
	pages.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		table := show.NewTable(s.out, "JOB ID", "TYPE", "TENANT", "DEAD FOR", "ATTEMPTS", "LAST ERROR").CutLast()
		return list(ctx, s, "/dead-letter", "deadLetters", deadLetterFilters.query(c), pages, table, func(d v1.DeadLetter) {
			table.Row(d.JobID, d.JobType, d.Tenant, s.since(d.DeadAt), d.Attempts, d.LastError)
		})
	})
}

func (p *Program) deadLetterRetryCommand() *cobra.Command {
	limit, all := usualLimit, false
	c := &cobra.Command{
		Use:   "retry",
		Short: "Requeue dead-lettered jobs, oldest first",
		Args:  NoArguments,
		PreRunE: func(*cobra.Command, []string) error {
			if limit < 1 || limit > pageLimit {
				return usage("--limit is from 1 to 1000; --all requeues everything")
			}
			return nil
		},
	}
	deadLetterFilters.register(c)
	c.Flags().IntVar(&limit, "limit", usualLimit, "requeue at most this many, from 1 to 1000")
	c.Flags().BoolVar(&all, "all", false, "requeue everything, a thousand at a time; with --json, one answer per line")
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		if all {
			limit = pageLimit
		}
		return s.retryDead(ctx, deadLetterFilters.query(c), limit, all)
	})
}

func (s *session) retryDead(ctx context.Context, query url.Values, limit int, all bool) error {
	query.Set("limit", strconv.Itoa(limit))
	line := show.NewLine(s.notes)
	defer line.Clear()
	total := 0
	for {
		answer, err := s.Post(ctx, "/dead-letter/retry", query, nil)
		if err != nil {
			if total > 0 {
				err = fmt.Errorf("after %s: %w", show.Plural(total, "job"), err)
			}
			return err
		}
		var requeued struct{ Count int }
		if err := answer.Into(&requeued); err != nil {
			return err
		}
		if s.json {
			if err := s.out.JSON(answer); err != nil {
				return err
			}
		}
		total += requeued.Count
		line.Set(show.Plural(total, "job") + " requeued")
		if !all || requeued.Count < limit {
			break
		}
	}
	line.Clear()
	if s.json {
		return nil
	}
	_, err := fmt.Fprintf(s.out, "%s requeued\n", show.Plural(total, "job"))
	return err
}

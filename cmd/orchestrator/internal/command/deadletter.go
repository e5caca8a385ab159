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

// deadLetterFilter selects dead letters.
type deadLetterFilter struct{ jobType, tenant string }

func (f *deadLetterFilter) register(c *cobra.Command) {
	c.Flags().StringVar(&f.jobType, "type", "", "only jobs of the `type`")
	c.Flags().StringVar(&f.tenant, "tenant", "", "only jobs of the `tenant`")
	complete(c, "tenant", nothing)
}

func (f *deadLetterFilter) query() url.Values {
	query := url.Values{}
	setIf(query, "jobType", f.jobType)
	setIf(query, "tenant", f.tenant)
	return query
}

func (p *Program) deadLetterListCommand() *cobra.Command {
	filter, pages := deadLetterFilter{}, pageFlags{}
	c := &cobra.Command{
		Use: "list", Short: "List dead-lettered jobs, newest first", Args: NoArguments,
	}
	filter.register(c)
	pages.register(c)
	check := func([]string) error { return pages.check() }
	return p.speaks(c, check, func(ctx context.Context, s *session, _ []string) error {
		table := show.NewTable(s.out,
			show.Column{Name: "JOB ID"}, show.Column{Name: "TYPE"}, show.Column{Name: "TENANT"},
			show.Column{Name: "DEAD FOR", Right: true}, show.Column{Name: "ATTEMPTS", Right: true}, show.Column{Name: "LAST ERROR", Cut: true})
		row := decoded(func(d v1.DeadLetter) {
			table.Row(show.Text(d.JobID.String()), show.Text(d.JobType), show.Text(d.Tenant),
				show.Text(s.ago(d.DeadAt)), show.Text(strconv.Itoa(d.Attempts)), show.Text(d.LastError))
		})
		return s.list(ctx, "/dead-letter", filter.query(), pages, "deadLetters", row, table.Flush)
	})
}

func (p *Program) deadLetterRetryCommand() *cobra.Command {
	filter, limit, all := deadLetterFilter{}, usualLimit, false
	c := &cobra.Command{
		Use:   "retry",
		Short: "Requeue dead-lettered jobs, oldest first",
		Args:  NoArguments,
	}
	filter.register(c)
	c.Flags().IntVar(&limit, "limit", usualLimit, "requeue at most this many, from 1 to 1000")
	c.Flags().BoolVar(&all, "all", false, "requeue everything, a thousand at a time; with --json, one answer per line")
	complete(c, "limit", nothing)
	check := func([]string) error {
		if limit < 1 || limit > pageLimit {
			return usage("--limit is from 1 to 1000; --all requeues everything")
		}
		return nil
	}
	return p.speaks(c, check, func(ctx context.Context, s *session, _ []string) error {
		if all {
			limit = pageLimit
		}
		return s.retryDead(ctx, filter.query(), limit, all)
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

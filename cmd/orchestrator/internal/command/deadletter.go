package command

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func (p *Program) deadLetterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "dead-letter",
		Short: "List and requeue jobs that failed permanently",
	}
	c.AddCommand(p.deadLetterListCommand(), p.deadLetterGroupsCommand(), p.deadLetterRetryCommand())
	return c
}

var deadLetterFilters = filters{
	byType, byTenant,
	{"error-code", "errorCode", "only jobs that failed last with the `code`"},
	{"fingerprint", "fingerprint", "only jobs with the `fingerprint`, see groups"},
}

var groupFilters = filters{byType, byTenant}

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

func (p *Program) deadLetterGroupsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "groups",
		Short: "Show which errors dead-lettered jobs have in common",
		Long: "Show which errors dead-lettered jobs have in common, the latest first. Numbers,\n" +
			"ids, quoted text and the like are left out of the errors.",
		Args: NoArguments,
	}
	groupFilters.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		answer, err := s.Get(ctx, "/dead-letter/groups", groupFilters.query(c))
		if err != nil {
			return err
		}
		if s.json {
			return s.out.JSON(answer)
		}
		var found v1.DeadLetterGroups
		if err := answer.Into(&found); err != nil {
			return err
		}
		table := show.NewTable(s.out, "TYPE", "CODE", "FINGERPRINT", "JOBS", "FIRST", "LAST", "VERSIONS", "ERROR").CutLast()
		for _, g := range found.Groups {
			table.Row(g.JobType, g.ErrorCode, g.Fingerprint, upTo(g.Count, g.More), s.since(g.FirstDeadAt), s.since(g.LastDeadAt),
				strings.Join(g.Versions, ","), g.Message)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		if found.More {
			s.notes.Print("There are more groups: --type shows those of one type.\n")
		}
		return nil
	})
}

// upTo shows a count that stops somewhere.
func upTo(count int, more bool) string {
	if more {
		return strconv.Itoa(count) + "+"
	}
	return strconv.Itoa(count)
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

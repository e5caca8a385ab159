package command

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

var (
	byType   = filter{"type", "jobType", "only jobs of the `type`"}
	byTenant = filter{"tenant", "tenant", "only jobs of the `tenant`"}

	jobFilters = filters{
		byType, byTenant,
		{"tag", "tag", "only jobs with the `tag`"},
		{"created-from", "createdFrom", "only jobs created at the `time` or later (RFC 3339)"},
		{"created-before", "createdBefore", "only jobs created before the `time` (RFC 3339)"},
	}
)

func (p *Program) listCommand() *cobra.Command {
	var statuses []string
	pages := pageFlags{}
	c := &cobra.Command{
		Use:   "list",
		Short: "List jobs, newest first",
		Example: `  orchestrator list --status FAILED,CANCELED --type SEND_EMAIL
  orchestrator list --all --json | jq -r .jobId`,
		Args: NoArguments, PreRunE: pages.check,
	}
	c.Flags().StringSliceVar(&statuses, "status", nil, "only jobs of the `status`: PENDING, RUNNING, COMPLETED, FAILED or CANCELED; repeatable")
	complete(c, "status", fixed("PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELED"))
	jobFilters.register(c)
	pages.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		query := jobFilters.query(c)
		for _, status := range statuses {
			query.Add("status", status)
		}
		table := s.jobTable()
		return list(ctx, s, "/jobs", "jobs", query, pages, table, func(j v1.Job) { s.jobRow(table, j) })
	})
}

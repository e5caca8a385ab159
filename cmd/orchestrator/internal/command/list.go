package command

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func (p *Program) listCommand() *cobra.Command {
	var statuses []string
	var jobType, tenant, tag, from, before string
	pages := pageFlags{}
	c := &cobra.Command{
		Use:   "list",
		Short: "List jobs, newest first",
		Example: `  orchestrator list --status FAILED,CANCELED --type SEND_EMAIL
  orchestrator list --all --json | jq -r .jobId`,
		Args: NoArguments,
	}
	flags := c.Flags()
	flags.StringSliceVar(&statuses, "status", nil, "only jobs of the `status`: PENDING, RUNNING, COMPLETED, FAILED or CANCELED; repeatable")
	flags.StringVar(&jobType, "type", "", "only jobs of the `type`")
	flags.StringVar(&tenant, "tenant", "", "only jobs of the `tenant`")
	flags.StringVar(&tag, "tag", "", "only jobs with the `tag`")
	flags.StringVar(&from, "created-from", "", "only jobs created at the `time` or later (RFC 3339)")
	flags.StringVar(&before, "created-before", "", "only jobs created before the `time` (RFC 3339)")
	pages.register(c)
	complete(c, "status", fixed("PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELED"))
	for _, name := range []string{"tenant", "tag", "created-from", "created-before"} {
		complete(c, name, nothing)
	}
	check := func([]string) error { return pages.check() }
	return p.speaks(c, check, func(ctx context.Context, s *session, _ []string) error {
		query := url.Values{}
		for _, status := range statuses {
			query.Add("status", status)
		}
		setIf(query, "jobType", jobType)
		setIf(query, "tenant", tenant)
		setIf(query, "tag", tag)
		setIf(query, "createdFrom", from)
		setIf(query, "createdBefore", before)
		table := s.jobTable()
		return s.list(ctx, "/jobs", query, pages, "jobs",
			decoded(func(job v1.Job) { s.jobRow(table, job) }), table.Flush)
	})
}

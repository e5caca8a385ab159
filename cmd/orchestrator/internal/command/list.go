package command

import (
	"context"
	"maps"

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
	listFilters = append(filters{{"parent", "parentId", "only jobs that the job with this `id` has submitted"}}, jobFilters...)

	// findFilters are those of operators' lists only.
	findFilters = filters{
		{"worker", "worker", "only jobs that the `worker` runs, or was the last to run"},
		{"error-code", "errorCode", "only jobs whose last attempt ended with the `code`"},
		{"fingerprint", "fingerprint", "only dead jobs with the `fingerprint`, see dead-letter groups"},
		{"payload", "payload", "only jobs whose payload contains the `text`"},
	}
)

func (p *Program) listCommand() *cobra.Command {
	var statuses, states []string
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
	c.Flags().StringSliceVar(&states, "state", nil, "only jobs in the `state`: queued, scheduled, held, retrying, running, succeeded, dead or canceled; repeatable")
	complete(c, "state", fixed("queued", "scheduled", "held", "retrying", "running", "succeeded", "dead", "canceled"))
	listFilters.register(c)
	findFilters.register(c)
	for _, narrow := range []string{"state", "worker", "error-code", "fingerprint", "payload"} {
		c.MarkFlagsMutuallyExclusive("status", narrow)
	}
	pages.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		query := listFilters.query(c)
		maps.Copy(query, findFilters.query(c))
		for _, state := range states {
			query.Add("state", state)
		}
		if query.Has("state") || len(findFilters.query(c)) > 0 {
			table := s.foundTable()
			return list(ctx, s, "/debug/jobs", "jobs", query, pages, table, func(j v1.FoundJob) { s.foundRow(table, j) })
		}
		for _, status := range statuses {
			query.Add("status", status)
		}
		table := s.jobTable()
		return list(ctx, s, "/jobs", "jobs", query, pages, table, func(j v1.Job) { s.jobRow(table, j) })
	})
}

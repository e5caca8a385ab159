package command

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

var actFilters = filters{
	{"actor", "actor", "only what this `user` did, or a token: token shop"},
	{"action", "action", "only this `action`, such as job.requeue"},
	{"tenant", "tenant", "only what concerned the `tenant`"},
	{"job", "jobId", "only what concerned the job with this `id`"},
	{"from", "from", "only what was done at the `time` or later (RFC 3339)"},
	{"before", "before", "only what was done before the `time` (RFC 3339)"},
}

func (p *Program) auditCommand() *cobra.Command {
	pages := pageFlags{}
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show what people did, newest first",
		Long: `Show what people did, newest first: by API, command line and UI, with what failed and
what was refused.`,
		Example: `  orchestrator audit --actor "token ops" --from 2026-02-20T00:00:00Z
  orchestrator audit --job 019c79a0-0000-7000-8000-000000000001`,
		Args: NoArguments, PreRunE: pages.check,
	}
	actFilters.register(c)
	pages.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		table := show.NewTable(s.out, "AT", "ACTOR", "ACTION", "TENANT", "WHAT", "COUNT", "RESULT", "REASON").CutLast()
		return list(ctx, s, "/debug/audit", "acts", actFilters.query(c), pages, table, func(a v1.Act) {
			count := ""
			if a.Count != nil {
				count = strconv.FormatInt(*a.Count, 10)
			}
			result := show.Cell{Text: a.Result, Style: show.Bad}
			if a.Result == "done" {
				result.Style = show.Good
			}
			table.Row(s.moment(&a.At), a.Actor, a.Action, a.Tenant, concerned(a), show.Right(count), result, a.Reason)
		})
	})
}

// concerned is the job or the filter of an act.
func concerned(a v1.Act) string {
	if a.JobID != nil {
		return a.JobID.String()
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a.Filter)) {
		parts = append(parts, name+"="+a.Filter[name])
	}
	return strings.Join(parts, " ")
}

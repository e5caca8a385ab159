package command

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func (p *Program) findCommand() *cobra.Command {
	tenant := ""
	c := &cobra.Command{
		Use:   "find TEXT",
		Short: "Find jobs by an id or an idempotency key",
		Long: `Find the job or the workflow whose id is the text, and the jobs whose
idempotency key it is: at most one for each tenant.`,
		Example: `  orchestrator find order-4711`,
		Args:    oneArgument,
	}
	c.Flags().StringVar(&tenant, "tenant", "", "only what the `tenant` has")
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		query := url.Values{"q": args}
		if tenant != "" {
			query.Set("tenant", tenant)
		}
		answer, err := s.Get(ctx, "/debug/jobs/lookup", query)
		if err != nil {
			return err
		}
		return present(s, answer, (*session).showFound)
	})
}

func (s *session) showFound(found v1.Lookup) error {
	if w := found.Workflow; w != nil {
		s.out.Print("Workflow " + w.WorkflowID.String() + " is " + string(w.State) + ".\n")
	}
	if len(found.Jobs) == 0 && found.Workflow == nil {
		s.notes.Print("Nothing has this id or idempotency key.\n")
		return Exit{CodeFailed}
	}
	if len(found.Jobs) == 0 {
		return nil
	}
	table := s.foundTable()
	for _, one := range found.Jobs {
		s.foundRow(table, one)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if found.More {
		s.notes.Print("There may be more: --tenant\n")
	}
	return nil
}

// foundTable is the list of jobs that operators see.
func (s *session) foundTable() *show.Table {
	return show.NewTable(s.out, "JOB ID", "TYPE", "TENANT", "STATE", "AGE", "TOOK", "ATTEMPTS", "PRIORITY", "TAGS", "WORKER", "LAST ERROR").CutLast()
}

func (s *session) foundRow(table *show.Table, j v1.FoundJob) {
	state := styled(j.State)
	if j.Held {
		state.Text = "held"
	}
	table.Row(j.JobID, j.JobType, j.Tenant, state, s.since(j.CreatedAt), show.Right(s.took(j.Job)),
		show.Right(fmt.Sprintf("%d/%d", j.AttemptsCharged, j.MaxAttempts)), show.Right(fmt.Sprint(j.Priority)), strings.Join(j.Tags, ","), j.Worker,
		fault(v1.Attempt{Code: j.ErrorCode, Error: j.LastError}))
}

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const workflowsPath = "/workflows"

func (p *Program) workflowCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "workflow",
		Short: "Submit jobs that come after one another, and see them as a whole",
	}
	c.AddCommand(p.workflowSubmitCommand(), p.workflowListCommand(), p.workflowGetCommand(), p.workflowGraphCommand(),
		p.workflowActCommand("cancel", "Cancel a workflow",
			"Cancel a workflow: its jobs that wait are canceled, and those that run are asked to stop."),
		p.workflowActCommand("hold", "Hold a workflow until it is released",
			"Hold a workflow until it is released: no further job of it starts. Running jobs go on."),
		p.workflowActCommand("release", "Release a held workflow", "Release a held workflow: its jobs start at their times."),
		p.workflowRequeueCommand())
	return c
}

func (p *Program) workflowSubmitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "submit FILE",
		Short: "Submit a workflow",
		Long: `Submit a workflow: a file with the JSON that POST /workflows takes, or - for standard
input. With an idempotencyKey in it, you can repeat the command: it finds the workflow
that the first one made.`,
		Args: oneArgument,
	}
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		source := args[0]
		if source != "-" {
			source = "@" + source
		}
		body, err := ReadPayload(ctx, source, s.stdin)
		if err != nil {
			return err
		}
		var keyed struct{ IdempotencyKey string }
		_ = json.Unmarshal(body, &keyed) // the server says what is wrong
		answer, err := s.Post(apiclient.Keyed(ctx, keyed.IdempotencyKey), workflowsPath, nil, body)
		if err != nil {
			return err
		}
		return present(s, answer, func(s *session, made v1.WorkflowAccepted) error {
			s.out.Print(fmt.Sprintf("%s with %s\n", made.WorkflowID, show.Plural(len(made.Jobs), "job")))
			return nil
		})
	})
}

func (p *Program) workflowListCommand() *cobra.Command {
	pages, unfinished := pageFlags{}, false
	only := filters{{"tenant", "tenant", "only workflows of the `tenant`"}}
	var states []string
	c := &cobra.Command{Use: "list", Short: "List workflows, newest first", Args: NoArguments, PreRunE: pages.check}
	only.register(c)
	c.Flags().StringSliceVar(&states, "state", nil, "only workflows in the `state`: "+strings.Join(stateNames(), ", ")+"; repeatable")
	c.Flags().BoolVar(&unfinished, "unfinished", false, "only those that have not finished")
	pages.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, _ []string) error {
		query := only.query(c)
		if unfinished {
			query.Set("unfinished", "true")
		}
		for _, state := range states {
			query.Add("state", state)
		}
		table := s.workflowTable()
		return list(ctx, s, workflowsPath, "workflows", query, pages, table, func(one v1.Workflow) { s.workflowRow(table, one) })
	})
}

func stateNames() (names []string) {
	for _, state := range job.WorkflowStates() {
		names = append(names, string(state))
	}
	return names
}

func (s *session) workflowTable() *show.Table {
	return show.NewTable(s.out, "WORKFLOW ID", "STATE", "JOBS", "LEFT", "AGE", "NAME")
}

func (s *session) workflowRow(table *show.Table, w v1.Workflow) {
	table.Row(w.WorkflowID.String(), styled(w.State), show.Right(show.Count(w.Jobs)), show.Right(show.Count(w.Remaining)), s.since(w.CreatedAt), w.Name)
}

func (s *session) showWorkflow(w v1.Workflow) error {
	table := s.workflowTable()
	s.workflowRow(table, w)
	return table.Flush()
}

func (p *Program) workflowGetCommand() *cobra.Command {
	c := &cobra.Command{Use: "get ID", Short: "Show a workflow and its jobs", Args: oneArgument}
	return p.speaks(c, presents(workflowsPath, func(s *session, w v1.WorkflowDetail) error {
		if err := s.showWorkflow(w.Workflow); err != nil {
			return err
		}
		s.out.Print("\n")
		table := show.NewTable(s.out, "JOB ID", "NAME", "TYPE", "STATE", "AFTER")
		for _, step := range w.Steps {
			table.Row(step.JobID.String(), stepName(step), step.JobType, stepState(step), afterOf(step))
		}
		return table.Flush()
	}))
}

func stepName(step v1.WorkflowStep) string {
	if step.OnComplete {
		return "(on complete)"
	}
	return step.Name
}

func stepState(step v1.WorkflowStep) show.Cell {
	if step.Skipped {
		return show.Cell{Text: "skipped", Style: styled(step.State).Style}
	}
	return styled(step.State)
}

func afterOf(step v1.WorkflowStep) string {
	after := strings.Join(step.After, ", ")
	switch {
	case step.OnComplete:
		return "all others"
	case step.Reason != "":
		return after + " (" + step.Reason + ")"
	}
	return after
}

func (p *Program) workflowGraphCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "graph ID",
		Short: "Print a workflow as a Mermaid flowchart",
		Long: `Print a workflow as a Mermaid flowchart, which GitHub and many editors draw. Each job
has its name and its state.`,
		Example: "  orchestrator workflow graph 019c79a0-0000-7000-8000-000000000001 > graph.mmd",
		Args:    oneArgument,
	}
	return p.speaks(c, presents(workflowsPath, (*session).showGraph))
}

// showGraph names the nodes by their places, because names can have any characters.
func (s *session) showGraph(w v1.WorkflowDetail) error {
	text, place := &strings.Builder{}, make(map[string]int)
	text.WriteString("flowchart LR\n")
	for i, step := range w.Steps {
		if step.Name != "" {
			place[step.Name] = i
		}
		name := stepName(step)
		if name == "" {
			name = step.JobType
		}
		fmt.Fprintf(text, "  j%d[\"%s<br/>%s\"]\n", i, strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(show.Clean(name)), stepState(step).Text)
	}
	last := make(map[int]bool)
	for i, step := range w.Steps {
		for _, name := range step.After {
			fmt.Fprintf(text, "  j%d --> j%d\n", place[name], i)
			last[place[name]] = true
		}
	}
	for i, step := range w.Steps {
		if !step.OnComplete {
			continue
		}
		for before := range i {
			if !last[before] {
				fmt.Fprintf(text, "  j%d -.-> j%d\n", before, i)
			}
		}
	}
	s.out.Print(text.String())
	return nil
}

func (p *Program) workflowActCommand(verb, short, long string) *cobra.Command {
	c := &cobra.Command{Use: verb + " ID", Short: short, Long: long, Args: oneArgument}
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		answer, err := s.Post(ctx, apiclient.Path(workflowsPath, args[0], verb), url.Values{}, nil)
		if err != nil {
			return err
		}
		return present(s, answer, (*session).showWorkflow)
	})
}

func (p *Program) workflowRequeueCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "requeue ID",
		Short: "Requeue all dead jobs of a workflow",
		Long: `Requeue all dead jobs of a workflow, each with all its attempts. Jobs that were skipped
or canceled because of them stay so.`,
		Args: oneArgument,
	}
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		answer, err := s.Post(ctx, apiclient.Path(workflowsPath, args[0], "requeue"), url.Values{}, nil)
		if err != nil {
			return err
		}
		return present(s, answer, func(s *session, done v1.Requeued) error {
			s.out.Print(show.Plural(done.Count, "job") + " requeued\n")
			return nil
		})
	})
}

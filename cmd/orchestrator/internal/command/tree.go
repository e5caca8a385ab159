package command

import (
	"context"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *Program) treeCommand() *cobra.Command {
	root, depth := false, 0
	c := &cobra.Command{
		Use:   "tree ID",
		Short: "Show a job with the jobs that it has submitted",
		Long: `Show a job with the jobs that its handler has submitted, those that these have
submitted, and so on: at most 1,000 jobs.`,
		Args: oneArgument,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("depth") && (depth < 1 || depth > job.MaxTreeDepth) {
				return usage("--depth is from 1 to " + strconv.Itoa(job.MaxTreeDepth))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&root, "root", false, "begin at the first ancestor of the job")
	c.Flags().IntVar(&depth, "depth", 0, "show `n` generations below the first job (default 100)")
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		query := url.Values{}
		if root {
			query.Set("root", "true")
		}
		if depth > 0 {
			query.Set("depth", strconv.Itoa(depth))
		}
		answer, err := s.Get(ctx, apiclient.Path("/jobs", args[0], "tree"), query)
		if err != nil {
			return err
		}
		return present(s, answer, (*session).showTree)
	})
}

func (s *session) showTree(tree v1.JobTree) error {
	table := show.NewTable(s.out, "JOB ID", "TYPE", "STATE", "AGE", "TOOK")
	children := make(map[job.ID][]v1.TreeJob)
	for _, one := range tree.Jobs[min(1, len(tree.Jobs)):] {
		if one.ParentID != nil {
			children[*one.ParentID] = append(children[*one.ParentID], one)
		}
	}
	// draw writes a job behind its own branch, and its descendants behind what hangs below it.
	var draw func(one v1.TreeJob, branch, below string)
	draw = func(one v1.TreeJob, branch, below string) {
		table.Row(branch+one.JobID.String(), one.JobType, styled(one.State), s.since(one.CreatedAt), show.Right(s.took(v1.Job{
			Status: one.Status, StartedAt: one.StartedAt, FinishedAt: one.FinishedAt,
		})))
		next := children[one.JobID]
		for i, child := range next {
			if i < len(next)-1 {
				draw(child, below+"├─ ", below+"│  ")
			} else {
				draw(child, below+"└─ ", below+"   ")
			}
		}
	}
	if len(tree.Jobs) > 0 {
		draw(tree.Jobs[0], "", "")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if tree.Truncated {
		s.notes.Print("There are more jobs than are shown.\n")
	}
	return nil
}

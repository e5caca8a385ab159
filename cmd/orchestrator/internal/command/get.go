package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
)

func (p *Program) getCommand() *cobra.Command {
	wait := waitFlag{}
	c := &cobra.Command{
		Use:   "get ID",
		Short: "Show a job",
		Long: `Show a job. With --wait, wait until it has ended; the exit code is then 3 unless
the job completed.`,
		Args: oneArgument, PreRunE: wait.check,
	}
	wait.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		if wait.on() {
			return s.await(ctx, args[0], wait)
		}
		answer, err := s.Get(ctx, apiclient.Path("/jobs", args[0]), nil)
		if err != nil {
			return err
		}
		return present(s, answer, (*session).showJob)
	})
}

package command

import (
	"context"

	"github.com/spf13/cobra"
)

func (p *Program) getCommand() *cobra.Command {
	wait := waitFlag{}
	c := &cobra.Command{
		Use:   "get ID",
		Short: "See what became of a job",
		Long: `See what became of a job. With --wait, wait until it has ended; then the exit
code is 3 for a job that did not complete.`,
		Args: oneArgument,
	}
	wait.register(c)
	check := func([]string) error { return wait.check() }
	return p.speaks(c, check, func(ctx context.Context, s *session, args []string) error {
		if wait.on() {
			return s.await(ctx, args[0], wait)
		}
		answer, err := s.Job(ctx, args[0])
		if err != nil {
			return err
		}
		return s.showJob(answer)
	})
}

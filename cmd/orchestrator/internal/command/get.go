package command

import (
	"context"

	"github.com/spf13/cobra"
)

func (p *Program) getCommand() *cobra.Command {
	wait := waitFlag{}
	c := &cobra.Command{
		Use:   "get ID",
		Short: "Show a job",
		Long: `Show a job. With --wait, wait until it has ended; the exit code is then 3 unless
the job completed.`,
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

package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
)

func (p *Program) resubmitCommand() *cobra.Command {
	submission := submissionFlags{}
	c := &cobra.Command{
		Use:   "resubmit ID",
		Short: "Submit a job anew, perhaps changed",
		Long: `Submit a new job like this one, in whatever state it is; it stays as it is.
What no flag changes is taken from it, but when it was due, its idempotency key,
and what made it unique.`,
		Example: `  orchestrator resubmit 019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa --payload @a.json`,
		Args:    oneArgument,
	}
	submission.register(c, "tenant")
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		body, err := submission.changes(ctx, s.stdin)
		if err != nil {
			return err
		}
		accepted, err := s.Post(apiclient.Keyed(ctx, submission.key()), apiclient.Path("/debug/jobs", args[0], "resubmit"), nil, body)
		if err != nil {
			return err
		}
		return present(s, accepted, (*session).showSubmitted)
	})
}

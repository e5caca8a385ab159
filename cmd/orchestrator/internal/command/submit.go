package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
)

func (p *Program) submitCommand() *cobra.Command {
	submission, wait, lines := submissionFlags{}, waitFlag{}, batchFlags{}
	c := &cobra.Command{
		Use:   "submit TYPE",
		Short: "Submit a job, or a file of them",
		Long: `Submit a job of the type, or with --batch one job for each line of a file. A line
is a submission in JSON, {"jobType": …, "payload": …}, as for POST /jobs.`,
		Example: `  orchestrator submit SLEEP_JOB --payload '{"sleepSeconds": 5}' --wait
  orchestrator submit SEND_EMAIL --payload @mail.json --key order-47 --delay 10m
  orchestrator submit --batch jobs.ndjson`,
		Args: func(c *cobra.Command, args []string) error {
			if err := RefuseEmptyFlags(c); err != nil { // before an empty --batch counts as none
				return err
			}
			switch {
			case lines.file == "" && lines.atomic:
				return usage("--atomic goes with --batch")
			case lines.file == "":
				return oneArgument(c, args)
			case len(args) > 0:
				return fmt.Errorf("the argument %q does not go with --batch: each line names its job type", args[0])
			}
			return nil
		},
		PreRunE: func(c *cobra.Command, args []string) error {
			given := submission.given()
			switch {
			case lines.file != "" && given != "":
				return usage("--" + given + " does not go with --batch: each line has its own members")
			case lines.file != "" && wait.on():
				return usage("--wait does not go with --batch")
			}
			return wait.check(c, args)
		},
	}
	submission.register(c)
	wait.register(c)
	lines.register(c)
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		if lines.file != "" {
			return s.submitBatch(ctx, lines)
		}
		body, err := submission.body(ctx, args[0], s.stdin)
		if err != nil {
			return err
		}
		accepted, err := s.Post(apiclient.Keyed(ctx, submission.key()), "/jobs", nil, body)
		switch {
		case err != nil:
			return err
		case !wait.on():
			return present(s, accepted, (*session).showSubmitted)
		}
		var job submittedJob
		if err := accepted.Into(&job); err != nil {
			return err
		}
		job.noteDuplicate(s)
		if err := s.await(ctx, job.JobID.String(), wait); err != nil {
			var exit Exit
			switch {
			case errors.As(err, &exit):
			case job.Duplicate:
				s.notes.Print(job.JobID.String() + "\n")
			default:
				s.notes.Print("The job was accepted: " + job.JobID.String() + "\n")
			}
			return err
		}
		return nil
	})
}

package command

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
)

// action is what a command does to jobs.
type action struct {
	name, short, long string
	// statuses are the job statuses it applies to, separated by commas.
	statuses string
}

var (
	cancel = action{
		name: "cancel", short: "Cancel jobs",
		long:     "Cancel jobs. A waiting job is canceled at once. A running job is asked to stop, and stays RUNNING until it has stopped.",
		statuses: "PENDING,RUNNING",
	}
	hold = action{
		name: "hold", short: "Hold scheduled jobs until you release them",
		long:     "Hold jobs that are scheduled for later until you release them.",
		statuses: "PENDING",
	}
	release = action{
		name: "release", short: "Make held or scheduled jobs eligible now",
		long:     "Make jobs eligible now that are held or scheduled for later.",
		statuses: "PENDING",
	}
	requeue = action{
		name: "requeue", short: "Give dead-lettered jobs all their attempts again",
		long:     "Give dead-lettered jobs all their attempts again. To requeue many, use dead-letter retry.",
		statuses: "FAILED",
	}
)

func (p *Program) actCommand(a action) *cobra.Command {
	c := &cobra.Command{
		Use:   a.name + " ID…",
		Short: a.short,
		Long:  a.long + "\nEach job is tried, even if others fail.",
		Args:  atLeastOne,
	}
	reason := ""
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	return p.speaks(c, func(ctx context.Context, s *session, ids []string) error {
		return s.act(a.name, ids, func(id string) (apiclient.Answer, error) {
			return s.Post(apiclient.Because(ctx, reason), apiclient.Path("/jobs", id, a.name), nil, nil)
		})
	})
}

// act does something to each of the jobs, and prints it as it is afterwards.
func (s *session) act(action string, ids []string, do func(id string) (apiclient.Answer, error)) error {
	table := s.jobTable()
	var failed error
	for _, id := range ids {
		answer, err := do(id)
		if err != nil && !isAboutOne(err) {
			return err
		}
		if err != nil {
			s.complain(action+" "+id, err)
			failed = Exit{CodeFailed}
			continue
		}
		// Printed at once, since the next job may take a while.
		err = present(s, answer, func(s *session, j v1.Job) error {
			s.jobRow(table, j)
			return table.Flush()
		})
		if err != nil {
			return err
		}
	}
	return failed
}

// isAboutOne reports whether the error concerns this job only.
func isAboutOne(err error) bool {
	var problem *apiclient.Problem
	return errors.As(err, &problem) &&
		problem.Status != http.StatusUnauthorized && problem.Status != http.StatusForbidden &&
		problem.Status != http.StatusTooManyRequests && problem.Status < http.StatusInternalServerError
}

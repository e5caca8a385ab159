package command

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	pausesPath  = "/debug/pauses"
	workersPath = "/debug/workers"
)

func (p *Program) pausesCommand() *cobra.Command {
	c := &cobra.Command{Use: "pauses", Short: "List what is paused", Args: NoArguments}
	return p.speaks(c, presents(pausesPath, func(s *session, found v1.PauseList) error { return s.showPauses(found.Pauses) }))
}

func (p *Program) pauseCommand() *cobra.Command {
	var reason string
	var lasts time.Duration
	drain := false
	c := &cobra.Command{
		Use:   "pause SCOPE [TARGET]",
		Short: "Let no further job of a type, a plugin or a tenant start",
		Long: `Let no further job of a type, a plugin or a tenant start, or with the scope all, no
further job at all. The pause is in force on every orchestrator within a second, and
survives restarts. Submission goes on. Running jobs finish, unless you add --drain.`,
		Example: `  orchestrator pause type SEND_EMAIL --reason "mail server moves" --for 1h
  orchestrator pause tenant acme --reason unpaid
  orchestrator pause all --reason "incident 42" --drain`,
		Args: func(c *cobra.Command, args []string) error { return scoped(c, args, job.PauseScopes(), job.PauseAll) },
	}
	c.Flags().StringVar(&reason, "reason", "", "`why`, for people")
	c.Flags().DurationVar(&lasts, "for", 0, "end the pause after this `time`, such as 90s or 1h30m (default: until you resume)")
	c.Flags().BoolVar(&drain, "drain", false, "ask running jobs to stop, and give them back without charging the attempt")
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		spec := v1.PauseSpec{Reason: reason, Drain: drain}
		if c.Flags().Changed("for") {
			spec.For = new(lasts.String())
		}
		body, err := json.Marshal(spec)
		if err != nil {
			return err
		}
		return s.showPause(s.Put(ctx, apiclient.Path(pausesPath, args...), body))
	})
}

func (p *Program) resumeCommand() *cobra.Command {
	scopes := append(job.PauseScopes(), job.PauseWorker)
	c := &cobra.Command{
		Use:   "resume SCOPE [TARGET]",
		Short: "End a pause, or the drain of a worker",
		Long: `End a pause, and print it as it was. resume all ends the pause of everything: what is
paused by itself stays paused. resume worker lets a drained worker take jobs again.`,
		Example: `  orchestrator resume type SEND_EMAIL
  orchestrator resume all
  orchestrator resume worker host-1-7f9c2a`,
		Args: func(c *cobra.Command, args []string) error { return scoped(c, args, scopes, job.PauseAll) },
	}
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		if args[0] == string(job.PauseWorker) {
			return s.operateWorker(ctx, args[1], "resume")
		}
		return s.showPause(s.Delete(ctx, apiclient.Path(pausesPath, args...)))
	})
}

func (p *Program) drainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "drain WORKER",
		Short: "Let a worker finish what it has and take no more jobs",
		Long: `Let a worker, which "workers" lists, finish what it has and take no more jobs. What
does not finish within worker.drain_timeout is given back without charging the
attempt. The worker is draining, then drained. It does not exit; "resume worker" lets
it take jobs again, and so does a restart.`,
		Args: oneArgument,
	}
	return p.speaks(c, func(ctx context.Context, s *session, args []string) error {
		return s.operateWorker(ctx, args[0], "drain")
	})
}

func (s *session) operateWorker(ctx context.Context, worker, action string) error {
	answer, err := s.Post(ctx, apiclient.Path(workersPath, worker, action), nil, nil)
	if err != nil {
		return err
	}
	return present(s, answer, func(s *session, worker v1.Worker) error {
		return s.showWorkers(v1.WorkerList{Workers: []v1.Worker{worker}})
	})
}

// showPause prints the answer about one pause.
func (s *session) showPause(answer apiclient.Answer, err error) error {
	if err != nil {
		return err
	}
	return present(s, answer, func(s *session, pause v1.Pause) error { return s.showPauses([]v1.Pause{pause}) })
}

func (s *session) showPauses(pauses []v1.Pause) error {
	table := show.NewTable(s.out, "SCOPE", "TARGET", "SINCE", "UNTIL", "DRAIN", "BY", "REASON")
	for _, pause := range pauses {
		drain, until := "", ""
		if pause.Drain {
			drain = "yes"
		}
		if pause.Until != nil {
			until = s.moment(pause.Until)
		}
		table.Row(string(pause.Scope), pause.Name, show.Right(s.ago(pause.Since)), until, drain, pause.PausedBy, pause.Reason)
	}
	return table.Flush()
}

package author

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *Program) runCommand() *cobra.Command {
	var flags launchFlags
	var payload, checkpoint string
	var trial trial
	c := &cobra.Command{
		Use:   "run BINARY",
		Short: "Run one job in a plugin, without a database",
		Long: `Run one job in a plugin, which is launched as an orchestrator launches it. No
database is needed and nothing is stored. The payload is checked against the
handler's schema first, as it is when a job is submitted.

Progress and logs go to standard error, the result as JSON to standard output.
Ctrl-C asks the handler to stop, a second one kills it.`,
		Args: oneBinary,
		RunE: func(c *cobra.Command, args []string) error {
			launch, err := p.launch(flags, args[0])
			if err != nil {
				return err
			}
			if trial.attempt < 1 {
				return command.Misused(errors.New("--attempt must be at least 1"))
			}
			if c.Flags().Changed("timeout") && trial.timeout <= 0 {
				return command.Misused(errors.New("--timeout must be above zero; leave it out for the handler's own"))
			}
			if err := onceFromInput(c, "payload", "checkpoint"); err != nil {
				return err
			}
			if trial.payload, err = command.ReadPayload(c.Context(), payload, p.Stdin); err != nil {
				return fmt.Errorf("--payload: %w", err)
			}
			if c.Flags().Changed("checkpoint") {
				if trial.checkpoint, err = command.ReadPayload(c.Context(), checkpoint, p.Stdin); err != nil {
					return fmt.Errorf("--checkpoint: %w", err)
				}
			}
			return p.runJob(c.Context(), launch, trial)
		},
	}
	flags.register(c)
	c.Flags().StringVar(&trial.jobType, "type", "", "the job `type`; not needed when the binary serves one")
	c.Flags().StringVar(&payload, "payload", "null", "the payload: `JSON`, @file, or - for standard input")
	c.Flags().IntVar(&trial.attempt, "attempt", 1, "the number of the attempt; it may be above the maximum that the handler declares")
	c.Flags().StringVar(&checkpoint, "checkpoint", "", "what an earlier attempt has saved: `JSON`, @file, or -")
	c.Flags().DurationVar(&trial.timeout, "timeout", 0, "bound on the attempt, a `duration` (the handler's own when left out)")
	completeBinary(c, "type", "payload", "attempt", "checkpoint", "timeout", "arg", "env", "start-timeout")
	return c
}

// runJob runs the job and prints how it ended.
func (p *Program) runJob(ctx context.Context, launch launch, trial trial) error {
	notes := show.NewScreen(p.Stderr, show.Never, p.Getenv)
	trial.line = show.NewLine(notes)
	begun := time.Now()
	trial.progress = func(value json.RawMessage) {
		text := "progress " + show.Clean(string(value))
		if !notes.Terminal {
			trial.line.Above(text + "\n")
			return
		}
		trial.line.Set(text + "  " + show.Age(time.Since(begun)))
	}
	settings := host.DefaultSettings(p.SocketDir, newLog(trial.line))
	settings.Cgroup = host.CgroupNone // nobody has asked for limits
	stop, kill, release := p.TwoSignals(ctx)
	defer release()
	result, err := trial.run(stop, kill, settings, launch)
	trial.line.Clear()
	if err != nil {
		return err
	}
	encoded, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	if err := show.NewScreen(p.Stdout, show.Never, p.Getenv).JSON(encoded); err != nil {
		return err
	}
	return verdict(stop, result.Outcome == job.Success)
}

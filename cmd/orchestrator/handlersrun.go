package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/trial"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *program) handlersRunCommand() *cobra.Command {
	var launch launchFlags
	var payload, checkpoint string
	plan := trial.Plan{}
	c := &cobra.Command{
		Use:   "run BINARY",
		Short: "Run one job in a handler binary, without a database",
		Long: `Run one job in a handler binary, which is launched as an orchestrator launches
it. No database is needed and nothing is stored. The payload is checked against
the handler's schema first, as it is when a job is submitted.

Progress and logs go to standard error, the result as JSON to standard output.
Ctrl-C asks the handler to stop, a second one kills it.`,
		Args: oneBinary,
		RunE: func(c *cobra.Command, args []string) error {
			config, err := launch.config(args[0])
			if err != nil {
				return err
			}
			if plan.Attempt < 1 {
				return usageError{errors.New("--attempt must be at least 1")}
			}
			if c.Flags().Changed("timeout") && plan.Timeout <= 0 {
				return usageError{errors.New("--timeout must be above zero; leave it out for the handler's own")}
			}
			if err := onceFromInput(c, "payload", "checkpoint"); err != nil {
				return err
			}
			if plan.Payload, err = command.ReadPayload(c.Context(), payload, p.stdin); err != nil {
				return fmt.Errorf("--payload: %w", err)
			}
			if c.Flags().Changed("checkpoint") {
				if plan.Checkpoint, err = command.ReadPayload(c.Context(), checkpoint, p.stdin); err != nil {
					return fmt.Errorf("--checkpoint: %w", err)
				}
			}
			return p.tryJob(c.Context(), config, plan)
		},
	}
	launch.register(c)
	c.Flags().StringVar(&plan.Type, "type", "", "the job `type`; not needed when the binary serves one")
	c.Flags().StringVar(&payload, "payload", "null", "the payload: `JSON`, @file, or - for standard input")
	c.Flags().IntVar(&plan.Attempt, "attempt", 1, "which attempt at the job it is to be; a submission may allow more than the handler declares")
	c.Flags().StringVar(&checkpoint, "checkpoint", "", "what an earlier attempt has saved: `JSON`, @file, or -")
	c.Flags().DurationVar(&plan.Timeout, "timeout", 0, "bound on the attempt, a `duration` (the handler's own when left out)")
	completeBinary(c, "type", "payload", "attempt", "checkpoint", "timeout", "arg", "env")
	return c
}

// tryJob runs the job and prints what has become of it.
func (p *program) tryJob(ctx context.Context, config handlerConfig, plan trial.Plan) error {
	environment, err := config.environment(p.environ, nil)
	if err != nil {
		return usageError{err}
	}
	notes := show.NewScreen(p.stderr, show.Never, p.getenv)
	line := show.NewLine(notes)
	plan.Plugin = host.Config{Name: config.Name, Path: config.Path, Args: config.Args, Env: environment, Processes: 1}
	plan.Settings = host.DefaultSettings(socketDir(nil), trial.NewLog(line))
	plan.Settings.Cgroup = host.CgroupNone // nobody has asked for limits
	begun := time.Now()
	plan.Log = func(said job.LogLine) { trial.Show(line, said) }
	plan.Told = func(what string) { line.Above(what + "\n") }
	plan.Progress = func(value json.RawMessage) {
		text := "progress " + show.Clean(string(value))
		if !notes.Terminal {
			line.Above(text + "\n")
			return
		}
		line.Set(text + "  " + show.Age(time.Since(begun)))
	}
	stop, kill, release := watchSignals(ctx, slog.New(slog.DiscardHandler))
	defer release()
	result, err := trial.Run(stop, kill, plan)
	line.Clear()
	var choice trial.ChoiceError
	switch {
	case errors.As(err, &choice):
		return usageError{err}
	case err != nil:
		return err
	}
	encoded, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	if err := show.NewScreen(p.stdout, show.Never, p.getenv).JSON(encoded); err != nil {
		return err
	}
	var stopped stoppedError
	switch {
	case errors.As(context.Cause(stop), &stopped):
		return stopped
	case result.Outcome != job.Success:
		return command.Exit{Code: command.CodeFound}
	}
	return nil
}

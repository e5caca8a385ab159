package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

const maxSleepSeconds = 300

type sleepArgs struct {
	SleepSeconds int `json:"sleepSeconds" jsonschema:"minimum=1,maximum=300"`
}

// slept is both the progress and the checkpoint.
type slept struct {
	SleptSeconds int `json:"sleptSeconds"`
	OfSeconds    int `json:"ofSeconds"`
}

// notebook is where a sleep reports; a plugin.Job is one.
type notebook interface {
	Progress(v any) error
	Checkpoint(v any) error
	Resume(v any) (bool, error)
}

func sleepHandler() plugin.Handler {
	return plugin.Handle("SLEEP_JOB",
		func(ctx context.Context, j plugin.Job[sleepArgs]) error { return sleep(ctx, j.Args, j) },
		plugin.Description("Sleeps for a number of seconds."), plugin.Timeout((maxSleepSeconds+30)*time.Second))
}

// sleep sleeps second by second, and continues where an earlier attempt ended.
func sleep(ctx context.Context, args sleepArgs, notes notebook) error {
	if args.SleepSeconds < 1 || args.SleepSeconds > maxSleepSeconds {
		return plugin.Permanent(plugin.Code(
			fmt.Errorf("sleepSeconds is %d, not 1..%d", args.SleepSeconds, maxSleepSeconds), "bad_payload"))
	}
	done := slept{OfSeconds: args.SleepSeconds}
	if _, err := notes.Resume(&done); err != nil {
		return err
	}
	// Show at once that it runs.
	if err := notes.Progress(done); err != nil {
		return err
	}
	seconds := time.NewTicker(time.Second)
	defer seconds.Stop()
	for done.SleptSeconds < args.SleepSeconds {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-seconds.C:
		}
		done.SleptSeconds++
		if err := errors.Join(notes.Checkpoint(done), notes.Progress(done)); err != nil {
			return err
		}
	}
	return nil
}

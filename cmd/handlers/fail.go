package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

type failArgs struct {
	Message string `json:"message,omitempty"`
}

func failHandler() plugin.Handler {
	return plugin.Handle("FAIL_JOB", fail,
		plugin.Description("Fails every time, to test what happens then."), plugin.Timeout(10*time.Second))
}

// fail fails every time. The job can be retried.
func fail(_ context.Context, j plugin.Job[failArgs]) error {
	if j.Args.Message == "" {
		return errors.New("FAIL_JOB always fails")
	}
	return errors.New(j.Args.Message)
}

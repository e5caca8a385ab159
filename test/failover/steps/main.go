// Command steps is a plugin that writes a line at the beginning and at the end of
// every attempt. It appends the lines to the file that the environment variable STEPS
// names.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// step is the payload.
type step struct {
	// Millis is how long the handler takes.
	Millis int `json:"millis"`
}

func main() {
	plugin.Serve(plugin.Handle("STEP", run))
}

func run(ctx context.Context, j plugin.Job[step]) error {
	if err := leave("begin", j); err != nil {
		return err
	}
	var ended error
	select {
	case <-time.After(time.Duration(j.Args.Millis) * time.Millisecond):
	case <-ctx.Done():
		ended = context.Cause(ctx)
	}
	return errors.Join(ended, leave("end", j))
}

// leave appends one short line in a single write, so that lines of concurrent
// processes stay whole.
func leave(what string, j plugin.Job[step]) error {
	file, err := os.OpenFile(os.Getenv("STEPS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %s %d %d\n", what, j.ID, j.Fence, time.Now().UnixNano())
	return errors.Join(err, file.Close())
}

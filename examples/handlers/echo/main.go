// Command echo is the smallest plugin. Its one handler logs the text of each ECHO job.
package main

import (
	"context"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// Args is the payload of an ECHO job.
type Args struct {
	Text string `json:"text"`
}

// Echo runs one ECHO job.
func Echo(ctx context.Context, j plugin.Job[Args]) error {
	plugin.Logger(ctx).Info("echo", "text", j.Args.Text)
	return nil
}

func main() { plugin.Serve(plugin.Handle("ECHO", Echo)) }

// Command steps is a plugin for jobs of workflows that fail at random. It appends a line for
// the beginning and for the end of every attempt to the file that the environment variable
// RECORD names.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// step is the payload. A step names itself, which is also its result.
type step struct {
	Name string `json:"name"`
	// Micros is how long the handler takes.
	Micros int `json:"micros,omitempty"`
	// FailPercent and DiePercent are how many attempts fail, and how many fail for good.
	FailPercent int `json:"failPercent,omitempty"`
	DiePercent  int `json:"diePercent,omitempty"`
}

func main() {
	plugin.Serve(plugin.Concurrency(20), plugin.HandleResult("STEP", run, plugin.Retry(plugin.ImmediateRetry())))
}

func run(ctx context.Context, j plugin.Job[step]) (string, error) {
	if err := write("begin", j.Args.Name); err != nil {
		return "", err
	}
	for _, before := range plugin.Predecessors(ctx) {
		var result string
		if found, err := plugin.ResultOf(ctx, before.Name, &result); err != nil || !found || result != before.Name {
			return "", errors.Join(err, write("misread", j.Args.Name))
		}
	}
	time.Sleep(time.Duration(j.Args.Micros) * time.Microsecond)
	switch n := rand.IntN(100); {
	case n < j.Args.DiePercent:
		return "", plugin.Permanent(errors.New("dies at random"))
	case n < j.Args.DiePercent+j.Args.FailPercent:
		return "", errors.New("fails at random")
	}
	return j.Args.Name, write("end", j.Args.Name)
}

var record = sync.OnceValues(func() (*os.File, error) {
	return os.OpenFile(os.Getenv("RECORD"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
})

// write appends one line in a single write, so that lines of concurrent processes stay
// whole and in the order in which they were written.
func write(what, name string) error {
	file, err := record()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %s\n", what, name)
	return err
}

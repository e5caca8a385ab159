// Command handlers is the plugin of a soak. The payload says what the attempts of a job do.
// The variable LEAK makes the plugin leak with each attempt: memory or files.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// work is the payload.
type work struct {
	Plan string `json:"plan"`
	Text string `json:"text,omitempty"`
}

func main() {
	if os.Getenv("CRASHING") != "" {
		plugin.Serve(plugin.HandleResult("SOAK_CRASH", do))
		return
	}
	plugin.Serve(plugin.Concurrency(100), plugin.HandleResult("SOAK_WORK", do), plugin.HandleResult("SOAK_TICK", do))
}

func do(ctx context.Context, j plugin.Job[work]) (string, error) {
	leak()
	switch {
	case j.Args.Plan == "retry" && j.Attempt == 1, j.Args.Plan == "exhaust":
		plugin.Logger(ctx).Warn("this attempt fails", "attempt", j.Attempt)
		return "", errors.New("this attempt was to fail")
	case j.Args.Plan == "die":
		return "", plugin.Permanent(errors.New("this job was to die"))
	case j.Args.Plan == "sleep":
		<-ctx.Done()
		return "", context.Cause(ctx)
	case j.Args.Plan == "crash" && j.Attempt == 1:
		fmt.Fprintln(os.Stderr, "this process was to crash")
		os.Exit(3)
	case j.Args.Plan == "report":
		return j.Args.Text, errors.Join(j.Progress(map[string]int{"done": 1}), j.Checkpoint(j.Attempt))
	}
	return j.Args.Text, nil
}

// leaked is what the plugin never gives back.
var leaked struct {
	sync.Mutex
	attempts int
	memory   [][]byte
	files    []*os.File
}

const (
	leakedBytes = 4 << 10
	// mostMemory and mostFiles keep the machine from harm.
	mostMemory, mostFiles = 512 << 20, 500
	// filesEvery is how many attempts leak one file: a soak of 50,000 jobs leaks until its end.
	filesEvery = 100
)

func leak() {
	leaked.Lock()
	defer leaked.Unlock()
	leaked.attempts++
	switch os.Getenv("LEAK") {
	case "memory":
		if len(leaked.memory) < mostMemory/leakedBytes {
			page := make([]byte, leakedBytes)
			for i := range page {
				page[i] = byte(i) // so that it is there
			}
			leaked.memory = append(leaked.memory, page)
		}
	case "files":
		if leaked.attempts%filesEvery == 0 && len(leaked.files) < mostFiles {
			if file, err := os.Open(os.DevNull); err == nil {
				leaked.files = append(leaked.files, file)
			}
		}
	}
}

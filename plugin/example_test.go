package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// Letter is a payload: what a client submits.
type Letter struct {
	To     string `json:"to"`
	Copies int    `json:"copies,omitempty" jsonschema:"minimum=1,maximum=300"`
}

// A binary with one handler has this and no more in its main.
func ExampleHandle() {
	printLetter := func(_ context.Context, j plugin.Job[Letter]) error {
		fmt.Println("to", j.Args.To)
		return nil
	}
	handler := plugin.Handle("PRINT", printLetter,
		plugin.Description("Prints a letter."),
		plugin.Timeout(2*time.Minute),
		plugin.MaxAttempts(6),
		plugin.Retry(plugin.ExponentialBackoff(5*time.Second, 3, 10*time.Minute)),
		plugin.Concurrency(2), // there are two printers
	)
	_ = func() { plugin.Serve(handler, plugin.Concurrency(20)) }

	// A test calls the function as it is.
	err := printLetter(context.Background(), plugin.Job[Letter]{ID: "1", Args: Letter{To: "Ada"}})
	fmt.Println(err)
	// Output:
	// to Ada
	// <nil>
}

func ExampleHandleResult() {
	type receipt struct {
		Pages int `json:"pages"`
	}
	printLetter := func(_ context.Context, j plugin.Job[Letter]) (receipt, error) {
		return receipt{Pages: 2 * j.Args.Copies}, nil
	}
	_ = plugin.HandleResult("PRINT", printLetter)

	result, err := printLetter(context.Background(), plugin.Job[Letter]{Args: Letter{To: "Ada", Copies: 3}})
	fmt.Println(result.Pages, err)
	// Output: 6 <nil>
}

var errNoSuchPrinter = errors.New("no such printer")

// What can never succeed is not tried again.
func ExamplePermanent() {
	err := plugin.Permanent(plugin.Code(errNoSuchPrinter, "no_printer"))

	asked := plugin.VerdictOf(fmt.Errorf("letter 7: %w", err))
	fmt.Println(err, asked.Permanent, asked.Code)
	// Output: no such printer true no_printer
}

// The other end knows best when to come again.
func ExampleRetryAfter() {
	busy := &http.Response{Status: "429 Too Many Requests", Header: http.Header{"Retry-After": {"30s"}}}

	err := errors.New(busy.Status)
	if wait, parseErr := time.ParseDuration(busy.Header.Get("Retry-After")); parseErr == nil {
		err = plugin.RetryAfter(err, wait)
	}
	fmt.Println(err, *plugin.VerdictOf(err).RetryAfter)
	// Output: 429 Too Many Requests 30s
}

// A job that waits for something is no failure, and is not charged.
func ExampleSnooze() {
	ready := func() bool { return false }
	send := func(context.Context, plugin.Job[Letter]) error {
		if !ready() {
			return plugin.Snooze(time.Minute)
		}
		return nil
	}
	err := send(context.Background(), plugin.Job[Letter]{})
	fmt.Println(plugin.VerdictOf(err).Snoozed, *plugin.VerdictOf(err).RetryAfter)
	// Output: true 1m0s
}

// A job can turn out to be needless.
func ExampleCancel() {
	err := plugin.Cancel(errors.New("the customer has left"))
	fmt.Println(err, plugin.VerdictOf(err).Canceled)
	// Output: canceled by the handler: the customer has left true
}

// Each attempt goes on where the last one was.
func ExampleJob_Checkpoint() {
	type cursor struct {
		Next int `json:"next"`
	}
	count := func(ctx context.Context, j plugin.Job[Letter]) error {
		var at cursor
		if _, err := j.Resume(&at); err != nil {
			return err
		}
		for ; at.Next < j.Args.Copies; at.Next++ {
			if err := j.Checkpoint(at); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			fmt.Println("copy", at.Next+1)
		}
		return nil
	}
	err := count(context.Background(), plugin.Job[Letter]{Args: Letter{Copies: 2}})
	fmt.Println(err)
	// Output:
	// copy 1
	// copy 2
	// <nil>
}

// A job that is made by hand has no checkpoint.
func ExampleJob_Resume() {
	at := 17
	found, err := plugin.Job[Letter]{}.Resume(&at)
	fmt.Println(found, at, err)
	// Output: false 17 <nil>
}

// Clients see the last value while the job runs, and after.
func ExampleJob_Progress() {
	printLetter := func(_ context.Context, j plugin.Job[Letter]) error {
		for n := range j.Args.Copies {
			if err := j.Progress(map[string]int{"printed": n, "of": j.Args.Copies}); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Println(printLetter(context.Background(), plugin.Job[Letter]{Args: Letter{Copies: 3}}))
	// Progress is JSON.
	fmt.Println(plugin.Job[Letter]{}.Progress(make(chan int)))
	// Output:
	// <nil>
	// progress: json: unsupported type: chan int
}

// The lines are in the orchestrator's log, with the job's id, and kept with the
// attempt: "orchestrator logs ID" shows them.
func ExampleLogger() {
	printLetter := func(ctx context.Context, j plugin.Job[Letter]) error {
		log := plugin.Logger(ctx).With("to", j.Args.To)
		log.Info("printing", "copies", j.Args.Copies)
		return nil
	}
	_ = plugin.Handle("PRINT", printLetter)
	fmt.Println(printLetter(context.Background(), plugin.Job[Letter]{Args: Letter{To: "Ada", Copies: 3}}))
	// Output: <nil>
}

// shelf is whatever an attempt writes to. It remembers the highest fence.
type shelf struct {
	fence int64
	book  string
}

func (s *shelf) put(fence int64, book string) error {
	if fence < s.fence {
		return fmt.Errorf("fence %d is behind %d", fence, s.fence)
	}
	s.fence, s.book = fence, book
	return nil
}

// An attempt that was given up and still runs somewhere is kept out by its fence,
// which is lower than that of the attempt that took its place.
func ExampleJob_fence() {
	var s shelf
	write := func(_ context.Context, j plugin.Job[Letter]) error { return s.put(j.Fence, j.ID) }

	fmt.Println(write(context.Background(), plugin.Job[Letter]{ID: "1", Attempt: 2, Fence: 8}))
	fmt.Println(write(context.Background(), plugin.Job[Letter]{ID: "1", Attempt: 1, Fence: 7}))
	// Output:
	// <nil>
	// fence 7 is behind 8
}

package plugin_test

import (
	"context"
	"encoding/json"
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

// A plugin with one handler needs no more than this in its main function.
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

// One letter at a time for each recipient, whichever orchestrator runs it.
func ExampleTerms() {
	printLetter := func(context.Context, plugin.Job[Letter]) error { return nil }
	_ = plugin.Handle("PRINT", printLetter,
		plugin.Terms{ConcurrencyKey: "/to", KeyClass: "recipient", ConcurrencyLimit: 1})
}

// Every recipient gets a job of its own. None of them exists unless the attempt succeeds, and
// then each exists once, however often the job was attempted.
func ExampleSubmit() {
	type mailing struct {
		To []string `json:"to"`
	}
	mail := func(ctx context.Context, j plugin.Job[mailing]) error {
		for _, to := range j.Args.To {
			if err := plugin.Submit(ctx, plugin.FollowUp{Type: "PRINT", Payload: Letter{To: to}, Tags: []string{"mailing"}}); err != nil {
				return err
			}
		}
		return nil
	}
	_ = plugin.Handle("MAIL_ALL", mail)

	fmt.Println(plugin.Submit(context.Background(), plugin.FollowUp{Type: "PRINT"}))
	// Output: submit: the context does not belong to an attempt
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

// A job that can never succeed is not attempted again.
func ExamplePermanent() {
	err := plugin.Permanent(plugin.Code(errNoSuchPrinter, "no_printer"))

	asked := plugin.VerdictOf(fmt.Errorf("letter 7: %w", err))
	fmt.Println(err, asked.Permanent, asked.Code)
	// Output: no such printer true no_printer
}

// The other end says when to try again.
func ExampleRetryAfter() {
	busy := &http.Response{Status: "429 Too Many Requests", Header: http.Header{"Retry-After": {"30s"}}}

	err := errors.New(busy.Status)
	if wait, parseErr := time.ParseDuration(busy.Header.Get("Retry-After")); parseErr == nil {
		err = plugin.RetryAfter(err, wait)
	}
	fmt.Println(err, *plugin.VerdictOf(err).RetryAfter)
	// Output: 429 Too Many Requests 30s
}

// A job that has to wait for something has not failed. The attempt does not count.
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

// A job may turn out to be unnecessary.
func ExampleCancel() {
	err := plugin.Cancel(errors.New("the customer has left"))
	fmt.Println(err, plugin.VerdictOf(err).Canceled)
	// Output: canceled by the handler: the customer has left true
}

// Each attempt continues where the last one stopped.
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

// A job made by hand, as in a test, has no checkpoint.
func ExampleJob_Resume() {
	at := 17
	found, err := plugin.Job[Letter]{}.Resume(&at)
	fmt.Println(found, at, err)
	// Output: false 17 <nil>
}

// Clients see the last value while the job runs and afterwards.
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

// The records appear in the orchestrator's log with the job's id, and are stored
// with the attempt: "orchestrator logs ID" shows them.
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

// shelf is a system that attempts write to. It remembers the highest fence.
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

// The fence keeps out an earlier attempt that still runs somewhere: its number is
// lower than that of the attempt that took its place.
func ExampleJob_fence() {
	var s shelf
	write := func(_ context.Context, j plugin.Job[Letter]) error { return s.put(j.Fence, j.ID) }

	fmt.Println(write(context.Background(), plugin.Job[Letter]{ID: "1", Attempt: 2, Fence: 8}))
	fmt.Println(write(context.Background(), plugin.Job[Letter]{ID: "1", Attempt: 1, Fence: 7}))
	// Output:
	// <nil>
	// fence 7 is behind 8
}

// The code is stored with the attempt, where clients and dashboards find it.
func ExampleCode() {
	err := plugin.Code(errNoSuchPrinter, "no_printer")

	fmt.Println(err, errors.Is(err, errNoSuchPrinter), plugin.VerdictOf(err).Code)
	// Output: no such printer true no_printer
}

// A test of a handler's function looks at what its error asks for. Options combine.
func ExampleVerdictOf() {
	err := plugin.RetryAfter(plugin.Code(errNoSuchPrinter, "no_printer"), time.Hour)

	asked := plugin.VerdictOf(fmt.Errorf("letter 7: %w", err))
	fmt.Println(asked.Permanent, asked.Code, *asked.RetryAfter)
	fmt.Println(plugin.VerdictOf(errNoSuchPrinter) == plugin.Verdict{}) // the retry policy decides
	// Output:
	// false no_printer 1h0m0s
	// true
}

// The id of a job is the same in every attempt: the receiver can recognize a
// repetition by it.
func ExampleJob() {
	sent := map[string]bool{}
	send := func(_ context.Context, j plugin.Job[Letter]) error {
		if sent[j.ID] {
			fmt.Println("already sent to", j.Args.To)
			return nil
		}
		sent[j.ID] = true
		fmt.Println("sent to", j.Args.To)
		return nil
	}
	job := plugin.Job[Letter]{ID: "0192", Args: Letter{To: "Ada"}, Attempt: 1}
	fmt.Println(send(context.Background(), job))
	job.Attempt = 2 // the process died before it could report the first attempt
	fmt.Println(send(context.Background(), job))
	// Output:
	// sent to Ada
	// <nil>
	// already sent to Ada
	// <nil>
}

// The context ends when an attempt must stop, and its cause says why.
func ExampleErrShutdown() {
	printLetter := func(ctx context.Context, _ plugin.Job[Letter]) error {
		select {
		case <-time.After(time.Hour):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	ctx, end := context.WithCancelCause(context.Background())
	end(plugin.ErrShutdown)
	err := printLetter(ctx, plugin.Job[Letter]{})
	fmt.Println(err, errors.Is(err, plugin.ErrShutdown))
	// Output: shutting down true
}

// json.Unmarshal takes TO for a field named to. Unmarshal decodes what a schema has
// checked, and nothing else.
func ExampleUnmarshal() {
	text := []byte(`{"to": "Ada", "TO": "Bob"}`)

	var exact, loose Letter
	fmt.Println(plugin.Unmarshal(text, &exact), exact.To)
	fmt.Println(json.Unmarshal(text, &loose), loose.To)
	// Output:
	// <nil> Ada
	// <nil> Bob
}

// A request that is made without OpenTelemetry passes the trace on in two headers.
func ExampleTraceContext() {
	call := func(ctx context.Context, _ plugin.Job[Letter]) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://printer.example/", nil)
		if err != nil {
			return plugin.Permanent(err)
		}
		if parent, state := plugin.TraceContext(ctx); parent != "" {
			request.Header.Set("Traceparent", parent)
			request.Header.Set("Tracestate", state)
		}
		fmt.Println(request.Method, request.URL.Host, len(request.Header))
		return nil
	}
	fmt.Println(call(context.Background(), plugin.Job[Letter]{})) // no attempt, no trace
	// Output:
	// POST printer.example 0
	// <nil>
}

// A handler reads what the client sent along with the job.
func ExampleBaggage() {
	greet := func(ctx context.Context, _ plugin.Job[Letter]) error {
		fmt.Printf("%q\n", plugin.Baggage(ctx))
		return nil
	}
	fmt.Println(greet(context.Background(), plugin.Job[Letter]{})) // no attempt, no baggage
	// Output:
	// ""
	// <nil>
}

// The wait before retry n is min(MaxDelay, InitialDelay · Factorⁿ⁻¹), plus or minus 10 %.
func ExampleExponentialBackoff() {
	policy := plugin.ExponentialBackoff(5*time.Second, 3, time.Minute)
	_ = plugin.Handle("PRINT", nothing, plugin.Retry(policy))

	fmt.Println(policy.Backoff, policy.InitialDelay, policy.Factor, policy.MaxDelay)
	// Output: exponential 5s 3 1m0s
}

// A policy can be changed before it is used.
func ExampleRetryPolicy() {
	policy := plugin.FixedBackoff(time.Minute)
	policy.ImmediateAfterTimeout = true
	policy.JitterMin, policy.JitterMax = 0.5, 1.5
	_ = plugin.Handle("PRINT", nothing, plugin.Retry(policy))

	fmt.Println(policy.Backoff, policy.InitialDelay, policy.JitterMin, policy.JitterMax)
	// Output: fixed 1m0s 0.5 1.5
}

func nothing(context.Context, plugin.Job[Letter]) error { return nil }

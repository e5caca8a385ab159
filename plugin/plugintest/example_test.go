package plugintest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/plugintest"
)

// exampleT stands in for the *testing.T, which examples do not have.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func (*exampleT) Helper()                   {}
func (*exampleT) Context() context.Context  { return context.Background() }
func (t *exampleT) Cleanup(f func())        { t.cleanups = append(t.cleanups, f) }
func (*exampleT) Errorf(f string, v ...any) { fmt.Printf(f+"\n", v...) }
func (*exampleT) Fatal(v ...any)            { panic(fmt.Sprint(v...)) }
func (*exampleT) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
func (t *exampleT) end() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// waitForStop runs until its context ends, and reports progress once.
func waitForStop(ctx context.Context, j plugin.Job[any]) error {
	if err := j.Progress("waiting"); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// Serve the handlers as the plugin's main function does.
func ExampleStart() {
	t := new(exampleT) // in a test: the *testing.T
	defer t.end()

	h := plugintest.Start(t,
		plugin.HandleResult("PRINT", Print),
		plugin.Handle("WAIT", waitForStop),
		plugin.Concurrency(4))
	fmt.Println(h.Run(t.Context(), plugintest.Job{Type: "PRINT", Payload: Args{To: "second floor"}}))
	// Output: succeeded: {"printed":0}
}

// Run one attempt to its end.
func ExampleHarness_Run() {
	t := new(exampleT) // in a test: the *testing.T
	defer t.end()

	h := plugintest.Start(t, plugin.HandleResult("PRINT", Print))
	result := h.Run(t.Context(), plugintest.Job{Payload: Args{To: "nowhere"}})
	fmt.Println(result.Outcome, result.Code, result.Message)
	// Output: permanent no_printer no such printer
}

// Begin an attempt, do something meanwhile, and wait for its end.
func ExampleHarness_Begin() {
	t := new(exampleT) // in a test: the *testing.T
	defer t.end()

	h := plugintest.Start(t, plugin.Handle("WAIT", waitForStop))
	attempt := h.Begin(plugintest.Job{})
	fmt.Printf("%s\n", attempt.Progress(t.Context())) // it runs now
	attempt.Stop(plugin.ErrCanceled)
	fmt.Println(attempt.Wait())
	// Output:
	// "waiting"
	// canceled
}

// Stop an attempt as an orchestrator does that shuts down.
func ExampleAttempt_Stop() {
	t := new(exampleT) // in a test: the *testing.T
	defer t.end()

	h := plugintest.Start(t, plugin.Handle("WAIT", waitForStop))
	attempt := h.Begin(plugintest.Job{})
	attempt.Stop(plugin.ErrShutdown)
	fmt.Println(attempt.Wait().Outcome)
	// Output: given_back
}

// Do not extend the lease, as when the orchestrator is cut off. The handler is
// asked to stop before the lease ends.
func ExampleAttempt_FallSilent() {
	t := new(exampleT) // in a test: the *testing.T
	defer t.end()

	h := plugintest.Start(t, plugin.Handle("WAIT", waitForStop))
	attempt := h.Begin(plugintest.Job{Lease: 100 * time.Millisecond})
	attempt.FallSilent()
	result := attempt.Wait()
	fmt.Println(result.Outcome, result.Message)
	// Output: given_back lease lost
}

// Let the process finish what it has, and refuse more.
func ExampleHarness_Drain() {
	t := new(exampleT) // in a test: the *testing.T
	defer t.end()

	h := plugintest.Start(t, plugin.HandleResult("PRINT", Print), plugin.OnDrain(func(context.Context) {
		fmt.Println("everything is done")
	}))
	fmt.Println(h.Run(t.Context(), plugintest.Job{}).Outcome)
	fmt.Println(h.Drain(t.Context()))
	// Output:
	// succeeded
	// everything is done
	// <nil>
}

// Look at what the handlers declare, such as the schema made from the payload's type.
func ExampleHarness_Types() {
	t := new(exampleT) // in a test: the *testing.T
	defer t.end()

	type report struct {
		Month int `json:"month" jsonschema:"minimum=1,maximum=12"`
	}
	makeReport := func(context.Context, plugin.Job[report]) error { return nil }
	h := plugintest.Start(t, plugin.Handle("REPORT", makeReport, plugin.Description("Makes the monthly report.")))
	for _, declared := range h.Types() {
		fmt.Println(declared.Name, declared.Description)
		fmt.Printf("%s\n", declared.Schema)
	}
	// Output:
	// REPORT Makes the monthly report.
	// {"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"month":{"type":"integer","maximum":12,"minimum":1}},"type":"object","required":["month"]}
}

// Look at the jobs that a handler has submitted.
func ExampleFollowUp() {
	t := new(exampleT) // in a test: the *testing.T
	defer t.end()

	twice := func(ctx context.Context, j plugin.Job[Args]) error {
		return plugin.Submit(ctx, plugin.FollowUp{Type: "PRINT", Payload: j.Args}, plugin.FollowUp{Type: "PRINT", Payload: j.Args, Delay: time.Hour})
	}
	h := plugintest.Start(t, plugin.Handle("TWICE", twice))
	for _, one := range h.Run(t.Context(), plugintest.Job{Payload: Args{To: "second floor"}}).FollowUps {
		fmt.Println(one.Type, string(one.Payload))
		fmt.Println(string(one.Submission))
	}
	// Output:
	// PRINT {"to":"second floor","pages":0}
	// {"jobType":"PRINT","payload":{"to":"second floor","pages":0}}
	// PRINT {"to":"second floor","pages":0}
	// {"jobType":"PRINT","payload":{"to":"second floor","pages":0},"delay":"1h0m0s"}
}

// Give the second attempt the checkpoint of the first.
func ExampleJob() {
	t := new(exampleT) // in a test: the *testing.T
	defer t.end()

	count := func(_ context.Context, j plugin.Job[any]) (int, error) {
		n := 0
		if _, err := j.Resume(&n); err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, errors.Join(j.Checkpoint(3), errors.New("out of paper"))
		}
		return n, nil
	}
	h := plugintest.Start(t, plugin.HandleResult("COUNT", count))
	first := h.Run(t.Context(), plugintest.Job{ID: "job-1"})
	second := h.Run(t.Context(), plugintest.Job{ID: "job-1", Attempt: 2, Checkpoint: first.Checkpoint})
	fmt.Println(first)
	fmt.Println(second)
	// Output:
	// failed: out of paper
	// succeeded: 3
}

// A result has everything that the handler reported.
func ExampleResult() {
	t := new(exampleT) // in a test: the *testing.T
	defer t.end()

	h := plugintest.Start(t, plugin.Handle("GREET", func(ctx context.Context, j plugin.Job[any]) error {
		plugin.Logger(ctx).Info("hello", "attempt", j.Attempt)
		return j.Progress(100)
	}))
	result := h.Run(t.Context(), plugintest.Job{Attempt: 2})
	record := result.Logs[0]
	fmt.Println(result.Outcome, string(result.Progress))
	fmt.Println(record.Level, record.Message, record.Attributes)
	// Output:
	// succeeded 100
	// INFO hello map[attempt:2]
}

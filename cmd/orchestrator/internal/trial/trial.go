// Package trial runs one job in a handler binary, which it launches as an
// orchestrator does, without a database.
package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

const (
	// leaseFor is the lease of the attempt, as an orchestrator has it by
	// default; it is extended each third.
	leaseFor   = 30 * time.Second
	leaseShare = 3
	// killGrace is how long a handler that was asked to stop may take.
	killGrace = 5 * time.Second
	// closeWithin is how long the process may take to leave in the end.
	closeWithin = 5 * time.Second
)

// Plan is the job and the binary to run it in.
type Plan struct {
	Plugin   host.Config
	Settings host.Settings
	// Type may be empty when the binary serves one job type.
	Type    string
	Payload json.RawMessage
	// Attempt counts from 1.
	Attempt int
	// Checkpoint is what an earlier attempt saved; nil for none.
	Checkpoint json.RawMessage
	// Timeout bounds the attempt; 0 for the handler's own.
	Timeout time.Duration
	// Progress and Log hear of what the handler reports.
	Progress func(json.RawMessage)
	Log      func(job.LogLine)
	// Told hears that the handler was asked to stop, or is to be killed.
	Told func(what string)
}

// Result is how the attempt ended.
type Result struct {
	JobType    string          `json:"jobType"`
	Outcome    job.OutcomeKind `json:"outcome"`
	Result     json.RawMessage `json:"result,omitempty"`
	Code       string          `json:"code,omitempty"`
	Message    string          `json:"message,omitempty"`
	Stack      string          `json:"stack,omitempty"`
	RetryAfter string          `json:"retryAfter,omitempty"`
	Progress   json.RawMessage `json:"progress,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	Attempt    int             `json:"attempt"`
	TookMs     int64           `json:"tookMs"`
}

// RefusedError says that the payload does not fit the schema of its job type.
type RefusedError struct {
	Type       string
	Violations []schema.Violation
}

func (e RefusedError) Error() string {
	lines := []string{"the schema of " + e.Type + " refuses the payload"}
	for _, v := range e.Violations {
		lines = append(lines, "#/payload"+v.Pointer+": "+v.Message)
	}
	return strings.Join(lines, "\n  ")
}

// ChoiceError says that the job type is not one that the binary serves.
type ChoiceError struct{ text string }

func (e ChoiceError) Error() string { return e.text }

// Run runs the job to its end. When stop ends, the handler is asked to stop,
// and when kill does, it is killed; either way there is a result. Its error says
// that the job was not run.
func Run(stop, kill context.Context, plan Plan) (Result, error) {
	handlers, err := host.Start(stop, plan.Settings, []host.Config{plan.Plugin})
	if err != nil {
		return Result{}, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(kill, closeWithin)
		defer cancel()
		_ = handlers.Close(ctx)
	}()
	if err := awaitUp(stop, handlers); err != nil {
		return Result{}, err
	}
	spec, err := choose(handlers.Types(), plan.Type)
	if err != nil {
		return Result{}, err
	}
	if err := check(spec, plan.Payload); err != nil {
		return Result{}, err
	}
	return plan.run(stop, kill, handlers, spec)
}

// awaitUp waits until the process is up, or has failed once.
func awaitUp(ctx context.Context, handlers *host.Host) error {
	for {
		status := handlers.Status()[0]
		switch {
		case status.State == job.PluginUp:
			return nil
		case status.LastError != "":
			return fmt.Errorf("%s does not come up: %s", status.Name, status.LastError)
		}
		select {
		case <-handlers.Changed():
		case <-time.After(100 * time.Millisecond): // a failed launch need not be a change
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func choose(specs []job.TypeSpec, jobType string) (job.TypeSpec, error) {
	var names []string
	for _, spec := range specs {
		if spec.Type == jobType || jobType == "" && len(specs) == 1 {
			return spec, nil
		}
		names = append(names, spec.Type)
	}
	if jobType == "" {
		return job.TypeSpec{}, ChoiceError{"--type is missing: the binary serves " + strings.Join(names, ", ")}
	}
	return job.TypeSpec{}, ChoiceError{fmt.Sprintf("--type %s: the binary serves %s", jobType, strings.Join(names, ", "))}
}

func check(spec job.TypeSpec, payload json.RawMessage) error {
	if len(spec.Schema) == 0 {
		return nil
	}
	compiled, err := schema.Compile(spec.Schema)
	if err != nil {
		return fmt.Errorf("schema of %s: %w", spec.Type, err)
	}
	if violations := compiled.Check(payload); len(violations) > 0 {
		return RefusedError{Type: spec.Type, Violations: violations}
	}
	return nil
}

func (p Plan) assignment(spec job.TypeSpec) job.Assignment {
	timeout := job.DefaultTimeout
	if spec.Timeout > 0 {
		timeout = spec.Timeout
	}
	if p.Timeout > 0 {
		timeout = p.Timeout
	}
	attempts := job.DefaultMaxAttempts
	if spec.MaxAttempts > 0 {
		attempts = spec.MaxAttempts
	}
	return job.Assignment{
		Claimed: job.Claimed{
			Lease: job.Lease{JobID: job.ID(uuid.New()), Fence: int64(p.Attempt)},
			Type:  spec.Type, Tenant: job.DefaultTenant, Payload: p.Payload, Checkpoint: p.Checkpoint,
			Attempt: p.Attempt, MaxAttempts: max(attempts, p.Attempt), Timeout: timeout, CreatedAt: time.Now(),
		},
		LeaseFor: leaseFor,
	}
}

func (p Plan) run(stop, kill context.Context, handlers *host.Host, spec job.TypeSpec) (Result, error) {
	assignment := p.assignment(spec)
	heard := &reporter{plan: p, ended: make(chan job.Outcome, 1)}
	begun := time.Now()
	attempt, err := handlers.Start(p.Plugin.Name, assignment, heard)
	if err != nil {
		return Result{}, fmt.Errorf("the process has ended again: %w", errors.Join(err, lastError(handlers)))
	}
	outcome := p.watch(stop, kill, attempt, assignment.Timeout, heard.ended)
	result := Result{
		JobType: spec.Type, Outcome: outcome.Kind, Result: outcome.Result,
		Code: outcome.Code, Message: outcome.Message, Stack: outcome.Stack,
		Progress: heard.lastProgress, Checkpoint: heard.lastCheckpoint,
		Attempt: p.Attempt, TookMs: time.Since(begun).Milliseconds(),
	}
	if outcome.RetryAfter != nil {
		result.RetryAfter = outcome.RetryAfter.String()
	}
	return result, nil
}

func lastError(handlers *host.Host) error {
	if said := handlers.Status()[0].LastError; said != "" {
		return errors.New(said)
	}
	return nil
}

// watch does for the attempt what a worker does: it extends the lease, asks the
// handler to stop when its time is up or somebody wants it to, and kills it when
// it does not.
func (p Plan) watch(stop, kill context.Context, attempt job.Run, timeout time.Duration, ended <-chan job.Outcome) job.Outcome {
	extend := time.NewTicker(leaseFor / leaseShare)
	defer extend.Stop()
	timeIsUp, stopped, killed := time.After(timeout), stop.Done(), kill.Done()
	var graceIsOver <-chan time.Time
	for {
		select {
		case outcome := <-ended:
			return outcome
		case <-extend.C:
			attempt.Extend(leaseFor)
		case <-timeIsUp:
			timeIsUp, graceIsOver = nil, time.After(killGrace)
			p.Told(fmt.Sprintf("its time of %s is up: the handler is asked to stop", timeout))
			attempt.Cancel(job.CancelTimeout)
		case <-stopped:
			stopped, graceIsOver = nil, time.After(killGrace)
			p.Told("the handler is asked to stop; once more kills it")
			attempt.Cancel(job.CancelRequested)
		case <-graceIsOver:
			graceIsOver = nil
			p.Told(fmt.Sprintf("it has not stopped within %s, and is killed", killGrace))
			attempt.Kill()
		case <-killed:
			killed = nil
			p.Told("it is killed")
			attempt.Kill()
		}
	}
}

// reporter keeps what comes of the attempt. Its methods are called one after
// another; what it keeps may be read once it has ended.
type reporter struct {
	plan                         Plan
	lastProgress, lastCheckpoint json.RawMessage
	ended                        chan job.Outcome
}

var _ job.Reporter = (*reporter)(nil)

// Began implements job.Reporter.
func (r *reporter) Began() {}

// Finished implements job.Reporter.
func (r *reporter) Finished(outcome job.Outcome) { r.ended <- outcome }

// Progress implements job.Reporter.
func (r *reporter) Progress(value json.RawMessage) <-chan struct{} {
	r.lastProgress = value
	r.plan.Progress(value)
	return nil
}

// Log implements job.Reporter.
func (r *reporter) Log(line job.LogLine) { r.plan.Log(line) }

// Checkpoint implements job.Reporter.
func (r *reporter) Checkpoint(value json.RawMessage) <-chan struct{} {
	r.lastCheckpoint = value
	return nil
}

package author

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/job/schema"
)

const (
	// leaseFor is the lease of the attempt, an orchestrator's default.
	leaseFor    = 30 * time.Second
	extendEvery = leaseFor / 3
	// killGrace is how long a handler that was asked to stop may take.
	killGrace = 5 * time.Second
	// closeWithin is how long the process may take to exit at the end.
	closeWithin = 5 * time.Second
)

// trial is one job, run without a database. The methods of its job.Reporter are
// called one after another.
type trial struct {
	// jobType may be empty when the plugin has one handler.
	jobType             string
	payload, checkpoint json.RawMessage
	// attempt counts from 1.
	attempt int
	// timeout bounds the attempt; 0 for the handler's own.
	timeout time.Duration
	// line shows the progress, and logs above it.
	line     *show.Line
	progress func(json.RawMessage)
}

// trialResult is how the attempt ended.
type trialResult struct {
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

// run runs the job to its end. When stop ends, the handler is asked to stop,
// and when kill does, it is killed; either way there is a result. An error means
// that the job was not run.
func (t trial) run(stop, kill context.Context, settings host.Settings, launch launch) (trialResult, error) {
	plugin := host.Config{Name: filepath.Base(launch.path), Path: launch.path, Args: launch.args, Env: launch.env, Processes: 1, StartTimeout: launch.startTimeout}
	plugins, err := host.Start(stop, settings, []host.Config{plugin})
	if err != nil {
		return trialResult{}, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(kill, closeWithin)
		defer cancel()
		_ = plugins.Close(ctx)
	}()
	if err := awaitUp(stop, plugins); err != nil {
		return trialResult{}, err
	}
	spec, err := choose(plugins.Types(), t.jobType)
	if err != nil {
		return trialResult{}, err
	}
	if err := checkPayload(spec, t.payload); err != nil {
		return trialResult{}, err
	}
	assignment := t.assignment(spec)
	reports := &reports{trial: t, ended: make(chan job.Outcome, 1)}
	begun := time.Now()
	attempt, err := plugins.Start(plugin.Name, assignment, reports)
	if err != nil {
		return trialResult{}, fmt.Errorf("the process has ended again: %w", errors.Join(err, lastError(plugins)))
	}
	outcome := t.watch(stop, kill, attempt, assignment.Timeout, reports.ended)
	result := trialResult{
		JobType: spec.Type, Outcome: outcome.Kind, Result: outcome.Result,
		Code: outcome.Code, Message: outcome.Message, Stack: outcome.Stack,
		Progress: reports.progress, Checkpoint: reports.checkpoint,
		Attempt: t.attempt, TookMs: time.Since(begun).Milliseconds(),
	}
	if outcome.RetryAfter != nil {
		result.RetryAfter = outcome.RetryAfter.String()
	}
	return result, nil
}

// awaitUp waits until the process is up, or has failed once.
func awaitUp(ctx context.Context, plugins *host.Host) error {
	for {
		status := plugins.Status()[0]
		switch {
		case status.State == job.PluginUp:
			return nil
		case status.LastError != "":
			return fmt.Errorf("%s does not come up: %s", status.Name, status.LastError)
		}
		select {
		case <-plugins.Changed():
		case <-time.After(100 * time.Millisecond): // a failed launch need not be a change
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func lastError(plugins *host.Host) error {
	if said := plugins.Status()[0].LastError; said != "" {
		return errors.New(said)
	}
	return nil
}

func choose(specs []job.TypeSpec, jobType string) (job.TypeSpec, error) {
	var names []string
	for _, spec := range specs {
		if spec.Type == jobType || jobType == "" && len(specs) == 1 {
			return spec, nil
		}
		names = append(names, spec.Type)
	}
	problem := "--type " + jobType
	if jobType == "" {
		problem = "--type is missing"
	}
	return job.TypeSpec{}, command.Misused(fmt.Errorf("%s: the binary serves %s", problem, strings.Join(names, ", ")))
}

// checkPayload returns an error that lists what the schema of the job type
// refuses.
func checkPayload(spec job.TypeSpec, payload json.RawMessage) error {
	if len(spec.Schema) == 0 {
		return nil
	}
	compiled, err := schema.Compile(spec.Schema)
	if err != nil {
		return fmt.Errorf("schema of %s: %w", spec.Type, err)
	}
	violations := compiled.Check(payload)
	if len(violations) == 0 {
		return nil
	}
	text := "the schema of " + spec.Type + " refuses the payload"
	for _, v := range violations {
		text += "\n  #/payload" + v.Pointer + ": " + v.Message
	}
	return errors.New(text)
}

func (t trial) assignment(spec job.TypeSpec) job.Assignment {
	timeout := job.DefaultTimeout
	if spec.Timeout > 0 {
		timeout = spec.Timeout
	}
	if t.timeout > 0 {
		timeout = t.timeout
	}
	attempts := job.DefaultMaxAttempts
	if spec.MaxAttempts > 0 {
		attempts = spec.MaxAttempts
	}
	return job.Assignment{
		Claimed: job.Claimed{
			Lease: job.Lease{JobID: job.ID(uuid.New()), Fence: int64(t.attempt)},
			Type:  spec.Type, Tenant: job.DefaultTenant, Payload: t.payload, Checkpoint: t.checkpoint,
			Attempt: t.attempt, MaxAttempts: max(attempts, t.attempt), Timeout: timeout, CreatedAt: time.Now(),
		},
		LeaseFor: leaseFor,
	}
}

// watch does for the attempt what a worker does: it extends the lease, asks the
// handler to stop on a timeout or a signal, and kills it when it does not stop.
func (t trial) watch(stop, kill context.Context, attempt job.Run, timeout time.Duration, ended <-chan job.Outcome) job.Outcome {
	extend := time.NewTicker(extendEvery)
	defer extend.Stop()
	timedOut, stopped, killed := time.After(timeout), stop.Done(), kill.Done()
	var graceOver <-chan time.Time
	for {
		select {
		case outcome := <-ended:
			return outcome
		case <-extend.C:
			attempt.Extend(leaseFor)
		case <-timedOut:
			timedOut, graceOver = nil, time.After(killGrace)
			t.line.Above(fmt.Sprintf("the timeout of %s is over: asking the handler to stop\n", timeout))
			attempt.Cancel(job.CancelTimeout)
		case <-stopped:
			stopped, graceOver = nil, time.After(killGrace)
			t.line.Above("asking the handler to stop; press Ctrl-C again to kill it\n")
			attempt.Cancel(job.CancelRequested)
		case <-graceOver:
			graceOver = nil
			t.line.Above(fmt.Sprintf("the handler has not stopped within %s: killing it\n", killGrace))
			attempt.Kill()
		case <-killed:
			killed = nil
			t.line.Above("killing the handler\n")
			attempt.Kill()
		}
	}
}

// reports keeps what the attempt reports. Read it once the attempt has ended.
type reports struct {
	trial                trial
	progress, checkpoint json.RawMessage
	ended                chan job.Outcome
}

var _ job.Reporter = (*reports)(nil)

// Began implements job.Reporter.
func (r *reports) Began() {}

// Finished implements job.Reporter.
func (r *reports) Finished(outcome job.Outcome) { r.ended <- outcome }

// Progress implements job.Reporter.
func (r *reports) Progress(value json.RawMessage) <-chan struct{} {
	r.progress = value
	r.trial.progress(value)
	return nil
}

// Log implements job.Reporter.
func (r *reports) Log(line job.LogLine) { showLog(r.trial.line, line) }

// Checkpoint implements job.Reporter.
func (r *reports) Checkpoint(value json.RawMessage) <-chan struct{} {
	r.checkpoint = value
	return nil
}

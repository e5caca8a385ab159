package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// minCap leaves room for what every handler needs, such as a percentage.
const minCap = 1 << 10

// Jobs is the configuration of job types.
type Jobs struct {
	AcceptUnknownTypes bool            `koanf:"accept_unknown_types"`
	MaxProgressBytes   int             `koanf:"max_progress_bytes"`
	MaxCheckpointBytes int             `koanf:"max_checkpoint_bytes"`
	MaxResultBytes     int             `koanf:"max_result_bytes"`
	MaxFollowUps       int             `koanf:"max_follow_ups"`
	MaxFollowUpBytes   int             `koanf:"max_follow_up_bytes"`
	Default            Type            `koanf:"default"`
	Types              map[string]Type `koanf:"types"`
}

// Type is the configuration of one job type. Under jobs.default every field is set.
type Type struct {
	MaxAttempts *int           `koanf:"max_attempts"`
	MaxCrashes  *int           `koanf:"max_crashes"`
	Timeout     *time.Duration `koanf:"timeout"`
	Commit      *Commit        `koanf:"commit"`
	CallbackURL *string        `koanf:"callback_url" show:"no"`
	Retry       Retry          `koanf:"retry"`
}

// Commit says what the answer to a submission waits for.
type Commit string

const (
	// Durable waits until the job is on disk.
	Durable Commit = "durable"
	// Fast does not wait.
	Fast Commit = "fast"
)

// Retry overrides parts of a retry policy.
type Retry struct {
	Backoff               *job.Backoff   `koanf:"backoff"`
	InitialDelay          *time.Duration `koanf:"initial_delay"`
	Factor                *float64       `koanf:"factor"`
	MaxDelay              *time.Duration `koanf:"max_delay"`
	JitterMin             *float64       `koanf:"jitter_min"`
	JitterMax             *float64       `koanf:"jitter_max"`
	ImmediateAfterTimeout *bool          `koanf:"immediate_after_timeout"`
}

// Resolve completes what a handler declares about a job type: jobs.types
// overrides the handler, which overrides jobs.default. A field that the handler
// did not declare is zero; no field of the result is.
//
// Where jobs.types and the handler's retry policy contradict each other, as with
// an initial delay above the maximum, the handler's policy is ignored.
func (c Jobs) Resolve(declared job.TypeSpec) job.TypeSpec {
	asked := c.Types[declared.Type]
	spec := declared
	if declared.MaxAttempts == 0 {
		spec.MaxAttempts = *c.Default.MaxAttempts
	}
	if declared.Timeout == 0 {
		spec.Timeout = *c.Default.Timeout
	}
	spec.MaxAttempts = or(asked.MaxAttempts, spec.MaxAttempts)
	spec.Timeout = or(asked.Timeout, spec.Timeout)

	byDefault := c.Default.Retry.over(job.RetryPolicy{})
	spec.Retry = asked.Retry.over(byDefault)
	if declared.Retry.Backoff != "" {
		if policy := asked.Retry.over(declared.Retry); policy.Validate() == nil {
			spec.Retry = policy
		}
	}
	return spec
}

// Fast reports whether a submission of the type is answered before it is on disk.
// Handlers have no say in this.
func (c Jobs) Fast(jobType string) bool {
	return or(c.Types[jobType].Commit, *c.Default.Commit) == Fast
}

// CallbackURL is told of the ends of jobs of the type whose submissions name none; empty for
// nobody. Nobody is told of the ends of deliveries.
func (c Jobs) CallbackURL(jobType string) string {
	if jobType == job.DeliveryType {
		return ""
	}
	return or(c.Types[jobType].CallbackURL, or(c.Default.CallbackURL, ""))
}

// MaxCrashes is how many plugin processes in a row may die under a job of the
// type. Handlers have no say in this either.
func (c Jobs) MaxCrashes(jobType string) int {
	return or(c.Types[jobType].MaxCrashes, *c.Default.MaxCrashes)
}

// Caps are the largest values that handlers may report.
func (c Jobs) Caps() host.Caps {
	return host.Caps{
		Progress: c.MaxProgressBytes, Checkpoint: c.MaxCheckpointBytes, Result: c.MaxResultBytes,
		FollowUps: c.MaxFollowUps, FollowUpBytes: c.MaxFollowUpBytes,
	}
}

// over returns the policy, with the settings that c has in place of its own.
func (c Retry) over(policy job.RetryPolicy) job.RetryPolicy {
	return job.RetryPolicy{
		Backoff: or(c.Backoff, policy.Backoff), InitialDelay: or(c.InitialDelay, policy.InitialDelay),
		Factor: or(c.Factor, policy.Factor), MaxDelay: or(c.MaxDelay, policy.MaxDelay),
		JitterMin: or(c.JitterMin, policy.JitterMin), JitterMax: or(c.JitterMax, policy.JitterMax),
		ImmediateAfterTimeout: or(c.ImmediateAfterTimeout, policy.ImmediateAfterTimeout),
	}
}

func or[T any](set *T, otherwise T) T {
	if set != nil {
		return *set
	}
	return otherwise
}

// check rejects what no handler could run under.
func (c Jobs) check() error {
	if err := c.Default.check(); err != nil {
		return fmt.Errorf("jobs.default%w", err)
	}
	if err := c.Default.Retry.over(job.RetryPolicy{}).Validate(); err != nil {
		return fmt.Errorf("jobs.default.retry: %w", err)
	}
	for name, bytes := range map[string]int{
		"max_progress_bytes": c.MaxProgressBytes, "max_checkpoint_bytes": c.MaxCheckpointBytes, "max_result_bytes": c.MaxResultBytes,
	} {
		if bytes < minCap || bytes > host.MaxCap {
			return fmt.Errorf("jobs.%s: %d is not from %d to %d", name, bytes, minCap, host.MaxCap)
		}
	}
	if c.MaxFollowUps < 1 || c.MaxFollowUps > host.MaxFollowUps {
		return fmt.Errorf("jobs.max_follow_ups: %d is not from 1 to %d", c.MaxFollowUps, host.MaxFollowUps)
	}
	if c.MaxFollowUpBytes < minCap || c.MaxFollowUpBytes > host.MaxFollowUpBytes {
		return fmt.Errorf("jobs.max_follow_up_bytes: %d is not from %d to %d", c.MaxFollowUpBytes, minCap, host.MaxFollowUpBytes)
	}
	for name, asked := range c.Types {
		at := key{"jobs", "types", name}
		if err := asked.check(); err != nil {
			return fmt.Errorf("%s%w", at, err)
		}
		if err := c.Resolve(job.TypeSpec{Type: name}).Retry.Validate(); err != nil {
			return fmt.Errorf("%s.retry: %w", at, err)
		}
	}
	return nil
}

func (c Type) check() error {
	if c.MaxAttempts != nil && (*c.MaxAttempts < 1 || *c.MaxAttempts > 1000) {
		return fmt.Errorf(".max_attempts: %d is not from 1 to 1000", *c.MaxAttempts)
	}
	if c.MaxCrashes != nil && (*c.MaxCrashes < 1 || *c.MaxCrashes > 1000) {
		return fmt.Errorf(".max_crashes: %d is not from 1 to 1000", *c.MaxCrashes)
	}
	if c.Timeout != nil && (*c.Timeout < time.Millisecond || *c.Timeout > 24*time.Hour) {
		return errors.New(".timeout: is not from 1ms to 24h")
	}
	if c.Commit != nil && *c.Commit != Durable && *c.Commit != Fast {
		return fmt.Errorf(".commit: %q is not one of durable, fast", *c.Commit)
	}
	if c.CallbackURL != nil && *c.CallbackURL != "" {
		if err := job.CheckCallbackURL(*c.CallbackURL); err != nil {
			return fmt.Errorf(".callback_url: %w", err)
		}
	}
	return nil
}

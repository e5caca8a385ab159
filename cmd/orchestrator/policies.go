package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// resolve lays the configuration over what a handler declares about a type:
// jobs.types wins over the handler, the handler over jobs.default. What the
// handler did not declare is zero in the spec it is given, and nothing is in
// the one it returns.
//
// Where jobs.types and the handler's own retry policy make no sense together,
// such as a base above the cap, the handler's policy is left out.
func (c jobsConfig) resolve(declared job.TypeSpec) job.TypeSpec {
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

// fast reports whether a submission of the type is answered before it is on
// disk. That is for whoever accepts it to say, not for its handler.
func (c jobsConfig) fast(jobType string) bool {
	return or(c.Types[jobType].Commit, *c.Default.Commit) == fast
}

// maxCrashes is how many processes may die under a job of the type. That is not
// for its handler to say either.
func (c jobsConfig) maxCrashes(jobType string) int {
	return or(c.Types[jobType].MaxCrashes, *c.Default.MaxCrashes)
}

// over returns the policy with what is set replaced.
func (c retryConfig) over(policy job.RetryPolicy) job.RetryPolicy {
	return job.RetryPolicy{
		Backoff: or(c.Backoff, policy.Backoff), InitialDelay: or(c.InitialDelay, policy.InitialDelay),
		Factor: or(c.Factor, policy.Factor), MaxDelay: or(c.MaxDelay, policy.MaxDelay),
		JitterMin: or(c.JitterMin, policy.JitterMin), JitterMax: or(c.JitterMax, policy.JitterMax),
		ImmediateAfterTimeout: or(c.AtOnceAfterTimeout, policy.ImmediateAfterTimeout),
	}
}

func or[T any](set *T, otherwise T) T {
	if set != nil {
		return *set
	}
	return otherwise
}

// check refuses what no handler could run under.
func (c jobsConfig) check() error {
	if err := c.Default.check(); err != nil {
		return fmt.Errorf("jobs.default%w", err)
	}
	if err := c.Default.Retry.over(job.RetryPolicy{}).Validate(); err != nil {
		return fmt.Errorf("jobs.default.retry: %w", err)
	}
	if err := c.checkCaps(); err != nil {
		return fmt.Errorf("jobs.%w", err)
	}
	for name, asked := range c.Types {
		at := key{"jobs", "types", name}
		if err := asked.check(); err != nil {
			return fmt.Errorf("%s%w", at, err)
		}
		if err := c.resolve(job.TypeSpec{Type: name}).Retry.Validate(); err != nil {
			return fmt.Errorf("%s.retry: %w", at, err)
		}
	}
	return nil
}

func (c typeConfig) check() error {
	if c.MaxAttempts != nil && (*c.MaxAttempts < 1 || *c.MaxAttempts > 1000) {
		return fmt.Errorf(".max_attempts: %d is not from 1 to 1000", *c.MaxAttempts)
	}
	if c.MaxCrashes != nil && (*c.MaxCrashes < 1 || *c.MaxCrashes > 1000) {
		return fmt.Errorf(".max_crashes: %d is not from 1 to 1000", *c.MaxCrashes)
	}
	if c.Timeout != nil && (*c.Timeout < time.Millisecond || *c.Timeout > 24*time.Hour) {
		return errors.New(".timeout: is not from 1ms to 24h")
	}
	if c.Commit != nil && *c.Commit != durable && *c.Commit != fast {
		return fmt.Errorf(".commit: %q is not one of durable, fast", *c.Commit)
	}
	return nil
}

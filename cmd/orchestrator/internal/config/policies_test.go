package config

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// policyOf is the policy of SEND_EMAIL under a configuration.
func policyOf(t *testing.T, yaml string) job.RetryPolicy {
	t.Helper()
	cfg, err := Load(Sources{File: writeConfig(t, yaml)})
	require.NoError(t, err)
	return cfg.Jobs.Resolve(job.TypeSpec{Type: "SEND_EMAIL"}).Retry
}

func seconds(d time.Duration) float64 { return d.Seconds() }

func TestDoublingWithATenthOfJitterCanBeConfigured(t *testing.T) {
	// delay = base · 2^n + U(0, 10 %) with base 5 s and n retries counted from 1.
	policy := policyOf(t, `
jobs: {types: {SEND_EMAIL: {retry: {
  backoff: exponential, initial_delay: 10s, factor: 2, max_delay: 24h, jitter_min: 1, jitter_max: 1.1}}}}`)
	for n := 1; n <= 12; n++ {
		delay := 5 * math.Pow(2, float64(n))
		require.InDelta(t, delay, seconds(policy.Delay(n, 0)), 1e-6)
		require.InDelta(t, delay*1.05, seconds(policy.Delay(n, 0.5)), 1e-6)
		require.InDelta(t, delay*1.1, seconds(policy.Delay(n, 1)), 1e-6)
	}
}

func TestTriplingUpToFiveMinutesCanBeConfigured(t *testing.T) {
	// delay = min(300 s, base · 3^(n−1)) · U(0.7, 1.0) with base 2 s.
	policy := policyOf(t, `
jobs: {types: {SEND_EMAIL: {retry: {
  backoff: exponential, initial_delay: 2s, factor: 3, max_delay: 300s, jitter_min: 0.7, jitter_max: 1.0}}}}`)
	for n := 1; n <= 20; n++ {
		delay := math.Min(300, 2*math.Pow(3, float64(n-1)))
		require.InDelta(t, delay*0.7, seconds(policy.Delay(n, 0)), 1e-6)
		require.InDelta(t, delay*0.85, seconds(policy.Delay(n, 0.5)), 1e-6)
		require.InDelta(t, delay, seconds(policy.Delay(n, 1)), 1e-6)
	}
}

func TestRetryAtOnceAfterATimeoutCanBeConfigured(t *testing.T) {
	policy := policyOf(t, `jobs: {default: {retry: {immediate_after_timeout: true}}}`)
	at := job.History{Attempt: 1, MaxAttempts: job.DefaultMaxAttempts}
	for attempt := 1; attempt <= 3; attempt++ {
		at.Attempt = attempt
		decision := job.Decide(policy, at, job.Outcome{Kind: job.Timeout}, 0.5)
		require.Equal(t, job.Retry, decision.To)
		require.Zero(t, decision.Delay)
		require.NotZero(t, job.Decide(policy, at, job.Outcome{Kind: job.Failure}, 0.5).Delay)
	}
	at.Attempt = 4
	require.Equal(t, job.Dead, job.Decide(policy, at, job.Outcome{Kind: job.Timeout}, 0.5).To, "three retries")
}

func TestTypesOverrideTheHandlerWhichOverridesTheDefault(t *testing.T) {
	cfg, err := Load(Sources{File: writeConfig(t, `
jobs:
  default: {max_attempts: 7, timeout: 7s, retry: {initial_delay: 7s}}
  types:
    ASKED: {timeout: 1s, retry: {initial_delay: 4s}}
    ODD: {retry: {initial_delay: 1m}}
`)})
	require.NoError(t, err)
	declared := job.RetryPolicy{Backoff: job.Fixed, InitialDelay: 2 * time.Second, JitterMin: 1, JitterMax: 1}
	capped := job.RetryPolicy{Backoff: job.Exponential, InitialDelay: time.Second, Factor: 2, MaxDelay: 2 * time.Second, JitterMin: 1, JitterMax: 1}

	silent := cfg.Jobs.Resolve(job.TypeSpec{Type: "A", Plugin: "p", Version: "v", Schema: []byte("{}")})
	byDefault := job.DefaultRetryPolicy()
	byDefault.InitialDelay = 7 * time.Second
	require.Equal(t, job.TypeSpec{
		Type: "A", Plugin: "p", Version: "v", Schema: []byte("{}"), MaxAttempts: 7, Timeout: 7 * time.Second, Retry: byDefault,
	}, silent)

	spoken := cfg.Jobs.Resolve(job.TypeSpec{Type: "A", MaxAttempts: 2, Timeout: 3 * time.Second, Retry: declared})
	require.Equal(t, job.TypeSpec{Type: "A", MaxAttempts: 2, Timeout: 3 * time.Second, Retry: declared}, spoken)

	asked := cfg.Jobs.Resolve(job.TypeSpec{Type: "ASKED", MaxAttempts: 2, Timeout: 3 * time.Second, Retry: declared})
	want := declared
	want.InitialDelay = 4 * time.Second
	require.Equal(t, job.TypeSpec{Type: "ASKED", MaxAttempts: 2, Timeout: time.Second, Retry: want}, asked)

	odd := cfg.Jobs.Resolve(job.TypeSpec{Type: "ODD", Retry: capped})
	require.NoError(t, odd.Retry.Validate(), "a base above the handler's cap leaves out the handler's policy")
	require.Equal(t, time.Minute, odd.Retry.InitialDelay)
}

func TestSubmissionsAreDurableUnlessTheirTypeIsFast(t *testing.T) {
	for file, fast := range map[string]map[string]bool{
		"":                                   {"A": false, "B": false},
		"jobs: {types: {A: {commit: fast}}}": {"A": true, "B": false},
		"jobs: {types: {A: {timeout: 1s}}}":  {"A": false},
		"jobs: {default: {commit: fast}}":    {"A": true},
		"jobs: {types: {A: {commit: durable}}, default: {commit: fast}}": {"A": false, "B": true},
	} {
		cfg, err := Load(Sources{File: writeConfig(t, file)})
		require.NoError(t, err)
		for jobType, want := range fast {
			require.Equal(t, want, cfg.Jobs.Fast(jobType), "%s of %s", jobType, file)
		}
	}
}

func TestATypeMayAllowMoreCrashesThanOthers(t *testing.T) {
	cfg, err := Load(Sources{File: writeConfig(t, "jobs: {types: {A: {max_crashes: 5}, B: {timeout: 1s}}}")})
	require.NoError(t, err)
	require.Equal(t, 5, cfg.Jobs.MaxCrashes("A"))
	require.Equal(t, 3, cfg.Jobs.MaxCrashes("B"))
	require.Equal(t, 3, cfg.Jobs.MaxCrashes("C"))
}

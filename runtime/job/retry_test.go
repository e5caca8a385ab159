package job_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestInvalidPoliciesAreRefusedWithAReason(t *testing.T) {
	cases := map[string]struct {
		change func(*job.RetryPolicy)
		says   string // empty for a policy that is fine
	}{
		"the default":                  {func(*job.RetryPolicy) {}, ""},
		"no backoff named":             {func(p *job.RetryPolicy) { p.Backoff = "" }, `backoff ""`},
		"an unknown backoff":           {func(p *job.RetryPolicy) { p.Backoff = "linear" }, `backoff "linear"`},
		"initial delay of zero":        {func(p *job.RetryPolicy) { p.InitialDelay = 0 }, "initial delay 0s"},
		"initial delay below zero":     {func(p *job.RetryPolicy) { p.InitialDelay = -time.Second }, "initial delay -1s"},
		"factor below one":             {func(p *job.RetryPolicy) { p.Factor = 0.99 }, "factor 0.99"},
		"factor of one":                {func(p *job.RetryPolicy) { p.Factor = 1 }, ""},
		"factor not a number":          {func(p *job.RetryPolicy) { p.Factor = math.NaN() }, "factor NaN"},
		"factor without end":           {func(p *job.RetryPolicy) { p.Factor = math.Inf(1) }, "factor +Inf"},
		"maximum below initial delay":  {func(p *job.RetryPolicy) { p.MaxDelay = p.InitialDelay - 1 }, "maximum delay 999.999999ms"},
		"cap equal to base":            {func(p *job.RetryPolicy) { p.MaxDelay = p.InitialDelay }, ""},
		"jitter below zero":            {func(p *job.RetryPolicy) { p.JitterMin = -0.1 }, "jitter window -0.1..1.1"},
		"jitter upside down":           {func(p *job.RetryPolicy) { p.JitterMin = 1.2 }, "jitter window 1.2..1.1"},
		"jitter not a number":          {func(p *job.RetryPolicy) { p.JitterMin = math.NaN() }, "jitter window NaN"},
		"jitter without end":           {func(p *job.RetryPolicy) { p.JitterMax = math.Inf(1) }, "jitter window 0.9..+Inf"},
		"jitter down to nothing":       {func(p *job.RetryPolicy) { p.JitterMin = 0 }, ""},
		"fixed needs an initial delay": {func(p *job.RetryPolicy) { *p = job.RetryPolicy{Backoff: job.Fixed} }, "initial delay 0s"},
		"fixed needs nothing more":     {func(p *job.RetryPolicy) { *p = job.RetryPolicy{Backoff: job.Fixed, InitialDelay: 1} }, ""},
		"immediate needs nothing":      {func(p *job.RetryPolicy) { *p = job.RetryPolicy{Backoff: job.Immediate} }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			policy := job.DefaultRetryPolicy()
			c.change(&policy)
			if c.says == "" {
				require.NoError(t, policy.Validate())
				return
			}
			require.ErrorContains(t, policy.Validate(), c.says)
		})
	}
}

func TestShapesOfBackoff(t *testing.T) {
	cases := []struct {
		policy job.RetryPolicy
		want   []time.Duration
	}{
		{doubling, seconds(1, 2, 4, 8, 16, 32, 60, 60, 60)},
		{job.RetryPolicy{Backoff: job.Exponential, InitialDelay: 2 * time.Second, Factor: 1, MaxDelay: time.Minute, JitterMin: 1, JitterMax: 1}, seconds(2, 2, 2, 2)},
		{job.RetryPolicy{Backoff: job.Exponential, InitialDelay: time.Minute, Factor: 9, MaxDelay: time.Minute, JitterMin: 1, JitterMax: 1}, seconds(60, 60, 60)},
		{job.RetryPolicy{Backoff: job.Fixed, InitialDelay: 5 * time.Second, JitterMin: 1, JitterMax: 1}, seconds(5, 5, 5, 5)},
		{job.RetryPolicy{Backoff: job.Immediate}, seconds(0, 0, 0)},
	}
	for _, c := range cases {
		require.NoError(t, c.policy.Validate())
		for i, want := range c.want {
			require.Equal(t, want, c.policy.Delay(i+1, 0.5), "%+v retry %d", c.policy, i+1)
		}
	}
}

func TestJitterPicksAPlaceInItsWindow(t *testing.T) {
	policy := job.RetryPolicy{Backoff: job.Fixed, InitialDelay: 10 * time.Second, JitterMin: 0.5, JitterMax: 1.5}
	require.Equal(t, 5*time.Second, policy.Delay(1, 0))
	require.Equal(t, 10*time.Second, policy.Delay(1, 0.5))
	require.Equal(t, 15*time.Second, policy.Delay(1, 1))
}

// delay = base · 2^attempts, plus U(0, 10 %) of itself. The first failure has
// attempts = 1, so the policy's base, the wait before the first retry, is 2·base.
func TestSeedFormulaBaseTimesTwoToTheAttemptsPlusATenth(t *testing.T) {
	const base = 5 * time.Second
	policy := job.RetryPolicy{
		Backoff: job.Exponential, InitialDelay: 2 * base, Factor: 2, MaxDelay: math.MaxInt64 / 4,
		JitterMin: 1, JitterMax: 1.1,
	}
	require.NoError(t, policy.Validate())
	for attempts := 1; attempts <= 28; attempts++ {
		for _, u := range places() {
			delay := float64(base) * math.Pow(2, float64(attempts))
			formula := delay + u*0.1*delay
			requireFormula(t, formula, policy.Delay(attempts, u), attempts, u)
		}
	}
}

// delay = min(base · 3^(attempt−1), 300 s) · U(0.7, 1.0).
func TestSeedFormulaBaseTimesThreeToTheAttemptLessOneCappedAt300Seconds(t *testing.T) {
	const base = 2 * time.Second
	policy := job.RetryPolicy{
		Backoff: job.Exponential, InitialDelay: base, Factor: 3, MaxDelay: 300 * time.Second,
		JitterMin: 0.7, JitterMax: 1,
	}
	require.NoError(t, policy.Validate())
	for attempt := 1; attempt <= 600; attempt++ {
		for _, u := range places() {
			capped := min(float64(base)*math.Pow(3, float64(attempt-1)), float64(300*time.Second))
			formula := capped * (0.7 + 0.3*u)
			requireFormula(t, formula, policy.Delay(attempt, u), attempt, u)
		}
	}
}

func TestSeedFormulaImmediateAfterATimeout(t *testing.T) {
	policy := doubling
	policy.ImmediateAfterTimeout = true
	require.NoError(t, policy.Validate())
	for attempt := 1; attempt <= 100; attempt++ {
		for _, u := range places() {
			decision := job.Decide(policy, job.History{Attempt: attempt, MaxAttempts: 101}, ended(job.Timeout), u)
			require.Equal(t, job.Decision{To: job.Retry, Kind: job.Timeout, Attempt: attempt}, decision)
		}
	}
}

// A power that is taken before it is capped overflows: to infinity, which is
// no duration, or to a negative number of nanoseconds.
func FuzzDelayStaysBetweenZeroAndItsCap(f *testing.F) {
	for _, n := range []int{math.MinInt, -1, 0, 1, 2, 10, 63, 64, 1023, 1024, 1025, math.MaxInt32, math.MaxInt} {
		f.Add(n, int64(time.Second), 2.0, int64(5*time.Minute), 0.9, 1.1, 0.5)
		f.Add(n, int64(1), math.MaxFloat64, int64(math.MaxInt64), 0.0, math.MaxFloat64, 0.999)
		f.Add(n, int64(math.MaxInt64), 1.0000000000000002, int64(math.MaxInt64), 1.0, 1.0, 0.0)
	}
	f.Fuzz(func(t *testing.T, n int, base int64, factor float64, limit int64, jitterMin, jitterMax, jitter float64) {
		if math.IsNaN(jitter) || jitter < 0 || jitter >= 1 {
			jitter = 0.5
		}
		for _, backoff := range []job.Backoff{job.Exponential, job.Fixed, job.Immediate} {
			policy := job.RetryPolicy{
				Backoff: backoff, InitialDelay: time.Duration(base), Factor: factor, MaxDelay: time.Duration(limit),
				JitterMin: jitterMin, JitterMax: jitterMax,
			}
			if policy.Validate() != nil {
				continue
			}
			delay := policy.Delay(n, jitter)
			told := fmt.Sprintf("%+v retry %d jitter %g", policy, n, jitter)
			require.GreaterOrEqual(t, delay, time.Duration(0), told)
			highest := float64(policy.MaxDelay)
			if backoff == job.Fixed {
				highest = float64(policy.InitialDelay)
			}
			if backoff != job.Immediate {
				require.LessOrEqual(t, float64(delay), math.Nextafter(highest*jitterMax, math.Inf(1)), told)
			}
			if n < math.MaxInt && jitterMax < 1e6 {
				require.GreaterOrEqual(t, policy.Delay(n+1, jitter), delay, told)
			}
		}
	})
}

// requireFormula allows for the rounding of a few operations on floats.
func requireFormula(t *testing.T, formula float64, got time.Duration, n int, u float64) {
	t.Helper()
	require.InEpsilon(t, formula, float64(got), 1e-9, "n=%d u=%g", n, u)
}

// places are spread over [0, 1), its ends included.
func places() []float64 {
	all := []float64{0, math.Nextafter(1, 0)}
	for u := 0.01; u < 1; u += 0.0717 {
		all = append(all, u)
	}
	return all
}

func seconds(list ...int) []time.Duration {
	durations := make([]time.Duration, len(list))
	for i, s := range list {
		durations[i] = time.Duration(s) * time.Second
	}
	return durations
}

func TestTheStoredFormOfAPolicyStaysReadableAcrossVersions(t *testing.T) {
	policy := job.RetryPolicy{
		Backoff: job.Exponential, InitialDelay: time.Second, Factor: 2, MaxDelay: time.Minute,
		JitterMin: 0.5, JitterMax: 1.5, ImmediateAfterTimeout: true,
	}
	stored, err := json.Marshal(policy)
	require.NoError(t, err)
	require.JSONEq(t, `{"Backoff": "exponential", "Base": 1000000000, "Factor": 2, "Cap": 60000000000,
		"JitterMin": 0.5, "JitterMax": 1.5, "AtOnceAfterTimeout": true}`, string(stored))
	var read job.RetryPolicy
	require.NoError(t, json.Unmarshal(stored, &read))
	require.Equal(t, policy, read)
}

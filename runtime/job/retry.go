package job

import (
	"fmt"
	"math"
	"time"
)

// Backoff names the way a retry's delay grows.
type Backoff string

// The three shapes of backoff.
const (
	Exponential Backoff = "exponential"
	Fixed       Backoff = "fixed"
	Immediate   Backoff = "immediate"
)

// RetryPolicy says how long a job waits before its next attempt.
//
// For Exponential the delay before retry n, counted from 1, is
//
//	min(MaxDelay, InitialDelay · Factor^(n−1)) · U(JitterMin, JitterMax)
//
// where U is uniform. Fixed waits InitialDelay · U(JitterMin, JitterMax).
// Immediate does not wait.
//
// Its JSON is stored in the table job_types, where orchestrators of other
// versions read it: its keys do not change.
type RetryPolicy struct {
	Backoff      Backoff
	InitialDelay time.Duration `json:"Base"`
	Factor       float64
	MaxDelay     time.Duration `json:"Cap"`
	// JitterMin and JitterMax bound the factor by which the delay is multiplied:
	// 1 and 1.1 add up to 10 %; 0.7 and 1 take off up to 30 %; 1 and 1 leave it
	// alone.
	JitterMin float64
	JitterMax float64
	// ImmediateAfterTimeout retries an attempt that timed out without waiting,
	// whatever the backoff is for other failures.
	ImmediateAfterTimeout bool `json:"AtOnceAfterTimeout"`
}

// DefaultRetryPolicy waits about 1 s, 2 s, 4 s …, at most 5 min, give or take
// a tenth.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{
		Backoff: Exponential, InitialDelay: time.Second, Factor: 2, MaxDelay: 5 * time.Minute,
		JitterMin: 0.9, JitterMax: 1.1,
	}
}

// Default limits of a job whose handler and configuration set none: three
// retries after the first attempt, 30 s for each.
const (
	DefaultMaxAttempts = 4
	DefaultTimeout     = 30 * time.Second
)

// Validate reports what is wrong with the policy, in words for whoever
// configured it.
func (p RetryPolicy) Validate() error {
	switch p.Backoff {
	case Immediate:
		return nil
	case Exponential, Fixed:
	default:
		return fmt.Errorf("backoff %q is not one of exponential, fixed, immediate", p.Backoff)
	}
	switch {
	case p.InitialDelay <= 0:
		return fmt.Errorf("initial delay %s is not above zero", p.InitialDelay)
	case !finite(p.JitterMin) || !finite(p.JitterMax) || p.JitterMin < 0 || p.JitterMax < p.JitterMin:
		return fmt.Errorf("jitter window %g..%g is not 0 ≤ min ≤ max", p.JitterMin, p.JitterMax)
	case p.Backoff == Fixed:
		return nil
	case !finite(p.Factor) || p.Factor < 1:
		return fmt.Errorf("factor %g is below 1", p.Factor)
	case p.MaxDelay < p.InitialDelay:
		return fmt.Errorf("maximum delay %s is below initial delay %s", p.MaxDelay, p.InitialDelay)
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Delay returns the wait before retry n, counted from 1. The jitter is in
// [0, 1) and picks a place in the jitter window; the caller draws it, so that
// Delay is pure.
func (p RetryPolicy) Delay(n int, jitter float64) time.Duration {
	var delay float64
	switch p.Backoff {
	case Immediate:
		return 0
	case Fixed:
		delay = float64(p.InitialDelay)
	case Exponential:
		delay = p.growth(n)
	}
	delay *= p.JitterMin + (p.JitterMax-p.JitterMin)*jitter
	return time.Duration(min(delay, float64(math.MaxInt64/2)))
}

// growth is InitialDelay · Factor^(n−1), at most MaxDelay. The exponent is clamped before
// the power is taken: a large n would overflow to infinity on the way.
func (p RetryPolicy) growth(n int) float64 {
	base, limit := float64(p.InitialDelay), float64(p.MaxDelay)
	if p.Factor <= 1 {
		return min(base, limit)
	}
	atCap := math.Log(limit/base) / math.Log(p.Factor)
	exponent := float64(max(n, 1) - 1)
	if exponent >= atCap {
		return limit
	}
	return min(base*math.Pow(p.Factor, exponent), limit)
}

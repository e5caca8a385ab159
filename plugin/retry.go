package plugin

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// Backoff is how the wait between attempts grows.
type Backoff string

// The three shapes of backoff.
const (
	Exponential Backoff = "exponential"
	Fixed       Backoff = "fixed"
	Immediate   Backoff = "immediate"
)

// RetryPolicy says how long a job waits before retry n, counted from 1:
//
//	Exponential  min(MaxDelay, InitialDelay · Factor^(n−1)) · U(JitterMin, JitterMax)
//	Fixed        InitialDelay · U(JitterMin, JitterMax)
//	Immediate    0
//
// where U is uniform.
type RetryPolicy struct {
	Backoff      Backoff
	InitialDelay time.Duration
	Factor       float64
	MaxDelay     time.Duration
	JitterMin    float64
	JitterMax    float64
	// ImmediateAfterTimeout retries without a wait after an attempt that timed out.
	ImmediateAfterTimeout bool
}

// ExponentialBackoff waits initialDelay, initialDelay·factor, initialDelay·factor² …
// up to maxDelay, plus or minus 10 %.
func ExponentialBackoff(initialDelay time.Duration, factor float64, maxDelay time.Duration) RetryPolicy {
	return RetryPolicy{
		Backoff: Exponential, InitialDelay: initialDelay, Factor: factor, MaxDelay: maxDelay, JitterMin: 0.9, JitterMax: 1.1,
	}
}

// FixedBackoff waits the same time before each retry, plus or minus 10 %.
func FixedBackoff(delay time.Duration) RetryPolicy {
	return RetryPolicy{Backoff: Fixed, InitialDelay: delay, JitterMin: 0.9, JitterMax: 1.1}
}

// ImmediateRetry does not wait.
func ImmediateRetry() RetryPolicy { return RetryPolicy{Backoff: Immediate} }

func (p RetryPolicy) check() error {
	switch p.Backoff {
	case Immediate:
		return nil
	case Exponential, Fixed:
	default:
		return fmt.Errorf("backoff %q is not one of exponential, fixed, immediate", p.Backoff)
	}
	switch {
	case p.InitialDelay < time.Millisecond || p.InitialDelay > longest:
		return fmt.Errorf("initial delay %s is not between 1ms and %s", p.InitialDelay, longest)
	case !(p.JitterMin >= 0 && p.JitterMin <= p.JitterMax) || math.IsInf(p.JitterMax, 0):
		return fmt.Errorf("jitter window %g..%g is not 0 ≤ min ≤ max", p.JitterMin, p.JitterMax)
	case p.Backoff == Fixed:
		return nil
	case !(p.Factor >= 1) || math.IsInf(p.Factor, 0):
		return fmt.Errorf("factor %g is not 1 or more", p.Factor)
	case p.MaxDelay < p.InitialDelay || p.MaxDelay > longest:
		return fmt.Errorf("maximum delay %s is not between initial delay %s and %s", p.MaxDelay, p.InitialDelay, longest)
	}
	return nil
}

func (p RetryPolicy) wire() *handlerv1.Retry {
	backoffs := map[Backoff]handlerv1.Retry_Backoff{
		Exponential: handlerv1.Retry_BACKOFF_EXPONENTIAL,
		Fixed:       handlerv1.Retry_BACKOFF_FIXED,
		Immediate:   handlerv1.Retry_BACKOFF_IMMEDIATE,
	}
	return &handlerv1.Retry{
		Backoff: backoffs[p.Backoff], BaseMs: millis(p.InitialDelay), Factor: p.Factor, CapMs: millis(p.MaxDelay),
		JitterMin: p.JitterMin, JitterMax: p.JitterMax, AtOnceAfterTimeout: p.ImmediateAfterTimeout,
	}
}

func millis(d time.Duration) uint64 { return uint64(max(d, 0).Milliseconds()) }

func fromMillis(ms uint64) time.Duration {
	const most = uint64(math.MaxInt64 / int64(time.Millisecond))
	return time.Duration(min(ms, most)) * time.Millisecond
}

package guard

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Limit names one of the rate limits.
type Limit string

// The limits: submitted jobs, requests that requeue dead jobs, and requests
// that only read.
const (
	Jobs    Limit = "jobs"
	Requeue Limit = "requeue"
	Reads   Limit = "reads"
)

// limiter is a rate limit: a name, a quota for a minute, and its counter.
type limiter struct {
	name    Limit
	quota   int
	counter *counter
}

func newLimiter(name Limit, quota int) *limiter {
	return &limiter{name: name, quota: quota, counter: newCounter()}
}

// Allowance is the answer of a rate limit.
type Allowance struct {
	Allowed bool
	// Header goes into every counted answer. It has Retry-After if the request was
	// not allowed and waiting helps.
	Header http.Header
	// Detail is why it was not allowed.
	Detail string
	// Wait is how long until it is allowed, if nothing else is counted in the
	// meantime; 0 if waiting does not help.
	Wait time.Duration
}

// Take counts n against the limit of the client's address and, if it sent
// credentials, against that of the caller: all n against both, or nothing.
func (g *Guard) Take(ctx context.Context, limit Limit, n int) Allowance {
	if !g.limited(ctx, limit) {
		return Allowance{Allowed: true}
	}
	return g.limits[limit].take(subjectsOf(ctx), n)
}

// Look reports whether 1 could be taken now. It counts nothing.
func (g *Guard) Look(ctx context.Context, limit Limit) Allowance {
	if !g.limited(ctx, limit) {
		return Allowance{Allowed: true}
	}
	return g.limits[limit].look(subjectsOf(ctx), 1)
}

func (g *Guard) limited(ctx context.Context, limit Limit) bool {
	return g != nil && g.limits[limit] != nil && !g.isExempt(ctx)
}

func subjectsOf(ctx context.Context) []subject {
	subjects := []subject{{network: networkOf(ctx)}}
	if known := callerOf(ctx); known != nil {
		subjects = append(subjects, subject{name: known.name})
	}
	return subjects
}

// take counts n for each of the subjects, or for none.
func (l *limiter) take(subjects []subject, n int) Allowance {
	used, fits := l.counter.take(subjects, n, l.quota)
	return l.answer(used, fits, n)
}

// look is take without counting.
func (l *limiter) look(subjects []subject, n int) Allowance {
	used, fits := l.counter.look(subjects, n, l.quota)
	return l.answer(used, fits, n)
}

func (l *limiter) answer(used usage, fits bool, n int) Allowance {
	left, counted := float64(l.quota)-used.total(), used
	if fits {
		left -= float64(n)
		counted.current += n
	}
	// https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/
	header := http.Header{
		"Ratelimit-Policy": {fmt.Sprintf("%q;q=%d;w=%d", l.name, l.quota, int(window.Seconds()))},
		"Ratelimit":        {fmt.Sprintf("%q;r=%d;t=%d", l.name, int(max(left, 0)), wholeSeconds(counted.fades()))},
	}
	switch {
	case fits:
		return Allowance{Allowed: true, Header: header}
	case n > l.quota:
		return Allowance{Header: header, Detail: fmt.Sprintf(
			"%d at once is more than the rate limit allows in a minute, %d", n, l.quota)}
	}
	wait := used.wait(n, l.quota)
	header.Set("Retry-After", strconv.Itoa(wholeSeconds(wait)))
	return Allowance{Header: header, Detail: "the rate limit is reached", Wait: wait}
}

// wholeSeconds rounds up, so that a retry after that time is not too early.
func wholeSeconds(d time.Duration) int { return max(int(math.Ceil(d.Seconds())), 1) }

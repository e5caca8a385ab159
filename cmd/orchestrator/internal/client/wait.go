package client

import (
	"context"
	"errors"
	"net/http"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const (
	// leastPause keeps a server that does not wait from being asked on and on.
	leastPause = 250 * time.Millisecond
	// bearOutage is how long a wait goes on while the server does not answer:
	// it may be restarted.
	bearOutage = time.Minute
)

// Await returns the job once it has ended, or as it is after the limit, and
// then ended is false; a limit of zero is none. It asks anew whenever every is
// over, at most a minute, and hands what it sees to see, which may be nil. Once
// it has had an answer, it bears a server that is away for a while.
func (c *Client) Await(ctx context.Context, id string, limit, every time.Duration, see func(Answer, v1.Job)) (answer Answer, ended bool, err error) {
	began := time.Now()
	var heard time.Time
	for {
		wait := every
		if limit > 0 {
			wait = min(wait, max(limit-time.Since(began), 0))
		}
		asked := time.Now()
		latest, err := c.jobWithin(ctx, id, wait)
		switch {
		case err != nil && (heard.IsZero() || !passing(err) || time.Since(heard) > bearOutage):
			return nil, false, err
		case err == nil:
			heard, answer = time.Now(), latest
			var job v1.Job
			if err := answer.Into(&job); err != nil {
				return nil, false, err
			}
			if see != nil {
				see(answer, job)
			}
			if job.Ended() {
				return answer, true, nil
			}
		}
		if limit > 0 && time.Since(began) >= limit {
			return answer, false, nil
		}
		if err := pause(ctx, leastPause-time.Since(asked)); err != nil {
			return nil, false, err
		}
	}
}

// passing reports whether another try may have more luck.
func passing(err error) bool {
	var problem *Problem
	var unreachable *UnreachableError
	switch {
	case errors.As(err, &problem):
		return problem.Status == http.StatusServiceUnavailable || problem.Status == http.StatusBadGateway ||
			problem.Status == http.StatusGatewayTimeout
	case errors.As(err, &unreachable):
		return true
	}
	return false
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

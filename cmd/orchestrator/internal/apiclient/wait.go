package apiclient

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const (
	// leastPause separates requests to a server that answers without waiting.
	leastPause = 250 * time.Millisecond
	// maxOutage is how long a wait continues without an answer: the server may be
	// restarting.
	maxOutage = time.Minute
)

// Await returns the job once it has ended, or its current state after the limit;
// then ended is false. A limit of zero is none. It asks again after every interval of
// at most a minute, and calls see, which may be nil, with each answer. After the
// first answer it tolerates an outage of the server for a while.
func (c *Client) Await(ctx context.Context, id string, limit, every time.Duration, see func(Answer, v1.Job)) (answer Answer, ended bool, err error) {
	began := time.Now()
	var heard time.Time
	for {
		wait := every
		if limit > 0 {
			// Rounded up, so that the last answer does not come a little too early.
			left := max(limit-time.Since(began), 0)
			wait = min(wait, (left + time.Millisecond - 1).Truncate(time.Millisecond))
		}
		asked := time.Now()
		latest, err := c.GetSlow(ctx, Path("/jobs", id), url.Values{"wait": {wait.String()}}, wait)
		switch {
		case err != nil && (heard.IsZero() || !transient(err) || time.Since(heard) > maxOutage):
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

// transient reports whether another try may succeed.
func transient(err error) bool {
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

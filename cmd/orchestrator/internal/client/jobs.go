package client

import (
	"context"
	"net/url"
	"time"
)

// Submit sends a submission and returns what was accepted.
func (c *Client) Submit(ctx context.Context, submission []byte) (Answer, error) {
	return c.Post(ctx, "/jobs", nil, submission)
}

// Job returns a job as clients see it.
func (c *Client) Job(ctx context.Context, id string) (Answer, error) {
	return c.Get(ctx, pathOf("jobs", id), nil)
}

// jobWithin returns the job when it has ended, or its current state after the time,
// which is at most a minute.
func (c *Client) jobWithin(ctx context.Context, id string, wait time.Duration) (Answer, error) {
	// Rounded up, so that the last answer does not come a little too early.
	wait = (wait + time.Millisecond - 1).Truncate(time.Millisecond)
	return c.GetSlow(ctx, pathOf("jobs", id), url.Values{"wait": {wait.String()}}, wait)
}

// Act cancels, holds, releases or requeues a job, and returns it.
func (c *Client) Act(ctx context.Context, id, action string) (Answer, error) {
	return c.Post(ctx, pathOf("jobs", id, action), nil, nil)
}

// Inspect returns everything about a job.
func (c *Client) Inspect(ctx context.Context, id string) (Answer, error) {
	return c.Get(ctx, pathOf("debug", "jobs", id), nil)
}

// Logs returns what a job's handler has logged.
func (c *Client) Logs(ctx context.Context, id string, query url.Values) (Answer, error) {
	return c.Get(ctx, pathOf("debug", "jobs", id, "logs"), query)
}

// JobType returns a job type.
func (c *Client) JobType(ctx context.Context, name string) (Answer, error) {
	return c.Get(ctx, pathOf("job-types", name), nil)
}

// JobTypeSchema returns the JSON Schema of a job type's payload.
func (c *Client) JobTypeSchema(ctx context.Context, name string) (Answer, error) {
	return c.Get(ctx, pathOf("job-types", name, "schema"), nil)
}

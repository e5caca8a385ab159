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

// jobWithin returns the job when it is final, or after the time, at most a
// minute, as it is then.
func (c *Client) jobWithin(ctx context.Context, id string, wait time.Duration) (Answer, error) {
	// Rounded up, so that the last request does not come back a bit too soon.
	wait = (wait + time.Millisecond - 1).Truncate(time.Millisecond)
	return c.GetSlow(ctx, pathOf("jobs", id), url.Values{"wait": {wait.String()}}, wait)
}

// Act does one of cancel, hold, release and requeue to a job and returns the
// job as it is then.
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

// JobType returns what is known of a job type.
func (c *Client) JobType(ctx context.Context, name string) (Answer, error) {
	return c.Get(ctx, pathOf("job-types", name), nil)
}

// JobTypeSchema returns the JSON Schema of a job type's payload.
func (c *Client) JobTypeSchema(ctx context.Context, name string) (Answer, error) {
	return c.Get(ctx, pathOf("job-types", name, "schema"), nil)
}

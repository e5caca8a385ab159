package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Client calls an orchestrator's API as its operator.
type Client struct {
	Address  string
	Password string
	// Header is sent with every call, in addition to what it needs.
	Header http.Header
}

// operator is the user name of the operator.
const operator = "admin"

// Job is the answer of GET /jobs/{id}.
type Job struct {
	ID         string          `json:"jobId"`
	Status     string          `json:"status"`
	StartedAt  time.Time       `json:"startedAt"`
	FinishedAt time.Time       `json:"finishedAt"`
	Progress   json.RawMessage `json:"progress"`
	Result     json.RawMessage `json:"result"`
}

// Submission is the body of POST /jobs.
type Submission struct {
	JobType          string `json:"jobType"`
	Payload          any    `json:"payload"`
	Tenant           string `json:"tenant,omitempty"`
	IdempotencyKey   string `json:"idempotencyKey,omitempty"`
	MaxAttempts      int    `json:"maxAttempts,omitempty"`
	Timeout          string `json:"timeout,omitempty"`
	TTL              string `json:"ttl,omitempty"`
	Hold             bool   `json:"hold,omitempty"`
	ConcurrencyKey   string `json:"concurrencyKey,omitempty"`
	ConcurrencyLimit int    `json:"concurrencyLimit,omitempty"`
	OnConflict       string `json:"onConflict,omitempty"`
	UniqueFor        string `json:"uniqueFor,omitempty"`
	UniqueWhile      string `json:"uniqueWhile,omitempty"`
	CallbackURL      string `json:"callbackUrl,omitempty"`
}

// Submit submits a job and returns its id.
func (c Client) Submit(ctx context.Context, s Submission) (string, error) {
	var answer Job
	if err := c.Call(ctx, http.MethodPost, "/jobs", s, http.StatusAccepted, &answer); err != nil {
		return "", err
	}
	return answer.ID, nil
}

// SubmitBatch submits all of the jobs or none, and returns their ids in the same order.
func (c Client) SubmitBatch(ctx context.Context, batch []Submission) ([]string, error) {
	var answer struct{ Jobs []Job }
	if err := c.Call(ctx, http.MethodPost, "/jobs/batch", batch, http.StatusAccepted, &answer); err != nil {
		return nil, err
	}
	ids := make([]string, len(answer.Jobs))
	for i, job := range answer.Jobs {
		ids[i] = job.ID
	}
	return ids, nil
}

// Get returns a job.
func (c Client) Get(ctx context.Context, id string) (Job, error) {
	var job Job
	err := c.Call(ctx, http.MethodGet, "/jobs/"+id, nil, http.StatusOK, &job)
	return job, err
}

// Await polls until the job has the status.
func (c Client) Await(ctx context.Context, id, status string) (Job, error) {
	return c.AwaitThat(ctx, id, func(job Job) bool { return job.Status == status })
}

// AwaitThat polls until wanted returns true for the job.
func (c Client) AwaitThat(ctx context.Context, id string, wanted func(Job) bool) (Job, error) {
	last := "unknown"
	for {
		job, err := c.Get(ctx, id)
		switch {
		case ctx.Err() != nil:
			return job, fmt.Errorf("job %s is still %s", id, last)
		case err != nil || wanted(job):
			return job, err
		}
		last = job.Status
		select {
		case <-ctx.Done():
		case <-time.After(glance):
		}
	}
}

// Call sends body as JSON, unless it is nil, checks the status of the answer, and
// decodes the answer into answer, unless that is nil.
func (c Client) Call(ctx context.Context, method, path string, body any, want int, answer any) error {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.Address+path, reader)
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, values := range c.Header {
		request.Header[name] = values
	}
	request.SetBasicAuth(operator, c.Password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != want {
		return fmt.Errorf("%s %s: answered %s: %s", method, path, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// Package load is the clients of a chaos run. They submit, cancel, requeue and look up
// jobs, and record every call with what they know of its outcome. A client that got no
// answer repeats its submission with the same key.
package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// timeout is how long a client waits for an answer.
const timeout = 4 * time.Second

// Server is an orchestrator that clients call.
type Server struct {
	Name, Address, Password string
}

// client makes one call at a time.
type client struct {
	name     string
	http     *http.Client
	now      func() history.Nanos
	record   func(history.Call)
	calls    int
	accepted func()
}

// job is what is read of an answer about a job.
type job struct {
	ID        string `json:"jobId"`
	Status    string `json:"status"`
	Duplicate bool   `json:"duplicate"`
}

// do makes the call and records it. read gets the body of a successful answer.
func (c *client) do(ctx context.Context, to Server, call *history.Call, method, path string, body any, read func([]byte) error) {
	c.calls++
	call.Client, call.Number, call.Server = c.name, c.calls, to.Name
	call.Started = c.now()
	code, text, err := c.send(ctx, to, method, path, body)
	switch {
	case err == nil && code < 300:
		err = read(text)
		call.Outcome = history.OK
		if err != nil {
			call.Outcome = history.Unknown
		}
	case err == nil && code >= 400 && code < 500:
		call.Outcome = history.Refused
		err = errors.New(string(text[:min(len(text), 300)]))
	default:
		call.Outcome = history.Unknown
		if err == nil {
			err = errors.New(string(text[:min(len(text), 300)]))
		}
	}
	call.Returned, call.Code = c.now(), code
	if err != nil {
		call.Error = err.Error()
	}
	c.record(*call)
}

func (c *client) send(ctx context.Context, to Server, method, path string, body any) (code int, text []byte, err error) {
	// A call that has begun is not cut short by the end of the load.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	encoded, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	if body == nil {
		encoded = nil
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+to.Address+path, bytes.NewReader(encoded))
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	// Without this, a request that was cut could be sent twice.
	request.GetBody = nil
	request.SetBasicAuth("admin", to.Password)
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// submission is the body of POST /jobs.
type submission struct {
	JobType        string   `json:"jobType"`
	Payload        payload  `json:"payload"`
	IdempotencyKey string   `json:"idempotencyKey,omitempty"`
	MaxAttempts    int      `json:"maxAttempts,omitempty"`
	Tags           []string `json:"tags"`
	Tenant         string   `json:"tenant,omitempty"`
	Hold           bool     `json:"hold,omitempty"`
	Delay          string   `json:"delay,omitempty"`
	TTL            string   `json:"ttl,omitempty"`

	// Only jobs of a workflow have these.
	Name    string   `json:"name,omitempty"`
	After   []string `json:"after,omitempty"`
	OnDeath string   `json:"onDeath,omitempty"`
}

// workflow is the body of POST /workflows.
type workflow struct {
	IdempotencyKey string       `json:"idempotencyKey"`
	Tenant         string       `json:"tenant"`
	Jobs           []submission `json:"jobs"`
}

// payload is that of the run's handlers.
type payload struct {
	Mark      string   `json:"mark"`
	Millis    int      `json:"millis"`
	Plan      []string `json:"plan"`
	FollowUps int      `json:"followUps,omitempty"`
}

// item is a submission as it is sent and as it is recorded.
type item struct {
	sent     submission
	recorded history.Submission
}

// submit submits the items, as a batch if there is more than one. It returns the ids, or
// nil if there was no good answer.
func (c *client) submit(ctx context.Context, to Server, items []item) history.Call {
	call := history.Call{Verb: history.Submit, Tenant: items[0].sent.Tenant}
	for _, i := range items {
		call.Submissions = append(call.Submissions, i.recorded)
	}
	note := func(jobs ...job) error {
		if len(jobs) != len(items) {
			return fmt.Errorf("%d answers for %d submissions", len(jobs), len(items))
		}
		for n, j := range jobs {
			s := &call.Submissions[n]
			s.JobID, s.Status, s.Duplicate = j.ID, j.Status, j.Duplicate
		}
		c.accepted()
		return nil
	}
	if len(items) == 1 {
		c.do(ctx, to, &call, http.MethodPost, "/jobs", items[0].sent, func(text []byte) error {
			var one job
			if err := json.Unmarshal(text, &one); err != nil {
				return err
			}
			return note(one)
		})
		return call
	}
	call.Verb = history.Batch
	batch := make([]submission, 0, len(items))
	for _, i := range items {
		batch = append(batch, i.sent)
	}
	c.do(ctx, to, &call, http.MethodPost, "/jobs/batch", batch, func(text []byte) error {
		var all struct{ Jobs []job }
		if err := json.Unmarshal(text, &all); err != nil {
			return err
		}
		return note(all.Jobs...)
	})
	return call
}

// submitWorkflow submits the items as one workflow, in which each has its mark as its name.
func (c *client) submitWorkflow(ctx context.Context, to Server, tenant, key string, items []item) history.Call {
	call := history.Call{Verb: history.Workflow, Tenant: tenant, Key: key}
	body := workflow{IdempotencyKey: key, Tenant: tenant}
	for _, i := range items {
		call.Submissions, body.Jobs = append(call.Submissions, i.recorded), append(body.Jobs, i.sent)
	}
	c.do(ctx, to, &call, http.MethodPost, "/workflows", body, func(text []byte) error {
		var answer struct {
			Jobs []struct{ JobID, Name string }
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return err
		}
		ids := make(map[string]string)
		for _, j := range answer.Jobs {
			ids[j.Name] = j.JobID
		}
		for n := range call.Submissions {
			s := &call.Submissions[n]
			if s.JobID = ids[s.Mark]; s.JobID == "" {
				return fmt.Errorf("no answer for %s", s.Mark)
			}
		}
		c.accepted()
		return nil
	})
	return call
}

// about makes a call about one job.
func (c *client) about(ctx context.Context, to Server, verb history.Verb, id string) history.Call {
	call := history.Call{Verb: verb, JobID: id}
	method, path := http.MethodPost, "/jobs/"+id+"/"+string(verb)
	if verb == history.Get {
		method, path = http.MethodGet, "/jobs/"+id
	}
	c.do(ctx, to, &call, method, path, nil, func(text []byte) error {
		var answer job
		err := json.Unmarshal(text, &answer)
		call.Status = answer.Status
		return err
	})
	return call
}

// lookUp finds the job of a key.
func (c *client) lookUp(ctx context.Context, to Server, tenant, key string) {
	call := history.Call{Verb: history.Lookup, Tenant: tenant, Key: key}
	query := url.Values{"q": {key}, "tenant": {tenant}}
	c.do(ctx, to, &call, http.MethodGet, "/debug/jobs/lookup?"+query.Encode(), nil, func(text []byte) error {
		var found struct{ Jobs []job }
		err := json.Unmarshal(text, &found)
		if len(found.Jobs) > 0 {
			call.Found, call.Status = found.Jobs[0].ID, found.Jobs[0].Status
		}
		return err
	})
}

// redrive requeues some dead jobs.
func (c *client) redrive(ctx context.Context, to Server, limit int) {
	call := history.Call{Verb: history.Redrive}
	c.do(ctx, to, &call, http.MethodPost, fmt.Sprintf("/dead-letter/retry?limit=%d", limit), nil, func(text []byte) error {
		var answer struct{ Count int }
		err := json.Unmarshal(text, &answer)
		call.Count = answer.Count
		return err
	})
}

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// pauseBetween is how long the queue is idle between two jobs.
const pauseBetween = 5 * time.Millisecond

func latency(ctx context.Context, r *run, jobs int) error {
	const name = "idle queue"
	if err := r.start(ctx); err != nil {
		return err
	}
	caller, err := call(r.server.address())
	if err != nil {
		return err
	}
	defer caller.close()
	submission := Keys{}.singles(r.server.address(), stamp)[0]
	var begun []time.Duration
	began := time.Now()
	for i := range jobs {
		r.lab.progress("asking", i, jobs, began)
		time.Sleep(pauseBetween)
		posted := time.Now()
		answer, err := caller.do(submission)
		if err != nil {
			return err
		}
		view, err := caller.do(request(r.server.address(), "GET", "/jobs/"+jobID(answer)+"?wait=30s", "", nil))
		if err != nil {
			return err
		}
		at, err := resultOf(view)
		if err != nil {
			return err
		}
		begun = append(begun, at.Sub(posted))
	}
	slices.Sort(begun)
	r.record(name, "handler runs after p50", "ms", milliseconds(percentile(begun, 0.5)))
	r.record(name, "handler runs after p99", "ms", milliseconds(percentile(begun, 0.99)))
	if err := r.stop(name); err != nil {
		return err
	}
	return r.db.check(ctx, jobs)
}

// resultOf returns the time that is the result of a completed job.
func resultOf(view []byte) (time.Time, error) {
	var job struct {
		Status string
		Result int64
	}
	if err := json.Unmarshal(view, &job); err != nil || job.Status != "COMPLETED" {
		return time.Time{}, fmt.Errorf("not a completed job: %s", view)
	}
	return time.Unix(0, job.Result), nil
}

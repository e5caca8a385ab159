package main

import (
	"context"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
)

// What is looked at of the jobs that wait, before a handler with another schema
// takes over: so many of them, among so many pages.
const (
	samplePayloads = 100
	samplePages    = 5
)

// acceptance tells a plugin host which job types a plugin may serve, and what
// jobs a new version of it would find.
type acceptance struct{ ledger *store.Store }

var _ host.Ledger = acceptance{}

func (a acceptance) Unfinished(ctx context.Context, jobType string) (int64, error) {
	queues, err := a.ledger.Queues(ctx)
	if err != nil {
		return 0, err
	}
	for _, q := range queues {
		if q.Type == jobType {
			return q.Queued + q.Scheduled + q.Held + q.Retrying + q.Running, nil
		}
	}
	return 0, nil
}

func (a acceptance) OwnTypes(ctx context.Context, plugin string, types, moved []string) error {
	return a.ledger.OwnTypes(ctx, plugin, types, moved)
}

// Waiting returns the newest: those have met the present schema.
func (a acceptance) Waiting(ctx context.Context, jobType string) ([]host.Payload, error) {
	var found []host.Payload
	filter := job.Filter{
		Type: jobType, States: []job.State{job.Created, job.Queued, job.Retry, job.Running}, Limit: samplePayloads,
	}
	for range samplePages {
		page, err := a.ledger.List(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, listed := range page.Jobs {
			detail, err := a.ledger.Detail(ctx, listed.ID)
			if err != nil {
				return nil, err
			}
			found = append(found, host.Payload{JobID: listed.ID, JSON: detail.Payload})
		}
		if filter.After = page.Next; filter.After == (job.ID{}) || len(found) >= samplePayloads {
			break
		}
	}
	return found, nil
}

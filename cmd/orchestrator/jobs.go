package main

import (
	"context"
	"errors"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
)

// jobs is the ledger as the API sees it: the store's verbs, and whoever has
// to act on them woken.
type jobs struct {
	*store.Store
	worker *runtime.Runtime
	config jobsConfig
}

// Submit goes through the worker, which stores submissions in groups.
func (j jobs) Submit(ctx context.Context, s job.Submission) (job.Receipt, error) {
	return j.worker.Submit(ctx, s)
}

// Cancel asks the owner of a running job at once, not at its next heartbeat.
func (j jobs) Cancel(ctx context.Context, id job.ID) (job.View, error) {
	view, err := j.Store.Cancel(ctx, id)
	if err == nil && view.State == job.Running {
		j.worker.CancelAsked()
	}
	return view, err
}

func (j jobs) Release(ctx context.Context, id job.ID) (job.View, error) {
	view, err := j.Store.Release(ctx, id)
	if err == nil {
		j.worker.JobsReady()
	}
	return view, err
}

func (j jobs) Requeue(ctx context.Context, id job.ID) (job.View, error) {
	view, err := j.Store.Requeue(ctx, id)
	if err == nil {
		j.worker.JobsReady()
	}
	return view, err
}

func (j jobs) Redrive(ctx context.Context, limit int) (int, error) {
	count, err := j.Store.Redrive(ctx, limit)
	if count > 0 {
		j.worker.JobsReady()
	}
	return count, err
}

// TypeSpec resolves a type that no handler has declared only where the
// configuration accepts such jobs.
func (j jobs) TypeSpec(ctx context.Context, jobType string) (job.TypeSpec, error) {
	spec, err := j.worker.TypeSpec(ctx, jobType)
	if errors.Is(err, job.ErrUnknownType) && j.config.AcceptUnknownTypes {
		return j.config.resolve(job.TypeSpec{Type: jobType}), nil
	}
	return spec, err
}

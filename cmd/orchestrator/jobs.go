package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
)

// jobs is the ledger as the API sees it: the store's verbs, and whoever has
// to act on them woken.
type jobs struct {
	*store.Store
	worker *runtime.Runtime
	config config.Jobs
}

// Submit goes through the worker, which stores submissions in groups.
func (j jobs) Submit(ctx context.Context, s job.Submission) (job.Receipt, error) {
	s.Fast = j.config.Fast(s.Type)
	return j.worker.Submit(ctx, s)
}

// SubmitAll goes past the groups: it is one already.
func (j jobs) SubmitAll(ctx context.Context, batch []job.Submission) ([]job.Submitted, error) {
	batch = slices.Clone(batch) // the caller's own
	for i := range batch {
		batch[i].Fast = j.config.Fast(batch[i].Type)
	}
	return j.worker.SubmitAll(ctx, batch)
}

// Await is woken when the job is settled.
func (j jobs) Await(ctx context.Context, id job.ID) (job.View, error) {
	return j.worker.Await(ctx, id)
}

// Cancel asks the owner of a running job at once, not at its next heartbeat.
func (j jobs) Cancel(ctx context.Context, id job.ID) (job.View, error) {
	asked := time.Now()
	canceled, err := j.Store.Cancel(ctx, id)
	switch {
	case err != nil:
	case canceled.State == job.Running:
		j.worker.CancelAsked()
	case canceled.State == job.Canceled:
		j.worker.JobEnded(id)
	}
	if canceled.Canceled || canceled.Requested {
		j.worker.TraceCancel(ctx, canceled.View, asked)
	}
	return canceled.View, err
}

func (j jobs) Release(ctx context.Context, id job.ID) (job.View, error) {
	view, err := j.Store.Release(ctx, id)
	if err == nil {
		j.worker.JobsReady()
	}
	return view, err
}

func (j jobs) Requeue(ctx context.Context, id job.ID) (job.View, error) {
	asked := time.Now()
	view, err := j.Store.Requeue(ctx, id)
	if err == nil {
		j.worker.JobsReady()
		j.worker.TraceRequeue(ctx, job.Requeued{ID: id, Type: view.Type, Tenant: view.Tenant, Trace: view.Trace}, asked)
	}
	return view, err
}

func (j jobs) Redrive(ctx context.Context, filter job.DeadLetterFilter) (int, error) {
	asked := time.Now()
	requeued, err := j.Store.Redrive(ctx, filter)
	if len(requeued) > 0 {
		j.worker.JobsReady()
	}
	for _, one := range requeued {
		j.worker.TraceRequeue(ctx, one, asked)
	}
	return len(requeued), err
}

// TypeSpec resolves a type that no handler has declared only where the
// configuration accepts such jobs.
func (j jobs) TypeSpec(ctx context.Context, jobType string) (job.TypeSpec, error) {
	spec, err := j.worker.TypeSpec(ctx, jobType)
	if errors.Is(err, job.ErrUnknownType) && j.config.AcceptUnknownTypes {
		return j.config.Resolve(job.TypeSpec{Type: jobType}), nil
	}
	return spec, err
}

package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxOperations is how many operations are listed.
const maxOperations = 1000

// bulkRoutes act on all jobs that match a filter.
type bulkRoutes struct {
	bulk       Bulk // nil for an API that has none
	operations Operations
	guard      *guard.Guard
	cell       job.Cell
	memory     *intake.Memory
	log        *slog.Logger
}

func (b *bulkRoutes) add(r *router) {
	add(r, "POST /debug/operations", "start-operation", guard.Operate, b.start, takesBody)
	add(r, "GET /debug/operations", "list-operations", guard.Observe, b.list, mayBeStale)
	add(r, "GET /debug/operations/{id}", "get-operation", guard.Observe, b.get)
	add(r, "POST /debug/operations/{id}/stop", "stop-operation", guard.Operate, b.stop)
}

type startInput struct {
	call
	Key string `header:"Idempotency-Key" doc:"Names this request: sent again, it starts no second operation."`
}

type startOutput struct {
	Status int
	Body   v1.OperationAnswer
}

func (b *bulkRoutes) start(ctx context.Context, in *startInput) (*startOutput, error) {
	asked, err := b.read(ctx, in)
	if err != nil {
		return nil, err
	}
	if asked.Action == job.ActionRequeue && !asked.dryRun {
		if err := in.take(ctx, b.guard, guard.Requeue, 1); err != nil {
			return nil, err
		}
	}
	jobs := asked.Filter
	jobs.After, jobs.Within = asked.after, asked.countFor
	preview, err := b.bulk.PreviewOperation(ctx, jobs)
	if err != nil {
		return nil, err
	}
	out := &startOutput{Status: http.StatusOK, Body: v1.OperationAnswer{
		Count: preview.Count.Jobs, More: preview.Count.More, NextCursor: asked.cursors(preview.At).sealID(preview.Next), FrozenAt: preview.At.UTC(),
		Samples: v1.FoundJobsOf(job.FoundPage{Jobs: preview.Samples}, "").Jobs, Warnings: []string{},
	}}
	if asked.Action == job.ActionRequeue {
		if out.Body.Warnings, err = b.warn(ctx, preview.Died); err != nil {
			return nil, err
		}
	}
	if asked.dryRun {
		return out, nil
	}
	asked.Filter.FrozenAt, asked.Expected, asked.Shown = preview.At, preview.Count, auditedFilter(v1.JobFilterOf(asked.Filter))
	started, err := b.bulk.StartOperation(ctx, asked.OperationStart)
	if errors.Is(err, job.ErrKeyReused) {
		return nil, invalid(at("header."+keyHeader, "was used for another operation"))
	}
	if err != nil {
		return nil, err
	}
	b.log.InfoContext(ctx, "operation started", "operation_id", started.ID.String(), "action", string(started.Action),
		"jobs", started.Expected.Jobs, "by", started.By)
	shown := v1.OperationOf(started)
	out.Status, out.Body.Operation = http.StatusAccepted, &shown
	return out, nil
}

// auditedFilter has the members of a filter as texts. Not everybody who reads the audit log may
// see payloads.
func auditedFilter(filter v1.JobFilter) map[string]string {
	if filter.Payload != "" {
		filter.Payload = "(withheld)"
	}
	var members map[string]any
	text, _ := json.Marshal(filter)    // It always marshals,
	_ = json.Unmarshal(text, &members) // and that is an object.
	shown := make(map[string]string, len(members))
	for name, value := range members {
		shown[name] = fmt.Sprint(value)
	}
	if len(filter.State) > 0 {
		shown["state"] = strings.Join(filter.State, ",")
	}
	return shown
}

// warn says which of the versions still serve, under which jobs died.
func (b *bulkRoutes) warn(ctx context.Context, died []job.DiedOn) ([]string, error) {
	warnings := []string{}
	if len(died) == 0 {
		return warnings, nil
	}
	workers, err := b.operations.Workers(ctx)
	if err != nil {
		return nil, err
	}
	serving := make(map[job.DiedOn]bool)
	for _, worker := range workers {
		var pools []job.Pool
		if worker.StoppedAt != nil || worker.Condition == job.WorkerSilent || json.Unmarshal(worker.Plugins, &pools) != nil {
			continue
		}
		for _, pool := range pools {
			for _, served := range pool.Types {
				serving[job.DiedOn{Type: served, Version: pool.Version}] = true
			}
		}
	}
	for _, on := range died {
		if serving[job.DiedOn{Type: on.Type, Version: on.Version}] {
			warnings = append(warnings, fmt.Sprintf("version %s, under which %s jobs died, still serves: they may die again", on.Version, on.Type))
		}
	}
	return warnings, nil
}

type operationsInput struct {
	call
	Tenant string `query:"tenant" maxLength:"200" doc:"Only operations on jobs of this tenant."`
}

func (b *bulkRoutes) list(ctx context.Context, in *operationsInput) (*body[v1.OperationList], error) {
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	found, err := b.bulk.Operations(ctx, job.OperationFilter{Tenant: tenant, Limit: maxOperations})
	return bodyOf(found, err, func(found []job.Operation) v1.OperationList {
		list := v1.OperationList{Operations: []v1.Operation{}}
		for _, one := range found {
			list.Operations = append(list.Operations, v1.OperationOf(one))
		}
		return list
	})
}

type operationInput struct {
	call
	ID job.ID `path:"id" format:"uuid" doc:"The operationId that the request for it returned."`
}

func (b *bulkRoutes) get(ctx context.Context, in *operationInput) (*body[v1.Operation], error) {
	found, err := b.bulk.Operations(ctx, job.OperationFilter{ID: in.ID, Tenant: guard.Tenant(ctx), Limit: 1})
	if err == nil && len(found) == 0 {
		err = job.ErrNoOperation
	}
	return bodyOf(found, err, func(found []job.Operation) v1.Operation { return v1.OperationOf(found[0]) })
}

func (b *bulkRoutes) stop(ctx context.Context, in *operationInput) (*body[v1.Operation], error) {
	by := guard.Name(ctx)
	stopped, err := b.bulk.StopOperation(ctx, in.ID, by, guard.Tenant(ctx))
	if err == nil && stopped.State == job.OperationStopped {
		b.log.InfoContext(ctx, "operation stopped", "operation_id", in.ID.String(), "by", stopped.StoppedBy, "jobs", stopped.Done)
	}
	return bodyOf(stopped, err, v1.OperationOf)
}

// keyed names the request by its key, and says what it was.
func (a *askedOperation) keyed(header []string) error {
	key, err := submission.KeyOf(header)
	if err != nil {
		return invalid(at("header."+keyHeader, err.Error()))
	}
	if key == "" {
		return nil
	}
	said, err := json.Marshal(struct {
		job.Operation
		ID job.ID
	}{Operation: a.Operation})
	if err != nil {
		return err
	}
	hash := sha256.Sum256(said)
	a.Key, a.Hash = &key, hash[:]
	return nil
}

// newOperation has an id and who asks for it.
func (b *bulkRoutes) newOperation(ctx context.Context) (job.Operation, error) {
	id, err := uuid.NewV7()
	return job.Operation{ID: b.cell.Stamp(job.ID(id)), By: cmp.Or(guard.Name(ctx), "anybody"), Rate: job.DefaultRate}, err
}

package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// workflowRoutes submit, show and change workflows.
type workflowRoutes struct {
	*submitRoutes

	workflows Workflows
	maxBytes  int64 // of a workflow
	maxItem   int64 // of one job
	log       *slog.Logger
}

func (w *workflowRoutes) add(r *router) {
	add(r, "POST /workflows", "submit-workflow", guard.Submit, w.submit, accepts, takesBody)
	add(r, "GET /workflows", "list-workflows", guard.Read, w.list, mayBeStale)
	add(r, "GET /workflows/count", "count-workflows", guard.Read, w.count, mayBeStale)
	add(r, "GET /workflows/{id}", "get-workflow", guard.Read, w.get)
	add(r, "POST /workflows/{id}/cancel", "cancel-workflow", guard.Submit, w.change("workflow canceled", Workflows.CancelWorkflow))
	add(r, "POST /workflows/{id}/hold", "hold-workflow", guard.Submit, w.change("workflow held", Workflows.HoldWorkflow))
	add(r, "POST /workflows/{id}/release", "release-workflow", guard.Submit, w.change("workflow released", Workflows.ReleaseWorkflow))
	add(r, "POST /workflows/{id}/requeue", "requeue-workflow", guard.Operate, w.requeue)
}

type workflowInput struct {
	call
	ID job.ID `path:"id" format:"uuid" doc:"The workflowId that the submission returned."`
}

type workflowAcceptedOutput struct {
	Location string `header:"Location" doc:"Where to see the workflow."`
	Body     v1.WorkflowAccepted
}

func (w *workflowRoutes) submit(ctx context.Context, in *submitInput) (*workflowAcceptedOutput, error) {
	share := w.memory.Share()
	defer share.Release()
	header := in.request.Header
	if mediaType(header) != mediaJSON {
		return nil, problem(http.StatusUnsupportedMediaType,
			"send JSON, with the header Content-Type: application/json and no Content-Encoding")
	}
	body, err := intake.ReadBody(in.request, w.maxBytes, share)
	if err != nil {
		return nil, err
	}
	sent := submission.ParseWorkflow(body, int(w.maxItem))
	if err := share.Hold(len(sent.Jobs) * itemBytes); err != nil {
		return nil, err
	}
	keyed := submission.Item{Submission: job.Submission{IdempotencyKey: sent.IdempotencyKey}}
	w.mergeKey(&keyed, header.Values(keyHeader))
	sent.IdempotencyKey, sent.Mistakes = keyed.IdempotencyKey, append(sent.Mistakes, keyed.Mistakes...)
	wanted, err := w.resolver.Workflow(ctx, w.jobs, sent, guard.Tenant(ctx), traceOf(header))
	if err != nil {
		return nil, err
	}
	if err := in.take(ctx, w.guard, guard.Jobs, len(wanted.Jobs)); err != nil {
		return nil, err
	}
	receipt, err := w.workflows.SubmitWorkflow(ctx, wanted)
	if errors.Is(err, job.ErrKeyReused) {
		return nil, invalid(at(submission.Pointer("idempotencyKey"), "was used for a different workflow"))
	}
	if err != nil {
		return nil, err
	}
	accepted, err := w.accepted(ctx, wanted, receipt)
	return &workflowAcceptedOutput{Location: "/workflows/" + receipt.ID.String(), Body: accepted}, err
}

// accepted is the answer to a submission. For a replay, it asks for the jobs that the first
// one has made.
func (w *workflowRoutes) accepted(ctx context.Context, wanted job.WorkflowSubmission, receipt job.WorkflowReceipt) (v1.WorkflowAccepted, error) {
	answer := v1.WorkflowAccepted{WorkflowID: receipt.ID, CreatedAt: receipt.CreatedAt.UTC(), Jobs: []v1.WorkflowMember{}}
	if !receipt.Replayed {
		for _, step := range wanted.Jobs {
			answer.Jobs = append(answer.Jobs, v1.WorkflowMember{JobID: step.ID, Name: step.Name})
		}
		if wanted.OnComplete != nil {
			answer.OnComplete = &wanted.OnComplete.ID
		}
		return answer, nil
	}
	detail, err := w.workflows.WorkflowDetail(ctx, receipt.ID)
	for _, step := range detail.Steps {
		if step.OnComplete {
			answer.OnComplete = &step.JobID
		} else {
			answer.Jobs = append(answer.Jobs, v1.WorkflowMember{JobID: step.JobID, Name: step.Name})
		}
	}
	return answer, err
}

func (w *workflowRoutes) get(ctx context.Context, in *workflowInput) (*body[v1.WorkflowDetail], error) {
	detail, err := w.workflows.WorkflowDetail(ctx, in.ID)
	if bound := guard.Tenant(ctx); err == nil && bound != "" && detail.Tenant != bound {
		err = job.ErrNoWorkflow
	}
	return bodyOf(detail, err, v1.WorkflowDetailOf)
}

// find returns job.ErrNoWorkflow if the caller is bound to another tenant than the workflow's.
func (w *workflowRoutes) find(ctx context.Context, id job.ID) (job.Workflow, error) {
	found, err := w.workflows.Workflow(ctx, id)
	if bound := guard.Tenant(ctx); err == nil && bound != "" && found.Tenant != bound {
		err = job.ErrNoWorkflow
	}
	return found, err
}

// change answers with the workflow after the change.
func (w *workflowRoutes) change(done string, do func(Workflows, context.Context, job.ID) error) func(context.Context, *workflowInput) (*body[v1.Workflow], error) {
	return func(ctx context.Context, in *workflowInput) (*body[v1.Workflow], error) {
		found, err := w.find(ctx, in.ID)
		if err == nil {
			err = do(w.workflows, ctx, in.ID)
		}
		if errors.Is(err, job.ErrWrongState) {
			return nil, problem(http.StatusConflict, "the workflow has ended or is being canceled: it is "+string(found.State()))
		}
		if err != nil {
			return nil, err
		}
		w.log.InfoContext(ctx, done, "workflow_id", in.ID.String(), "by", guard.Name(ctx))
		found, err = w.workflows.Workflow(ctx, in.ID)
		return bodyOf(found, err, v1.WorkflowOf)
	}
}

func (w *workflowRoutes) requeue(ctx context.Context, in *workflowInput) (*body[v1.Requeued], error) {
	if err := in.take(ctx, w.guard, guard.Requeue, 1); err != nil {
		return nil, err
	}
	found, err := w.find(ctx, in.ID)
	switch {
	case err != nil:
		return nil, err
	case found.CanceledAt != nil || found.FinishedAt != nil:
		return nil, problem(http.StatusConflict, "the workflow has ended or is being canceled: it is "+string(found.State()))
	case found.Held:
		return nil, problem(http.StatusConflict, "the workflow is held: release it first, with POST /workflows/{id}/release")
	}
	count, err := w.workflows.RequeueWorkflow(ctx, in.ID)
	return bodyOf(count, err, func(count int) v1.Requeued { return v1.Requeued{Count: count} })
}

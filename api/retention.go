package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// maxErasures is how many erasures are listed.
	maxErasures = 1000
	// maxTenant bounds the name of a tenant, in characters.
	maxTenant = 200
)

// retentionRoutes show what retention does, and erase jobs on request.
type retentionRoutes struct {
	retention Retention // nil for an API that has none
	jobs      Jobs
	cell      job.Cell
	memory    *intake.Memory
	log       *slog.Logger
}

func (p *retentionRoutes) add(r *router) {
	add(r, "GET /retention/plan", "plan-retention", guard.Observe, p.plan, acrossTenants, mayBeStale)
	add(r, "POST /jobs/{id}/erase", "erase-job", guard.Operate, p.eraseJob, takesBody)
	add(r, "POST /erasures", "erase-tenant", guard.Operate, p.eraseTenant, accepts, takesBody)
	add(r, "GET /erasures", "list-erasures", guard.Observe, p.list, mayBeStale)
	add(r, "GET /erasures/{id}", "get-erasure", guard.Observe, p.get)
}

func (p *retentionRoutes) plan(ctx context.Context, _ *call) (*body[v1.RetentionPlan], error) {
	policies, plan, err := p.retention.PlanRetention(ctx)
	return bodyOf(plan, err, func(plan job.RetentionPlan) v1.RetentionPlan { return v1.RetentionPlanOf(policies, plan) })
}

func (p *retentionRoutes) eraseJob(ctx context.Context, in *jobInput) (*body[v1.Job], error) {
	var sent v1.EraseSpec
	if in.request.ContentLength != 0 {
		mistakes, err := readMembers(&in.call, p.memory, maxRuleBytes, map[string]bodyMember{"reason": {&sent.Reason, "a text"}})
		if err != nil {
			return nil, err
		}
		if mistakes = append(mistakes, mistakesOf(faultsOfReason(sent.Reason), mistakes)...); len(mistakes) > 0 {
			return nil, invalid(mistakes...)
		}
	}
	if err := mayTouch(ctx, p.jobs, in.ID); err != nil {
		return nil, err
	}
	audit.Because(ctx, sent.Reason)
	by := guard.Name(ctx)
	view, err := p.retention.Erase(ctx, in.ID, by, sent.Reason)
	if err != nil {
		return nil, asOpen(err)
	}
	p.log.InfoContext(ctx, "job erased", "job_id", in.ID.String(), "by", by)
	linkToJob(ctx, view.Trace)
	return &body[v1.Job]{v1.JobOf(view)}, nil
}

func faultsOfReason(reason string) (faults []job.Fault) {
	if utf8.RuneCountInString(reason) > maxReason || strings.ContainsRune(reason, 0) {
		faults = append(faults, job.Fault{Member: "reason", Reason: fmt.Sprintf("must not be longer than %d characters, without NUL", maxReason)})
	}
	return faults
}

func (p *retentionRoutes) eraseTenant(ctx context.Context, in *call) (*body[v1.Erasure], error) {
	var sent v1.ErasureSpec
	mistakes, err := readMembers(in, p.memory, maxRuleBytes, map[string]bodyMember{"tenant": {&sent.Tenant, "a text"}, "reason": {&sent.Reason, "a text"}})
	if err != nil {
		return nil, err
	}
	tenant, err := tenantOf(ctx, sent.Tenant)
	if err != nil {
		return nil, err
	}
	faults := faultsOfReason(sent.Reason)
	if err := submission.CheckWord(tenant, maxTenant); err != nil {
		faults = append(faults, job.Fault{Member: "tenant", Reason: err.Error()})
	}
	if mistakes = append(mistakes, mistakesOf(faults, mistakes)...); len(mistakes) > 0 {
		return nil, invalid(mistakes...)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	audit.Because(ctx, sent.Reason)
	asked := job.Erasure{ID: p.cell.Stamp(job.ID(id)), Tenant: tenant, Reason: sent.Reason, By: guard.Name(ctx)}
	erasure, err := p.retention.AskErasure(ctx, asked)
	if err == nil {
		p.log.InfoContext(ctx, "erasure of a tenant asked", "tenant", tenant, "by", asked.By)
	}
	return bodyOf(erasure, err, v1.ErasureOf)
}

type erasuresInput struct {
	call
	Tenant string `query:"tenant" maxLength:"200" doc:"Only erasures of this tenant."`
}

func (p *retentionRoutes) list(ctx context.Context, in *erasuresInput) (*body[v1.ErasureList], error) {
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	found, err := p.retention.Erasures(ctx, job.ErasureFilter{Tenant: tenant, Limit: maxErasures})
	return bodyOf(found, err, func(found []job.Erasure) v1.ErasureList {
		list := v1.ErasureList{Erasures: []v1.Erasure{}}
		for _, one := range found {
			list.Erasures = append(list.Erasures, v1.ErasureOf(one))
		}
		return list
	})
}

type erasureInput struct {
	call
	ID job.ID `path:"id" format:"uuid" doc:"The erasureId that the request for it returned."`
}

func (p *retentionRoutes) get(ctx context.Context, in *erasureInput) (*body[v1.Erasure], error) {
	tenant, err := tenantOf(ctx, "")
	if err != nil {
		return nil, err
	}
	found, err := p.retention.Erasures(ctx, job.ErasureFilter{ID: in.ID, Tenant: tenant, Limit: 1})
	if err == nil && len(found) == 0 {
		err = job.ErrNoErasure
	}
	return bodyOf(found, err, func(found []job.Erasure) v1.Erasure { return v1.ErasureOf(found[0]) })
}

// asOpen says what to do first with a job that cannot be erased.
func asOpen(err error) error {
	if errors.Is(err, job.ErrWrongState) {
		return problem(http.StatusConflict, "the job has not ended: cancel it first")
	}
	return err
}

package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// reasonHeader says why somebody does something.
const reasonHeader = "X-Holdfast-Reason"

func reasonParameter() *huma.Param {
	longest := audit.MaxReason
	return &huma.Param{
		Name: reasonHeader, In: "header", Description: "Why, for the audit log.",
		Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longest},
	}
}

// record writes down what an operation did that changes something, once it is known.
func (r *router) record(scope guard.Scope) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		request, w := humachi.Unwrap(ctx)
		reason := strings.Join(request.Header[reasonHeader], ", ")
		if len(request.Header[reasonHeader]) > 0 && reason == "" || utf8.RuneCountInString(reason) > audit.MaxReason {
			write(w, invalid(at("header."+reasonHeader, fmt.Sprintf("must have 1 to %d characters", audit.MaxReason))))
			return
		}
		may := audit.Rights{
			Act:     r.guard.Permit(ctx.Context(), scope) == nil,
			Operate: r.guard.Permit(ctx.Context(), guard.Operate) == nil,
		}
		inner, call := r.acts.Begin(ctx.Context(), ctx.Operation().OperationID, may)
		if call == nil {
			next(ctx)
			return
		}
		ctx = huma.WithContext(ctx, inner)
		about, parameters := asked(ctx)
		call.Asked(about, parameters, reason)
		panicked := true
		defer func() {
			if panicked {
				audit.Failed(inner, problem(http.StatusInternalServerError, ""))
			}
			call.End(inner)
		}()
		next(ctx)
		panicked = false
	}
}

// asked returns the job and the other parameters that the URL names.
func asked(ctx huma.Context) (about *job.ID, parameters map[string]string) {
	parameters = map[string]string{}
	url := ctx.URL()
	query := url.Query()
	for _, p := range ctx.Operation().Parameters {
		switch {
		case p.In == "query" && query.Has(p.Name):
			parameters[p.Name] = strings.Join(query[p.Name], ",")
		case p.In == "path" && strings.HasPrefix(strings.TrimPrefix(ctx.Operation().Path, "/debug"), "/jobs/"):
			var id job.ID
			if id.UnmarshalText([]byte(ctx.Param(p.Name))) == nil {
				about = &id
			}
		case p.In == "path":
			parameters[p.Name] = ctx.Param(p.Name)
		}
	}
	return about, parameters
}

// auditRoutes show what people did.
type auditRoutes struct {
	log audit.Log // nil for an API that writes nothing down
}

func (a *auditRoutes) add(r *router) {
	add(r, "GET /debug/audit", "list-acts", guard.Observe, a.list, mayBeStale)
}

type actsInput struct {
	call
	Actor  string     `query:"actor" maxLength:"800" doc:"Only what this user or token did: admin, or token shop."`
	Action string     `query:"action" maxLength:"100" doc:"Only this action, such as job.requeue."`
	Tenant string     `query:"tenant" maxLength:"200" doc:"Only what concerned this tenant."`
	JobID  job.ID     `query:"jobId" format:"uuid" doc:"Only what concerned this job."`
	From   timeParam  `query:"from" format:"date-time" doc:"Only what was done at this time or later (RFC 3339)."`
	Before timeParam  `query:"before" format:"date-time" doc:"Only what was done before this time (RFC 3339)."`
	Limit  limitParam `query:"limit" doc:"How many to return at most, from 1 to 1000. A number outside this range is clamped."`
	Cursor string     `query:"cursor" doc:"The nextCursor of the previous page, which must have had the same filters."`
}

type actsOutput struct {
	Link string `header:"Link" doc:"The next page, as rel=\"next\". Absent on the last page."`
	Body v1.ActList
}

func (a *auditRoutes) list(ctx context.Context, in *actsInput) (*actsOutput, error) {
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	limit := in.Limit.value()
	// One more shows whether another page follows.
	filter := job.ActFilter{Actor: in.Actor, Action: in.Action, Tenant: tenant, From: in.From.Time, Before: in.Before.Time, Limit: limit + 1}
	if in.JobID != (job.ID{}) {
		filter.Job = &in.JobID
	}
	cursors := cursorsFor("acts", filter.Actor, filter.Action, filter.Tenant, in.JobID, filter.From.UTC().String(), filter.Before.UTC().String())
	if filter.After, err = cursors.openAct(in.Cursor); err != nil {
		return nil, invalid(at("query.cursor", err.Error()))
	}
	out := &actsOutput{Body: v1.ActList{Acts: []v1.Act{}}}
	if a.log == nil {
		return out, nil
	}
	found, err := a.log.Acts(ctx, filter)
	if err != nil {
		return nil, err
	}
	// Actions of earlier versions may still be found.
	if known := audit.Actions(); len(found) == 0 && in.Action != "" && !slices.Contains(known, in.Action) {
		return nil, invalid(at("query.action", "there is no such action; there are "+strings.Join(known, ", ")))
	}
	if len(found) > limit {
		found = found[:limit]
		out.Body.NextCursor = cursors.sealAct(found[limit-1])
		out.Link = in.nextPage(out.Body.NextCursor)
	}
	for _, act := range found {
		out.Body.Acts = append(out.Body.Acts, v1.ActOf(act))
	}
	return out, nil
}

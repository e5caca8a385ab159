package audit

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Call is a request that changes something, and what is known of it. It is for one goroutine at a
// time.
type Call struct {
	recorder *Recorder
	action   action
	act      job.Act
	filter   map[string]string
	// operates says that the caller may operate.
	operates bool
	// refused says that the caller may not do this, and unknown that it is not known who it is.
	refused, unknown bool
	dryRun           bool
}

type callKey struct{}

// Rights are what the caller of a request may do.
type Rights struct {
	// Act says that the caller has the scope of the operation.
	Act bool
	// Operate says that the caller may do what operators do.
	Operate bool
}

// Begin returns a call of an operation, in a context that has it; nil if nothing is to be written
// down, whatever comes of it. The caller must end it. An operation that has no action is written
// down by its id.
func (r *Recorder) Begin(ctx context.Context, operation string, may Rights) (context.Context, *Call) {
	if harmless[operation] {
		return ctx, nil
	}
	known, found := actions[operation]
	if !found {
		known.name = operation
	}
	// Most requests are submissions of programs: they should not pay for what is not kept.
	if known.of == submissions && may.Act && !guard.IsPerson(ctx) {
		return ctx, nil
	}
	c := &Call{recorder: r, action: known, act: job.Act{Action: known.name, Result: job.ActDone}, filter: map[string]string{}, operates: may.Operate}
	return context.WithValue(ctx, callKey{}, c), c
}

// of returns the call of a request; nil if it has none.
func of(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Because notes the reason that a request gives in its body.
func Because(ctx context.Context, reason string) {
	if c := of(ctx); c != nil && reason != "" {
		c.act.Reason = reason
	}
}

// Concerns notes a part of what a request concerns.
func Concerns(ctx context.Context, name, value string) {
	if c := of(ctx); c != nil && value != "" {
		c.concerns(name, value)
	}
}

func (c *Call) concerns(name, value string) {
	switch {
	case name == "cursor" || name == "":
	case name == "dryRun":
		c.dryRun = value == "true"
	case name == "tenant":
		c.act.Tenant = value
	default:
		c.filter[name] = value
	}
}

// Asked notes the job and the other parameters that a request names in its URL, and its
// reason.
func (c *Call) Asked(job *job.ID, parameters map[string]string, reason string) {
	c.act.JobID, c.act.Reason = job, reason
	for name, value := range parameters {
		c.concerns(name, value)
	}
}

// Refused notes that the caller may not do this.
func Refused(ctx context.Context, err error) {
	if c := of(ctx); c != nil {
		c.refused = errors.Is(err, guard.ErrForbidden)
		c.unknown = !c.refused
		c.act.Result = "refused: " + strings.TrimPrefix(err.Error(), guard.ErrForbidden.Error()+": ")
	}
}

// Failed notes how it failed.
func Failed(ctx context.Context, p *v1.Problem) {
	if c := of(ctx); c != nil {
		if c.act.Result = p.Title; p.Detail != "" {
			c.act.Result += ": " + p.Detail
		}
	}
}

// Answered notes what the answer says of the tenant, the job and a count, if it has such
// members.
func Answered(ctx context.Context, answer any) {
	c := of(ctx)
	if c == nil {
		return
	}
	body := reflect.Indirect(reflect.ValueOf(answer))
	if body.Kind() == reflect.Struct {
		body = reflect.Indirect(body.FieldByName("Body"))
	}
	if body.Kind() != reflect.Struct {
		return
	}
	if tenant := body.FieldByName("Tenant"); tenant.IsValid() && tenant.Kind() == reflect.String {
		c.act.Tenant = tenant.String()
	}
	if count := body.FieldByName("Count"); count.IsValid() && count.CanInt() {
		c.act.Count = new(count.Int())
	}
	if id := body.FieldByName("JobID"); id.IsValid() && c.act.JobID == nil {
		if made, ok := id.Interface().(job.ID); ok {
			c.act.JobID = &made
		}
	}
}

// End writes the act down, if it is one that is.
func (c *Call) End(ctx context.Context) {
	done := c.act.Result == job.ActDone
	switch {
	case c.refused:
	case c.unknown, c.dryRun, done && c.action.itself:
		return
	case guard.IsPerson(ctx):
	case c.action.of == ofClients && !c.operates:
		return
	}
	c.act.Filter = filterOf(c.filter)
	c.recorder.Write(ctx, c.act)
}

package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/intake"
	"github.com/holdfast-jobs/holdfast/api/submission"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// usualRuns is how many runs a preview shows unless asked otherwise.
const usualRuns = 10

// scheduleRoutes show and set what makes jobs by the clock. A caller that is bound to a
// tenant has the schedules of that tenant; others name one, or mean the default tenant.
type scheduleRoutes struct {
	schedules Schedules
	guard     *guard.Guard
	memory    *intake.Memory
	maxBytes  int64
	log       *slog.Logger
}

func (p *scheduleRoutes) add(r *router) {
	add(r, "GET /schedules", "list-schedules", guard.Read, p.list, mayBeStale)
	add(r, "GET /schedules/{schedule}", "get-schedule", guard.Read, p.get)
	add(r, "PUT /schedules/{schedule}", "set-schedule", guard.Submit, p.set, takesBody)
	add(r, "DELETE /schedules/{schedule}", "delete-schedule", guard.Submit, p.delete)
	add(r, "POST /schedules/{schedule}/pause", "pause-schedule", guard.Submit, p.pause, takesBody)
	add(r, "POST /schedules/{schedule}/resume", "resume-schedule", guard.Submit, p.resume)
	add(r, "POST /schedules/{schedule}/run", "run-schedule", guard.Submit, p.run, accepts)
	add(r, "POST /schedules/{schedule}/backfill", "backfill-schedule", guard.Submit, p.backfill, takesBody)
	add(r, "GET /schedules/{schedule}/next", "list-scheduled-runs", guard.Read, p.next)
	add(r, "POST /schedules/preview", "preview-schedule", guard.Read, p.preview, takesBody)
}

// shown has the job only for those who see what operators see, and payloads.
func (p *scheduleRoutes) shown(ctx context.Context, found job.Schedule, err error) (*body[v1.Schedule], error) {
	return bodyOf(found, err, func(found job.Schedule) v1.Schedule {
		return v1.ScheduleOf(found, p.guard.Permit(ctx, guard.Observe) == nil)
	})
}

func (p *scheduleRoutes) list(ctx context.Context, in *schedulesInput) (*schedulesOutput, error) {
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	limit := in.Limit.value()
	// One more shows whether another page follows.
	filter := job.ScheduleFilter{Tenant: tenant, Limit: limit + 1}
	cursors := cursorsFor("schedules", tenant)
	if filter.AfterTenant, filter.AfterName, err = cursors.openNames(in.Cursor); err != nil {
		return nil, invalid(at("query.cursor", err.Error()))
	}
	found, err := p.schedules.Schedules(ctx, filter)
	if err != nil {
		return nil, err
	}
	out := &schedulesOutput{Body: v1.ScheduleList{Schedules: []v1.Schedule{}}}
	if len(found) > limit {
		found = found[:limit]
		last := found[limit-1]
		out.Body.NextCursor = cursors.sealNames(last.Tenant, last.Name)
	}
	for _, one := range found {
		out.Body.Schedules = append(out.Body.Schedules, v1.ScheduleOf(one, false))
	}
	out.Link = in.nextPage(out.Body.NextCursor)
	return out, nil
}

func (p *scheduleRoutes) get(ctx context.Context, in *scheduleInput) (*body[v1.Schedule], error) {
	tenant, name, err := in.of(ctx)
	if err != nil {
		return nil, err
	}
	found, err := p.schedules.Schedule(ctx, tenant, name)
	return p.shown(ctx, found, err)
}

func (p *scheduleRoutes) set(ctx context.Context, in *scheduleInput) (*body[v1.Schedule], error) {
	tenant, name, err := in.of(ctx)
	if err != nil {
		return nil, err
	}
	one, err := p.read(ctx, in, tenant, name)
	if err != nil {
		return nil, err
	}
	if err := in.take(ctx, p.guard, guard.Jobs, 1); err != nil {
		return nil, err
	}
	found, err := p.schedules.SetSchedule(ctx, one)
	if err == nil {
		p.log.InfoContext(ctx, "schedule set", "tenant", tenant, "schedule", name, "by", one.UpdatedBy)
	}
	return p.shown(ctx, found, err)
}

func (p *scheduleRoutes) delete(ctx context.Context, in *scheduleInput) (*body[v1.Schedule], error) {
	tenant, name, err := in.of(ctx)
	if err != nil {
		return nil, err
	}
	found, err := p.schedules.Schedule(ctx, tenant, name)
	if err == nil {
		err = p.schedules.DeleteSchedule(ctx, tenant, name)
	}
	if err == nil {
		p.log.InfoContext(ctx, "schedule deleted", "tenant", tenant, "schedule", name, "by", guard.Name(ctx))
	}
	return p.shown(ctx, found, err)
}

func (p *scheduleRoutes) pause(ctx context.Context, in *scheduleInput) (*body[v1.Schedule], error) {
	tenant, name, err := in.of(ctx)
	if err != nil {
		return nil, err
	}
	var sent v1.SchedulePauseSpec
	mistakes, err := readMembers(&in.call, p.memory, maxRuleBytes, map[string]bodyMember{"reason": {&sent.Reason, "a text"}})
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(sent.Reason) > maxReason || strings.ContainsRune(sent.Reason, 0) {
		mistakes = append(mistakes, at("#/reason", fmt.Sprintf("must not be longer than %d characters, without NUL", maxReason)))
	}
	if len(mistakes) > 0 {
		return nil, invalid(mistakes...)
	}
	audit.Because(ctx, sent.Reason)
	found, err := p.schedules.PauseSchedule(ctx, tenant, name, sent.Reason, guard.Name(ctx))
	if err == nil {
		p.log.InfoContext(ctx, "schedule paused", "tenant", tenant, "schedule", name, "by", guard.Name(ctx), "reason", sent.Reason)
	}
	return p.shown(ctx, found, err)
}

func (p *scheduleRoutes) resume(ctx context.Context, in *scheduleInput) (*body[v1.Schedule], error) {
	tenant, name, err := in.of(ctx)
	if err != nil {
		return nil, err
	}
	found, err := p.schedules.ResumeSchedule(ctx, tenant, name)
	if err == nil {
		p.log.InfoContext(ctx, "schedule resumed", "tenant", tenant, "schedule", name, "by", guard.Name(ctx))
	}
	return p.shown(ctx, found, err)
}

func (p *scheduleRoutes) run(ctx context.Context, in *runInput) (*submitOutput, error) {
	tenant, name, err := scheduleNamed(ctx, &in.call, in.Tenant, in.Schedule)
	if err != nil {
		return nil, err
	}
	key, err := submission.KeyOf(in.request.Header.Values(keyHeader))
	if err != nil {
		return nil, invalid(at("header."+keyHeader, err.Error()))
	}
	if err := in.take(ctx, p.guard, guard.Jobs, 1); err != nil {
		return nil, err
	}
	receipt, err := p.schedules.RunSchedule(ctx, tenant, name, key)
	if err != nil {
		return nil, err
	}
	p.log.InfoContext(ctx, "schedule run by hand", "tenant", tenant, "schedule", name, "job_id", receipt.ID.String(), "by", guard.Name(ctx))
	return &submitOutput{Location: "/jobs/" + receipt.ID.String(), Body: v1.AcceptedOf(receipt)}, nil
}

func (p *scheduleRoutes) backfill(ctx context.Context, in *scheduleInput) (*body[v1.Backfilled], error) {
	tenant, name, err := in.of(ctx)
	if err != nil {
		return nil, err
	}
	var sent struct{ From, To *time.Time }
	const instant = "an RFC 3339 time, such as \"2030-01-31T12:00:00Z\""
	mistakes, err := readMembers(&in.call, p.memory, maxRuleBytes, map[string]bodyMember{"from": {&sent.From, instant}, "to": {&sent.To, instant}})
	if err != nil {
		return nil, err
	}
	for _, end := range []struct {
		member string
		at     *time.Time
	}{{"from", sent.From}, {"to", sent.To}} {
		place := submission.Pointer(end.member)
		if end.at == nil && !slices.ContainsFunc(mistakes, func(m v1.Mistake) bool { return m.Location == place }) {
			mistakes = append(mistakes, at(place, "is required: "+instant))
		}
	}
	switch {
	case len(mistakes) > 0:
	case sent.To.Before(*sent.From):
		mistakes = append(mistakes, at("#/to", "must not be before from"))
	case sent.To.After(time.Now()):
		mistakes = append(mistakes, at("#/to", "must not be in the future: those ticks will come"))
	}
	if len(mistakes) > 0 {
		return nil, invalid(mistakes...)
	}
	if err := in.take(ctx, p.guard, guard.Jobs, 1); err != nil {
		return nil, err
	}
	done, err := p.schedules.Backfill(ctx, tenant, name, *sent.From, *sent.To)
	if errors.Is(err, job.ErrTooManyTicks) {
		return nil, invalid(at("#/to", fmt.Sprintf("leaves more than %d ticks: backfill several shorter ranges", job.MaxBackfill)))
	}
	if err == nil {
		p.log.InfoContext(ctx, "schedule backfilled", "tenant", tenant, "schedule", name, "ticks", done.Ticks, "jobs", done.Made, "by", guard.Name(ctx))
	}
	return bodyOf(done, err, func(done job.Backfilled) v1.Backfilled { return v1.Backfilled(done) })
}

func (p *scheduleRoutes) next(ctx context.Context, in *nextInput) (*body[v1.ScheduledRuns], error) {
	tenant, name, err := scheduleNamed(ctx, &in.call, in.Tenant, in.Schedule)
	if err != nil {
		return nil, err
	}
	found, err := p.schedules.Schedule(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	limit := usualRuns
	if in.Limit.n > 0 {
		limit = min(in.Limit.n, job.MaxPreview)
	}
	runs, _, err := p.schedules.Preview(ctx, found.Timing, in.After.Time, limit)
	return bodyOf(runs, err, func(runs []time.Time) v1.ScheduledRuns { return p.runsOf(found, runs) })
}

func (p *scheduleRoutes) runsOf(one job.Schedule, ticks []time.Time) v1.ScheduledRuns {
	runs := v1.ScheduledRuns{Runs: []v1.ScheduledRun{}}
	for _, tick := range ticks {
		runs.Runs = append(runs.Runs, v1.ScheduledRun{At: tick, Local: p.schedules.Local(one.Timing, tick), DueAt: p.schedules.DueAt(one, tick)})
	}
	return runs
}

func (p *scheduleRoutes) preview(ctx context.Context, in *call) (*body[v1.ScheduledRuns], error) {
	sent := v1.PreviewSpec{Limit: usualRuns}
	members := timingMembers(&sent.ScheduleTiming)
	members["after"] = bodyMember{&sent.After, "an RFC 3339 time, such as \"2030-01-31T12:00:00Z\""}
	members["limit"] = bodyMember{&sent.Limit, wholeNumber(1, job.MaxPreview)}
	mistakes, err := readMembers(in, p.memory, maxRuleBytes, members)
	if err != nil {
		return nil, err
	}
	timing, faults := timingOf(sent.ScheduleTiming)
	if sent.Limit < 1 || sent.Limit > job.MaxPreview {
		faults = append(faults, job.Fault{Member: "limit", Reason: "must be " + wholeNumber(1, job.MaxPreview)})
	}
	runs, wrong, err := p.schedules.Preview(ctx, timing, instantIn(sent.After), min(max(sent.Limit, 1), job.MaxPreview))
	if err != nil {
		return nil, err
	}
	for _, fault := range wrong {
		if !slices.ContainsFunc(faults, func(f job.Fault) bool { return f.Member == fault.Member }) {
			faults = append(faults, fault)
		}
	}
	if mistakes = append(mistakes, scheduleMistakes(faults, mistakes)...); len(mistakes) > 0 {
		return nil, invalid(mistakes...)
	}
	return &body[v1.ScheduledRuns]{p.runsOf(job.Schedule{Timing: timing}, runs)}, nil
}

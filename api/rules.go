package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
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

const (
	// maxRuleBytes bounds the body that sets a limit or a pause.
	maxRuleBytes = 16 << 10
	// maxReason bounds the reason of a pause, in characters.
	maxReason = 500
	// longestPause bounds a pause that ends by itself.
	longestPause = 365 * 24 * time.Hour
)

// ruleRoutes show and set limits and pauses, and drain workers.
type ruleRoutes struct {
	rules      Rules // nil for an API that has none
	operations Operations
	memory     *intake.Memory
	log        *slog.Logger
}

func (p *ruleRoutes) add(r *router) {
	add(r, "GET /debug/limits", "list-limits", guard.Observe, p.limits, acrossTenants)
	add(r, "GET /debug/limits/{scope}/{name}", "get-limit", guard.Observe, p.limit, acrossTenants)
	add(r, "PUT /debug/limits/{scope}/{name}", "set-limit", guard.Operate, p.setLimit, acrossTenants, takesBody)
	add(r, "DELETE /debug/limits/{scope}/{name}", "delete-limit", guard.Operate, p.deleteLimit, acrossTenants)
	add(r, "GET /debug/pauses", "list-pauses", guard.Observe, p.pauses, acrossTenants)
	add(r, "PUT /debug/pauses/{scope}/{name}", "set-pause", guard.Operate, p.setPause, acrossTenants, takesBody)
	add(r, "PUT /debug/pauses/all", "pause-all", guard.Operate, p.pauseAll, acrossTenants, takesBody)
	add(r, "DELETE /debug/pauses/{scope}/{name}", "end-pause", guard.Operate, p.endPause, acrossTenants)
	add(r, "DELETE /debug/pauses/all", "resume-all", guard.Operate, p.resumeAll, acrossTenants)
	add(r, "POST /debug/workers/{worker}/drain", "drain-worker", guard.Operate, p.drain, acrossTenants)
	add(r, "POST /debug/workers/{worker}/resume", "resume-worker", guard.Operate, p.resumeWorker, acrossTenants)
}

type limitInput struct {
	call
	Scope string `path:"scope" enum:"type,tenant,key,fairness" doc:"What the limit is of."`
	Name  string `path:"name" doc:"Of the type, the tenant, the class of keys or the fairness key, percent-encoded. * for all that have no limit of their own."`
}

type pauseInput struct {
	call
	Scope string `path:"scope" enum:"type,plugin,tenant" doc:"What the pause is of."`
	Name  string `path:"name" doc:"Of the type, the plugin or the tenant, percent-encoded. To pause everything, use /debug/pauses/all: * is refused."`
}

type workerInput struct {
	call
	Worker string `path:"worker" doc:"The workerId, percent-encoded."`
}

func (p *ruleRoutes) limits(ctx context.Context, _ *call) (*body[v1.LimitList], error) {
	rules, err := p.rules.FreshRules(ctx)
	if err != nil {
		return nil, err
	}
	shown, err := p.withUsed(ctx, rules.Limits())
	return bodyOf(shown, err, func(limits []v1.Limit) v1.LimitList { return v1.LimitList{Limits: limits} })
}

// withUsed adds to limits of one type or one tenant how much of them is used.
func (p *ruleRoutes) withUsed(ctx context.Context, limits []job.Limit) ([]v1.Limit, error) {
	gateOf := func(l job.Limit) (job.Gate, bool) {
		switch {
		case l.Name == job.EveryName:
			return "", false
		case l.Scope == job.LimitType:
			return job.NewGate(job.GateType, "", l.Name), true
		default:
			return job.NewGate(job.GateTenant, "", l.Name), l.Scope == job.LimitTenant
		}
	}
	var gates []job.Gate
	for _, l := range limits {
		if gate, counts := gateOf(l); counts {
			gates = append(gates, gate)
		}
	}
	used, err := p.rules.SlotsUsed(ctx, gates)
	if err != nil {
		return nil, err
	}
	shown := make([]v1.Limit, len(limits))
	for i, l := range limits {
		shown[i] = v1.LimitOf(l, nil)
		if gate, counts := gateOf(l); counts {
			shown[i].Used = new(used[gate])
		}
	}
	return shown, nil
}

func (p *ruleRoutes) limit(ctx context.Context, in *limitInput) (*body[v1.Limit], error) {
	limit, err := p.findLimit(ctx, job.LimitScope(in.Scope), in.decoded(in.Name))
	if err != nil {
		return nil, err
	}
	return p.shown(ctx, limit)
}

func (p *ruleRoutes) findLimit(ctx context.Context, scope job.LimitScope, name string) (job.Limit, error) {
	rules, err := p.rules.FreshRules(ctx)
	if err != nil {
		return job.Limit{}, err
	}
	for _, limit := range rules.Limits() {
		if limit.Scope == scope && limit.Name == name {
			return limit, nil
		}
	}
	return job.Limit{}, job.ErrNoLimit
}

func (p *ruleRoutes) shown(ctx context.Context, limit job.Limit) (*body[v1.Limit], error) {
	shown, err := p.withUsed(ctx, []job.Limit{limit})
	return bodyOf(shown, err, func(limits []v1.Limit) v1.Limit { return limits[0] })
}

func (p *ruleRoutes) setLimit(ctx context.Context, in *limitInput) (*body[v1.Limit], error) {
	var sent v1.LimitSpec
	mistakes, err := p.read(&in.call, map[string]bodyMember{
		"concurrency": {&sent.Concurrency, wholeNumber(0, job.MaxLimit)}, "rate": {&sent.Rate, "a text, such as \"100/1m\""},
		"burst": {&sent.Burst, wholeNumber(1, job.MaxLimit)}, "onConflict": {&sent.OnConflict, "one of queue, cancel_newcomer, cancel_oldest"},
		"weight": {&sent.Weight, wholeNumber(1, job.MaxWeight)}, "fair": {&sent.Fair, "true or false"},
	})
	if err != nil {
		return nil, err
	}
	limit, faults := job.LimitSpec(sent).Limit(job.LimitScope(in.Scope), in.decoded(in.Name))
	if mistakes = append(mistakes, mistakesOf(faults, mistakes)...); len(mistakes) > 0 {
		return nil, invalid(mistakes...)
	}
	limit.UpdatedBy = guard.Name(ctx)
	limit, err = p.rules.SetLimit(ctx, limit)
	if err != nil {
		return nil, err
	}
	p.log.InfoContext(ctx, "limit set", "limit", string(limit.Scope)+" "+limit.Name, "by", limit.UpdatedBy)
	return p.shown(ctx, limit)
}

func (p *ruleRoutes) deleteLimit(ctx context.Context, in *limitInput) (*body[v1.Limit], error) {
	scope, name := job.LimitScope(in.Scope), in.decoded(in.Name)
	limit, err := p.findLimit(ctx, scope, name)
	if errors.Is(err, job.ErrNoLimit) && storable(name) {
		limit, err = job.Limit{Scope: scope, Name: name}, nil // DeleteLimit says that there is none
	}
	if err == nil {
		err = p.rules.DeleteLimit(ctx, limit.Scope, limit.Name)
	}
	if err != nil {
		return nil, err
	}
	p.log.InfoContext(ctx, "limit deleted", "limit", string(limit.Scope)+" "+limit.Name, "by", guard.Name(ctx))
	return p.shown(ctx, limit)
}

func (p *ruleRoutes) pauses(ctx context.Context, _ *call) (*body[v1.PauseList], error) {
	rules, err := p.rules.FreshRules(ctx)
	return bodyOf(rules, err, func(rules *job.Rules) v1.PauseList {
		list := v1.PauseList{Pauses: []v1.Pause{}}
		for _, pause := range rules.Pauses() {
			list.Pauses = append(list.Pauses, v1.PauseOf(pause))
		}
		return list
	})
}

func (p *ruleRoutes) setPause(ctx context.Context, in *pauseInput) (*body[v1.Pause], error) {
	return p.pause(ctx, &in.call, job.PauseScope(in.Scope), in.decoded(in.Name))
}

func (p *ruleRoutes) pauseAll(ctx context.Context, in *call) (*body[v1.Pause], error) {
	return p.pause(ctx, in, job.PauseAll, "")
}

func (p *ruleRoutes) pause(ctx context.Context, in *call, scope job.PauseScope, name string) (*body[v1.Pause], error) {
	var sent v1.PauseSpec
	mistakes, err := p.read(in, map[string]bodyMember{
		"reason": {&sent.Reason, "a text"}, "for": {&sent.For, "a duration, such as \"1h30m\""},
		"until": {&sent.Until, "an RFC 3339 time, such as \"2030-01-31T12:00:00Z\""}, "drain": {&sent.Drain, "true or false"},
	})
	if err != nil {
		return nil, err
	}
	pause := job.Pause{Scope: scope, Name: name, Reason: sent.Reason, By: guard.Name(ctx), Drain: sent.Drain}
	audit.Because(ctx, sent.Reason)
	faults, lasts := faultsOf(&pause, sent)
	if mistakes = append(mistakes, mistakesOf(faults, mistakes)...); len(mistakes) > 0 {
		return nil, invalid(mistakes...)
	}
	set, err := p.rules.SetPause(ctx, pause, lasts)
	if err != nil {
		return nil, err
	}
	p.log.InfoContext(ctx, "paused", "paused", scope.Of(name), "by", pause.By, "reason", pause.Reason)
	return &body[v1.Pause]{v1.PauseOf(set)}, nil
}

// faultsOf checks what was sent, and sets when the pause ends.
func faultsOf(pause *job.Pause, sent v1.PauseSpec) (faults []job.Fault, lasts time.Duration) {
	faults = job.CheckPause(pause.Scope, pause.Name)
	if utf8.RuneCountInString(sent.Reason) > maxReason || strings.ContainsRune(sent.Reason, 0) {
		faults = append(faults, job.Fault{Member: "reason", Reason: fmt.Sprintf("must not be longer than %d characters, without NUL", maxReason)})
	}
	if sent.For != nil {
		var err error
		switch lasts, err = time.ParseDuration(*sent.For); {
		case sent.Until != nil:
			faults = append(faults, job.Fault{Member: "for", Reason: "contradicts until: set one of the two"})
		case err != nil || lasts < time.Millisecond || lasts > longestPause:
			faults = append(faults, job.Fault{Member: "for", Reason: "must be a duration from 1ms to 8760h, such as 1h30m"})
		}
	}
	if sent.Until != nil {
		switch pause.Until = sent.Until.UTC(); {
		case !pause.Until.After(time.Now()):
			faults = append(faults, job.Fault{Member: "until", Reason: "must not be over"})
		case pause.Until.After(time.Now().Add(longestPause)):
			faults = append(faults, job.Fault{Member: "until", Reason: "must be within 8760h; without until, the pause lasts until it is ended"})
		}
	}
	return faults, lasts
}

func (p *ruleRoutes) endPause(ctx context.Context, in *pauseInput) (*body[v1.Pause], error) {
	return p.end(ctx, job.PauseScope(in.Scope), in.decoded(in.Name))
}

func (p *ruleRoutes) resumeAll(ctx context.Context, _ *call) (*body[v1.Pause], error) {
	return p.end(ctx, job.PauseAll, "")
}

// storable reports whether the database can store the name. A rule with another name is
// certainly not there. About any other, a read that does not find it proves nothing: it may have
// been deleted by a commit that the standby does not have yet. The verbs of the store wait for
// the standby, so they say whether it is gone.
func storable(name string) bool { return !strings.ContainsRune(name, 0) }

// end answers with the pause as it was.
func (p *ruleRoutes) end(ctx context.Context, scope job.PauseScope, name string) (*body[v1.Pause], error) {
	rules, err := p.rules.FreshRules(ctx)
	if err != nil {
		return nil, err
	}
	pause, paused := rules.Pause(scope, name)
	switch {
	case paused:
	case !slices.Contains(job.PauseScopes(), scope) || !storable(name):
		return nil, job.ErrNoPause
	default:
		pause = job.Pause{Scope: scope, Name: name} // EndPause says that there is none
	}
	if err := p.rules.EndPause(ctx, scope, name); err != nil {
		return nil, err
	}
	p.log.InfoContext(ctx, "resumed", "paused", scope.Of(name), "by", guard.Name(ctx))
	return &body[v1.Pause]{v1.PauseOf(pause)}, nil
}

func (p *ruleRoutes) drain(ctx context.Context, in *workerInput) (*body[v1.Worker], error) {
	return p.operateWorker(ctx, in.decoded(in.Worker), "drain of worker asked", p.rules.DrainWorker)
}

func (p *ruleRoutes) resumeWorker(ctx context.Context, in *workerInput) (*body[v1.Worker], error) {
	return p.operateWorker(ctx, in.decoded(in.Worker), "worker resumed", p.rules.ResumeWorker)
}

func (p *ruleRoutes) operateWorker(ctx context.Context, id, done string, do func(context.Context, string) error) (*body[v1.Worker], error) {
	if err := do(ctx, id); err != nil {
		return nil, err
	}
	p.log.InfoContext(ctx, done, "worker_id", id, "by", guard.Name(ctx))
	workers, err := p.operations.Workers(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(workers, func(w v1.Worker) bool { return w.WorkerID == id })
	if at < 0 {
		return nil, job.ErrNoWorker
	}
	return &body[v1.Worker]{workers[at]}, nil
}

// bodyMember is one of a body: where its value goes, and what it must be.
type bodyMember struct {
	into any
	must string
}

func wholeNumber(lowest, highest int) string {
	return fmt.Sprintf("a whole number from %d to %d", lowest, highest)
}

func (p *ruleRoutes) read(in *call, members map[string]bodyMember) (mistakes []v1.Mistake, err error) {
	return readMembers(in, p.memory, maxRuleBytes, members)
}

// readMembers reads a body, which is an object. A mistake is a member that is not known, or
// whose value is of the wrong kind.
func readMembers(in *call, memory *intake.Memory, maxBytes int64, members map[string]bodyMember) (mistakes []v1.Mistake, err error) {
	share := memory.Share()
	defer share.Release()
	if mediaType(in.request.Header) != mediaJSON {
		return nil, problem(http.StatusUnsupportedMediaType,
			"send JSON, with the header Content-Type: application/json and no Content-Encoding")
	}
	text, err := intake.ReadBody(in.request, maxBytes, share)
	if err != nil {
		return nil, err
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(text, &sent); err != nil || !utf8.Valid(text) {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return nil, invalid(at("#", "must be an object"))
		}
		return nil, problem(http.StatusBadRequest, "the body is not JSON in UTF-8")
	}
	duplicates := job.DuplicateMembers(text)
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		known, found := members[name]
		switch {
		case len(mistakes) == submission.MaxMistakes:
		case !found:
			mistakes = append(mistakes, at(submission.Pointer(submission.Shortened(name)), "is not known"))
		case slices.Contains(duplicates, name):
			mistakes = append(mistakes, at(submission.Pointer(name), "is duplicated"))
		case bytes.Equal(sent[name], []byte("null")):
			mistakes = append(mistakes, at(submission.Pointer(name), "must not be null: leave it out"))
		case json.Unmarshal(sent[name], known.into) != nil:
			mistakes = append(mistakes, at(submission.Pointer(name), "must be "+known.must))
		}
	}
	return mistakes, nil
}

// mistakesOf are places of the request. Of a member that has a mistake already, and of the
// whole if any has, nothing more is said.
func mistakesOf(faults []job.Fault, before []v1.Mistake) (mistakes []v1.Mistake) {
	for _, fault := range faults {
		place := submission.Pointer(fault.Member)
		switch fault.Member {
		case "scope", "name":
			place = "path." + fault.Member
		case "":
			if place = "#"; len(before) > 0 {
				continue
			}
		}
		if !slices.ContainsFunc(before, func(m v1.Mistake) bool { return m.Location == place }) {
			mistakes = append(mistakes, at(place, fault.Reason))
		}
	}
	return mistakes
}

package ui

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// typePage is what is known of one job type.
type typePage struct {
	typeRow
	// Pending is set while its jobs are counted for the first time.
	Pending     bool
	At, Failing time.Time
	// Denied says why the caller does not see what its handler declares.
	Denied string
	Schema string
	// Limit is its own; nil if it has none.
	Limit *v1.Limit
	// Pause is its own; nil if it has none.
	Pause *v1.Pause
	// Form is what was sent, if that was refused.
	Form typeForm
}

// typeForm is the forms of the page.
type typeForm struct{ Reason, For, Concurrency, Rate, Burst string }

// Used is how many jobs use the slots of the limit.
func (p typePage) Used() int {
	if p.Limit == nil || p.Limit.Used == nil {
		return 0
	}
	return *p.Limit.Used
}

func showType(v *visit) (answer, error) { return v.typePage(v.param("type"), typeForm{}, nil) }

// typePage is the page again if the refusal of a form is not nil.
func (v *visit) typePage(name string, form typeForm, refused *v1.Problem) (answer, error) {
	var (
		metrics snapshot.Figures[*v1.Metrics]
		series  snapshot.Figures[*v1.Series]
	)
	err := atOnce(
		func() (err error) { metrics, err = v.metrics(); return err },
		func() (err error) { series, err = v.series(v1.Hour, name); return err },
	)
	if err != nil {
		return nil, err
	}
	shown := typePage{Form: form, Pending: metrics.Pending()}
	if shown.Denied = v.denied(guard.Read); shown.Denied == "" {
		declared := &v1.JobType{}
		switch err := v.get(client.Path("job-types", name), nil, declared); {
		case err == nil:
			shown.Declared = declared
		case !isNotFound(err):
			return nil, err
		}
	}
	shown.JobType = name
	if !shown.Pending && !shown.count(metrics.Value) && shown.Declared == nil {
		return nil, v1.NewProblem(http.StatusNotFound, "no handler has declared this job type, and it has no jobs")
	}
	if !series.Pending() {
		shown.Lately = latelyOf(series.Value)
	}
	shown.At, shown.Failing = oldest(time.Time{}, time.Time{}, metrics)
	shown.At, shown.Failing = oldest(shown.At, shown.Failing, series)
	if shown.Declared != nil && shown.Declared.HasSchema {
		schema, err := v.schemaOf(name)
		if err != nil {
			return nil, err
		}
		indented := &bytes.Buffer{}
		_ = json.Indent(indented, schema, "", "  ") // The API has sent JSON.
		shown.Schema = indented.String()
	}
	if err := shown.readRules(v, name); err != nil {
		return nil, err
	}
	if limit := shown.Limit; limit != nil && refused == nil {
		if limit.Concurrency != nil {
			shown.Form.Concurrency = strconv.Itoa(*limit.Concurrency)
		}
		if shown.Form.Rate = limit.Rate; limit.Burst > 0 {
			shown.Form.Burst = strconv.Itoa(limit.Burst)
		}
	}
	return view{Template: "type", Title: name, Data: shown, Problem: refused}, nil
}

// count fills in the figures of the type, and reports whether it has any.
func (p *typePage) count(metrics *v1.Metrics) bool {
	p.Mean = metrics.AvgDurationSecondsByJobType[p.JobType]
	at := slices.IndexFunc(metrics.Queues, func(q v1.Queue) bool { return q.JobType == p.JobType })
	if at >= 0 {
		p.Queue = metrics.Queues[at]
	}
	return at >= 0
}

// latelyOf is what happened to the one type that the series is of.
func latelyOf(series *v1.Series) v1.SeriesType {
	lately := v1.SeriesType{JobType: series.JobType, Run: series.Run}
	for _, slot := range series.Slots {
		failed := slot.Retried + slot.Dead
		lately.Failed = append(lately.Failed, failed)
		lately.Ended = append(lately.Ended, failed+slot.Succeeded+slot.Canceled)
	}
	return lately
}

func (v *visit) schemaOf(name string) (schema json.RawMessage, err error) {
	err = v.get(client.Path("job-types", name, "schema"), nil, &schema)
	if isNotFound(err) {
		return nil, nil
	}
	return schema, err
}

func isNotFound(err error) bool {
	problem := client.ProblemOf(err)
	return problem != nil && problem.Status == http.StatusNotFound
}

// isForbidden reports whether the caller lacks a right. An act whose preparation is forbidden is
// sent nevertheless: the API refuses it, and writes that down.
func isForbidden(err error) bool {
	problem := client.ProblemOf(err)
	return problem != nil && problem.Status == http.StatusForbidden
}

func (p *typePage) readRules(v *visit, name string) error {
	limit := &v1.Limit{}
	switch err := v.get(client.Path("debug", "limits", string(job.LimitType), name), nil, limit); {
	case err == nil:
		p.Limit = limit
	case !isNotFound(err):
		return err
	}
	var pauses v1.PauseList
	if err := v.get(client.Path("debug", "pauses"), nil, &pauses); err != nil {
		return err
	}
	for i, pause := range pauses.Pauses {
		if pause.Scope == job.PauseType && pause.Name == name {
			p.Pause = &pauses.Pauses[i]
		}
	}
	return nil
}

func pauseType(v *visit) (answer, error) {
	name := v.param("type")
	form := typeForm{Reason: v.form("reason"), For: v.form("for")}
	spec := v1.PauseSpec{Reason: form.Reason, Drain: v.form("drain") != ""}
	if form.For != "" {
		spec.For = &form.For
	}
	if err := v.send(http.MethodPut, client.Path("debug", "pauses", string(job.PauseType), name), spec, nil); err != nil {
		return v.typeRefused(name, form, err)
	}
	return back{To: typePath(name), Notice: "Paused " + name + ".", Undo: &undo{To: typePath(name, "resume")}}, nil
}

// typeRefused is the page with what is wrong with a form.
func (v *visit) typeRefused(name string, form typeForm, err error) (answer, error) {
	if problem := client.ProblemOf(err); problem != nil && problem.Status == http.StatusUnprocessableEntity {
		return v.typePage(name, form, problem)
	}
	return nil, err
}

func resumeType(v *visit) (answer, error) {
	name, before := v.param("type"), typePage{}
	if err := before.readRules(v, name); err != nil && !isForbidden(err) {
		return nil, err
	}
	if err := v.send(http.MethodDelete, client.Path("debug", "pauses", string(job.PauseType), name), nil, nil); err != nil {
		return nil, err
	}
	return back{To: v.returnTo(typePath(name)), Notice: "Resumed " + name + ".", Undo: before.pauseAgain(v.Now())}, nil
}

// pauseAgain makes the pause anew, until the same time; nil if there is none.
func (p typePage) pauseAgain(now time.Time) *undo {
	if p.Pause == nil {
		return nil
	}
	fields := map[string]string{"reason": p.Pause.Reason}
	if p.Pause.Until != nil {
		fields["for"] = max(p.Pause.Until.Sub(now), time.Second).Round(time.Second).String()
	}
	return &undo{To: typePath(p.Pause.Name, "pause"), Fields: fields}
}

func limitType(v *visit) (answer, error) {
	name := v.param("type")
	form := typeForm{Concurrency: v.form("concurrency"), Rate: v.form("rate"), Burst: v.form("burst")}
	// Fairness stays as it is: setting a limit replaces it.
	found := typePage{}
	if err := found.readRules(v, name); err != nil && !isForbidden(err) {
		return nil, err
	}
	spec := map[string]any{}
	for member, text := range map[string]string{"concurrency": form.Concurrency, "burst": form.Burst} {
		if text != "" {
			spec[member] = numberOrText(text)
		}
	}
	if form.Rate != "" {
		spec["rate"] = form.Rate
	}
	if found.Limit != nil && found.Limit.Fair {
		spec["fair"] = true
	}
	if err := v.send(http.MethodPut, client.Path("debug", "limits", string(job.LimitType), name), spec, nil); err != nil {
		return v.typeRefused(name, form, err)
	}
	return back{To: typePath(name), Notice: "Set the limit of " + name + "."}, nil
}

// numberOrText is a number as it was typed, so that the API says what is wrong with anything else.
func numberOrText(text string) any {
	if number, err := strconv.Atoi(text); err == nil {
		return number
	}
	return text
}

func unlimitType(v *visit) (answer, error) {
	name := v.param("type")
	if err := v.send(http.MethodDelete, client.Path("debug", "limits", string(job.LimitType), name), nil, nil); err != nil {
		return nil, err
	}
	return back{To: typePath(name), Notice: "Removed the limit of " + name + "."}, nil
}

package ui

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/schemaform"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// scheduleForm is the form of a schedule.
type scheduleForm struct {
	JobType string
	// Types are proposed while JobType is empty.
	Types []string
	// Own are the name and the tenant of a new one. When says when it has ticks, Policy what
	// happens to them, Job what the jobs have beside their payload.
	Own, When, Policy, Job []jobTerm
	Payload                *schemaform.Form
	// Other are further members of the job, as JSON.
	Other, OtherMistake string
	// Runs are the next ones, if they were asked for.
	Runs      []v1.ScheduledRun
	Previewed bool
	Denied    string
	// Back leads to the schedule; empty for a new one.
	Back string

	refused *v1.Problem
}

// pathOfName is where the API says what is wrong with the name of a schedule.
const pathOfName = "path.schedule"

// scheduleEditDenied says why the caller cannot edit the schedule; empty if it can.
func (v *visit) scheduleEditDenied(s v1.Schedule) string {
	switch {
	case s.Configured:
		return "A configuration sets it: change it there."
	case v.denied(guard.Submit) != "":
		return v.denied(guard.Submit)
	case len(s.Spec.Job) == 0:
		return "To see its job, you need the scopes observe and payloads."
	}
	return ""
}

func newSchedule(v *visit) (answer, error) {
	name := strings.TrimSpace(v.query("type"))
	if name == "" {
		var types v1.JobTypeList
		if err := v.get("/job-types", nil, &types); err != nil {
			return nil, err
		}
		shown := scheduleForm{}
		for _, one := range types.JobTypes {
			shown.Types = append(shown.Types, one.JobType)
		}
		return shown.view(v), nil
	}
	schema, err := v.schemaOf(name)
	if err != nil {
		return nil, err
	}
	values := map[string]string{"jobType": name, "overlap": string(job.OverlapAllow), "catchUp": string(job.CatchUpLast)}
	return v.scheduleForm(func(name string) string { return values[name] }, payloadForm(schema, nil), nil).view(v), nil
}

func payloadForm(schema, payload json.RawMessage) *schemaform.Form {
	return schemaform.Of(schema, payload, "job", "payload")
}

func editSchedule(v *visit) (answer, error) {
	found, err := v.editable()
	if err != nil {
		return nil, err
	}
	schema, err := v.schemaOf(found.JobType)
	if err != nil {
		return nil, err
	}
	values, payload := valuesOf(found)
	return v.scheduleForm(func(name string) string { return values[name] }, payloadForm(schema, payload), nil).view(v), nil
}

// editable is the schedule that the route names, if the caller may edit it.
func (v *visit) editable() (found v1.Schedule, err error) {
	if err := v.get(client.Path("schedules", v.param("schedule")), url.Values{"tenant": {v.param("tenant")}}, &found); err != nil {
		return found, err
	}
	if denied := v.scheduleEditDenied(found); denied != "" {
		return found, v1.NewProblem(http.StatusForbidden, denied)
	}
	return found, nil
}

// scheduleForm is the form with values. refused is why it was not saved or previewed.
func (v *visit) scheduleForm(value func(string) string, payload *schemaform.Form, refused *v1.Problem) scheduleForm {
	if refused != nil {
		payload.Mark(refused.Errors)
	}
	form := scheduleForm{
		JobType: value("jobType"), Payload: payload, Other: value("other"), Denied: v.denied(guard.Submit), refused: refused,
		When:   fillIn(timingTerms(), value, refused, "#"),
		Policy: fillIn(policyTerms(), value, refused, "#"),
		Job:    fillIn(scheduledTerms(), value, refused, "#/job"),
	}
	form.OtherMistake = form.mistakeOfOther()
	if name := v.param("schedule"); name != "" {
		form.Back = scheduleRow{v1.Schedule{Tenant: v.param("tenant"), Name: name}}.Path()
		return form
	}
	form.Own = fillIn(ownTerms(), value, refused, "#")
	form.Own[0].Mistake = mistakeAt(refused, pathOfName)
	form.Own[1].Mistake = mistakeAt(refused, "query.tenant")
	return form
}

func (f scheduleForm) view(v *visit) view {
	title := "New schedule"
	if f.Back != "" {
		title = "Edit schedule " + v.param("schedule")
	}
	return view{Template: "scheduleform", Title: title, Data: f, Problem: f.refused}
}

// mistakeOfOther is the first mistake in the job that no other field has.
func (f scheduleForm) mistakeOfOther() string {
	if f.refused == nil {
		return ""
	}
	for _, mistake := range f.refused.Errors {
		name, inJob := strings.CutPrefix(mistake.Location, "#/job/")
		name, _, _ = strings.Cut(name, "/")
		hasField := name == "payload" || slices.ContainsFunc(f.Job, func(t jobTerm) bool { return t.Name == name })
		if mistake.Location == "#/job" || inJob && !hasField {
			return strings.TrimPrefix(name+": "+mistake.Message, "#: ")
		}
	}
	return ""
}

func saveNewSchedule(v *visit) (answer, error) {
	tenant := cmp.Or(v.form("tenant"), guard.Tenant(v.context()), job.DefaultTenant)
	return v.saveSchedule(tenant, v.form("name"), func() error {
		switch err := v.get(client.Path("schedules", v.form("name")), url.Values{"tenant": {tenant}}, nil); {
		case v.form("name") == "":
			return v1.Invalid(v1.Mistake{Location: pathOfName, Message: "is required"})
		case err == nil:
			return v1.Invalid(v1.Mistake{Location: pathOfName, Message: "is the name of a schedule: edit that one, or choose another name"})
		}
		return nil
	})
}

func saveSchedule(v *visit) (answer, error) {
	return v.saveSchedule(v.param("tenant"), v.param("schedule"), func() error {
		_, err := v.editable()
		return err
	})
}

// saveSchedule does what the button says: it saves the form, previews it, or shows it with other
// fields for the payload. check refuses to save it.
func (v *visit) saveSchedule(tenant, name string, check func() error) (answer, error) {
	schema, err := v.schemaOf(v.form("jobType"))
	if err != nil {
		return nil, err
	}
	payload := schemaform.Sent(schema, v.request.PostForm, "job", "payload")
	if v.form(schemaform.EditField) != "" {
		return v.scheduleForm(v.form, payload, nil).view(v), nil
	}
	if v.form("preview") != "" {
		return v.previewSchedule(payload)
	}
	body, mistakes := v.scheduleBody(payload)
	if v.denied(guard.Submit) == "" { // Otherwise the API refuses it, and writes that down.
		if err = check(); err == nil && len(mistakes) > 0 {
			err = v1.Invalid(mistakes...)
		}
	}
	row := scheduleRow{v1.Schedule{Tenant: tenant, Name: name}}
	if err == nil {
		err = v.send(http.MethodPut, client.Path("schedules", name)+"?"+url.Values{"tenant": {tenant}}.Encode(), body, nil)
	}
	if problem := client.ProblemOf(err); problem != nil && problem.Status == http.StatusUnprocessableEntity {
		return v.scheduleForm(v.form, payload, problem).view(v), nil
	}
	if err != nil {
		return nil, err
	}
	return back{To: row.Path(), Notice: "Saved " + name + "."}, nil
}

func (v *visit) previewSchedule(payload *schemaform.Form) (answer, error) {
	asked := map[string]any{"limit": 10}
	sentIn(timingTerms(), v.form, asked)
	var runs v1.ScheduledRuns
	err := v.send(http.MethodPost, client.Path("schedules", "preview"), asked, &runs)
	if problem := client.ProblemOf(err); problem != nil && problem.Status == http.StatusUnprocessableEntity {
		return v.scheduleForm(v.form, payload, problem).view(v), nil
	}
	if err != nil {
		return nil, err
	}
	form := v.scheduleForm(v.form, payload, nil)
	form.Runs, form.Previewed = runs.Runs, true
	return form.view(v), nil
}

// scheduleBody is what is sent to the API. It keeps the payload to the letter.
func (v *visit) scheduleBody(payload *schemaform.Form) (json.RawMessage, []v1.Mistake) {
	value, mistakes := schemaform.Value(v.request.PostForm)
	mistakes = payload.Under(mistakes)
	made, other := map[string]any{}, map[string]json.RawMessage{}
	if text := v.form("other"); text != "" && json.Unmarshal([]byte(text), &other) != nil {
		mistakes = append(mistakes, v1.Mistake{Location: "#/job", Message: "is not a JSON object"})
	}
	for name, member := range other {
		made[name] = member
	}
	made["jobType"] = v.form("jobType")
	sentIn(scheduledTerms(), v.form, made)
	members := map[string]any{}
	sentIn(timingTerms(), v.form, members)
	sentIn(policyTerms(), v.form, members)
	return withMember(members, "job", withMember(made, "payload", value)), mistakes
}

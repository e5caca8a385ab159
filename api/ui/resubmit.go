package ui

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/schemaform"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// resubmission is the form that submits a job anew.
type resubmission struct {
	// Payload has its fields; nil if it is not there. Hint says why, and Text is what is written
	// instead.
	Payload                    *schemaform.Form
	Hint, Text                 string
	Tags, Priority, Delay, Key string
	Denied                     string
	Open                       bool
}

// resubmissionOf has the fields of the schema that the type has now. Live parts do without.
func resubmissionOf(v *visit, d timedDetail) (resubmission, error) {
	form := resubmission{Tags: strings.Join(d.Tags, ", "), Priority: strconv.Itoa(int(d.Priority)), Denied: v.denied(guard.Operate)}
	switch {
	case d.ErasedAt != nil:
		form.Denied = "It was erased."
	case d.PayloadsWithheld:
		form.Hint = "You may not see the payload. Leave this empty to keep it, or write another one."
	case len(d.Payload) > maxShown:
		form.Hint = "The payload is too large to edit here. Leave this empty to keep it, or write another one."
	case v.fragment == "" && form.Denied == "":
		schema, err := v.schemaFor(d.JobType)
		form.Payload = schemaform.Of(schema, d.Payload, "payload")
		return form, err
	}
	return form, nil
}

// schemaFor is the schema of a type; nil if there is none, or the caller may not see it.
func (v *visit) schemaFor(name string) (json.RawMessage, error) {
	if v.denied(guard.Read) != "" {
		return nil, nil
	}
	return v.schemaOf(name)
}

// resubmitJob sends what differs from the job. What the API refuses is shown at the fields.
func resubmitJob(v *visit) (answer, error) {
	shown, err := readJob(v)
	if err != nil {
		return nil, err
	}
	before := shown.Resubmit
	sent := resubmission{
		Text: strings.ReplaceAll(v.form("payload"), "\r\n", "\n"), Tags: v.form("tags"), Priority: v.form("priority"),
		Delay: v.form("delay"), Key: v.form("key"), Hint: before.Hint, Denied: before.Denied, Open: true,
	}
	if before.Payload != nil {
		schema, err := v.schemaFor(shown.Job.JobType)
		if err != nil {
			return nil, err
		}
		sent.Payload = schemaform.Sent(schema, v.request.PostForm, "payload")
	}
	shown.Resubmit = sent
	if v.form(schemaform.EditField) != "" {
		return shown.view(), nil
	}
	payload, mistakes := sent.payload(v)
	if sameJSON(payload, shown.Job.Payload) {
		payload = nil
	}
	body, others := sent.changes(before, payload)
	if mistakes = append(mistakes, others...); len(mistakes) > 0 {
		return shown.refused(v1.NewProblem(http.StatusUnprocessableEntity, "Nothing was submitted.", mistakes...)), nil
	}
	var made v1.Accepted
	err = v.send(http.MethodPost, client.Path("debug", "jobs", v.param("id"), "resubmit"), body, &made)
	if problem := client.ProblemOf(err); problem != nil && problem.Status == http.StatusUnprocessableEntity {
		return shown.refused(problem), nil
	}
	if err != nil {
		return nil, err
	}
	said := "Submitted anew. This is the new job."
	if made.Duplicate {
		said = "Nothing was submitted: this job was there."
	}
	return back{To: jobPath(made.JobID), Notice: said}, nil
}

// sameJSON reports whether two values differ in nothing but spaces, escapes and the order of
// members. Numbers must be the same to the letter.
func sameJSON(a, b json.RawMessage) bool {
	var values [2]any
	for i, text := range []json.RawMessage{a, b} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// refused is the page with what is wrong with the form.
func (d jobDetail) refused(problem *v1.Problem) view {
	if d.Resubmit.Payload != nil {
		d.Resubmit.Payload.Mark(problem.Errors)
	}
	page := d.view()
	page.Problem = problem
	return page
}

// payload is what was sent of it; nil for nothing.
func (r resubmission) payload(v *visit) (json.RawMessage, []v1.Mistake) {
	switch {
	case r.Payload != nil:
		value, mistakes := schemaform.Value(v.request.PostForm)
		return value, r.Payload.Under(mistakes)
	case r.Text == "":
		return nil, nil
	case !json.Valid([]byte(r.Text)):
		return nil, []v1.Mistake{{Location: "#/payload", Message: "is not JSON"}}
	}
	return json.RawMessage(r.Text), nil
}

// changes is the body of the request: a member for each field that differs.
func (r resubmission) changes(before resubmission, payload json.RawMessage) (json.RawMessage, []v1.Mistake) {
	var mistakes []v1.Mistake
	var members []string
	add := func(name, value string) { members = append(members, quoted(name)+":"+value) }
	if payload != nil {
		add("payload", string(payload))
	}
	if r.Tags != before.Tags {
		tags := []string{}
		for tag := range strings.SplitSeq(r.Tags, ",") {
			if tag = strings.TrimSpace(tag); tag != "" {
				tags = append(tags, tag)
			}
		}
		encoded, _ := json.Marshal(tags) // Strings always marshal.
		add("tags", string(encoded))
	}
	if r.Priority != "" && r.Priority != before.Priority {
		if _, err := strconv.Atoi(r.Priority); err != nil {
			mistakes = append(mistakes, v1.Mistake{Location: "#/priority", Message: "must be a whole number"})
		} else {
			add("priority", r.Priority)
		}
	}
	if r.Delay != "" {
		add("delay", quoted(r.Delay))
	}
	if r.Key != "" {
		add("idempotencyKey", quoted(r.Key))
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}"), mistakes
}

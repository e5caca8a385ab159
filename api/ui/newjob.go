package ui

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/schemaform"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// newJob is the form of a new job.
type newJob struct {
	JobType string
	Payload *schemaform.Form
	Terms   []jobTerm
	Hold    bool
}

// jobTerm is a member of a submission beside the payload, as text.
type jobTerm struct {
	Name, Label, Help, Value string
	read                     func(string) any
}

// jobTerms are those that the form has. Everything else is for the API and the command line.
func jobTerms() []jobTerm {
	asText := func(text string) any { return text }
	return []jobTerm{
		{Name: "priority", Label: "Priority", Help: "A whole number; higher comes first. Empty for the default.", read: numberOrText},
		{Name: "delay", Label: "Delay", Help: "Such as 10m. Empty to start as soon as possible.", read: asText},
		{Name: "tags", Label: "Tags", Help: "Separated by commas.", read: func(text string) any {
			tags := strings.Split(text, ",")
			for i := range tags {
				tags[i] = strings.TrimSpace(tags[i])
			}
			return tags
		}},
		{Name: "idempotencyKey", Label: "Idempotency key", Help: "Sent again with the same key, it makes no second job.", read: asText},
		{Name: "tenant", Label: "Tenant", Help: "Empty for the default.", read: asText},
	}
}

func showNewJob(v *visit) (answer, error) {
	schema, err := v.schemaOf(v.param("type"))
	if err != nil {
		return nil, err
	}
	return v.newJobPage(schemaform.Of(schema, nil, "payload"), nil), nil
}

func (v *visit) newJobPage(payload *schemaform.Form, refused *v1.Problem) view {
	shown := newJob{JobType: v.param("type"), Payload: payload, Terms: jobTerms(), Hold: v.form("hold") != ""}
	for i := range shown.Terms {
		shown.Terms[i].Value = v.form(shown.Terms[i].Name)
	}
	return view{Template: "newjob", Title: "New job of " + shown.JobType, Data: shown, Problem: refused}
}

func submitNewJob(v *visit) (answer, error) {
	name := v.param("type")
	schema, err := v.schemaOf(name)
	if err != nil {
		return nil, err
	}
	sent := v.request.PostForm
	if v.form(schemaform.EditField) != "" {
		return v.newJobPage(schemaform.Sent(schema, sent, "payload"), nil), nil
	}
	payload, mistakes := schemaform.Value(sent)
	form := schemaform.Sent(schema, sent, "payload")
	if len(mistakes) > 0 {
		return v.newJobRefused(form, v1.Invalid(form.Under(mistakes)...)), nil
	}
	var made v1.Accepted
	err = v.send(http.MethodPost, "/jobs", v.submission(name, payload), &made)
	if problem := client.ProblemOf(err); problem != nil && problem.Status == http.StatusUnprocessableEntity {
		return v.newJobRefused(form, problem), nil
	}
	if err != nil {
		return nil, err
	}
	return back{To: Root + "/jobs/" + made.JobID.String(), Notice: "Submitted a job of " + name + "."}, nil
}

func (v *visit) newJobRefused(form *schemaform.Form, problem *v1.Problem) view {
	form.Mark(problem.Errors)
	return v.newJobPage(form, problem)
}

// submission keeps the payload to the letter.
func (v *visit) submission(name string, payload json.RawMessage) json.RawMessage {
	members := map[string]any{"jobType": name}
	for _, term := range jobTerms() {
		if text := v.form(term.Name); text != "" {
			members[term.Name] = term.read(text)
		}
	}
	if v.form("hold") != "" {
		members["hold"] = true
	}
	text, _ := json.Marshal(members) // Texts and numbers always encode.
	if len(payload) == 0 {
		return text
	}
	return slices.Concat(text[:len(text)-1], []byte(`,"payload":`), payload, []byte("}"))
}

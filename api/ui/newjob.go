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

// jobTerm is a member of a submission beside the payload, as text. Other forms have such fields,
// too. See "term" in parts.html.
type jobTerm struct {
	Name, Label, Help, Value string
	// Mistake says what is wrong with it; empty for nothing.
	Mistake string
	// Options are what can be chosen; none for a text.
	Options []choice
	read    func(string) any
}

// fillIn gives the terms their values, and what is wrong with them in an object at a place.
func fillIn(terms []jobTerm, value func(name string) string, refused *v1.Problem, place string) []jobTerm {
	for i := range terms {
		term := &terms[i]
		term.Value, term.Mistake = value(term.Name), mistakeAt(refused, place+"/"+term.Name)
		for k := range term.Options {
			term.Options[k].Chosen = term.Options[k].Value == term.Value
		}
	}
	return terms
}

// sentIn adds the terms that have a value to the members of an object.
func sentIn(terms []jobTerm, value func(name string) string, members map[string]any) {
	for _, term := range terms {
		if text := value(term.Name); text != "" {
			members[term.Name] = term.read(text)
		}
	}
}

func asText(text string) any { return text }

// jobTerms are those that the form has. Everything else is for the API and the command line.
func jobTerms() []jobTerm {
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
	shown := newJob{JobType: v.param("type"), Payload: payload, Terms: fillIn(jobTerms(), v.form, refused, "#"), Hold: v.form("hold") != ""}
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
	sentIn(jobTerms(), v.form, members)
	if v.form("hold") != "" {
		members["hold"] = true
	}
	return withMember(members, "payload", payload)
}

// withMember is an object, which is not empty, with one more member that is kept to the letter,
// if it is there.
func withMember(members map[string]any, name string, value json.RawMessage) json.RawMessage {
	text, _ := json.Marshal(members) // Texts, numbers and JSON that was read always encode.
	if len(value) == 0 {
		return text
	}
	return slices.Concat(text[:len(text)-1], []byte(","+quoted(name)+":"), value, []byte("}"))
}

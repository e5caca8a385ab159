package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxShown bounds how much of a JSON value a page shows, in bytes.
const maxShown = 64 << 10

// jobDetail is the page of a job.
type jobDetail struct {
	Job       timedDetail
	Waterfall waterfall
	Acts      []act
	Values    []jobValue
	Logs      *v1.JobLogs
	// LogsDenied says why there are no logs; empty if there may be.
	LogsDenied string
	Levels     []choice
	Children   []v1.FoundJob
	// Curl submits the same job; empty if its payload cannot be shown.
	Curl     string
	Resubmit resubmission
	// Question asks before it is canceled; nil if it cannot be.
	Question *question
}

// jobValue is a JSON value of a job.
type jobValue struct {
	Name, Text string
	// Whole is where all of it is, if it was cut.
	Whole string
	Bytes int
}

func showJob(v *visit) (answer, error) {
	shown, err := readJob(v)
	if err != nil {
		return nil, err
	}
	return shown.view(), nil
}

func (d jobDetail) view() view {
	return view{Template: "job", Title: d.Job.JobType + " " + shortID(d.Job.JobID), Data: d}
}

func readJob(v *visit) (jobDetail, error) {
	id, shown := v.param("id"), jobDetail{}
	if err := v.get(client.Path("debug", "jobs", id), nil, &shown.Job); err != nil {
		return shown, err
	}
	d := shown.Job
	shown.Waterfall = waterfallOf(d, v.now)
	shown.Acts, shown.Question = actsOn(v, d)
	if shown.LogsDenied = v.denied(guard.Payloads); shown.LogsDenied == "" {
		shown.Logs = &v1.JobLogs{}
		if err := v.get(client.Path("debug", "jobs", id, "logs"), nil, shown.Logs); err != nil {
			return shown, err
		}
		shown.keepLevel(v.query("level"))
	}
	var children v1.FoundJobs
	if err := v.get(client.Path("debug", "jobs"), url.Values{"parentId": {id}, "limit": {"10"}}, &children); err != nil {
		return shown, err
	}
	shown.Children = children.Jobs
	for _, one := range []struct {
		name  string
		value json.RawMessage
	}{{"Progress", d.Progress}, {"Checkpoint", d.Checkpoint}, {"Result", d.Result}, {"Payload", d.Payload}} {
		if len(one.value) > 0 && !d.PayloadsWithheld {
			shown.Values = append(shown.Values, valueOf(d.JobID, one.name, one.value))
		}
	}
	shown.Curl = curlOf(v, d)
	var err error
	shown.Resubmit, err = resubmissionOf(v, d)
	return shown, err
}

// ID is that of the part of the page.
func (j jobValue) ID() string { return "value-" + strings.ToLower(j.Name) }

// valueOf shows a value indented, with numbers to the letter, and cuts it.
func valueOf(id job.ID, name string, value json.RawMessage) jobValue {
	shown := jobValue{Name: name, Text: indented(value), Bytes: len(value)}
	if len(shown.Text) > maxShown {
		shown.Text = strings.ToValidUTF8(shown.Text[:maxShown], "") + "…"
		shown.Whole = jobPath(id) + "/payload?of=" + strings.ToLower(name)
	}
	return shown
}

func indented(value json.RawMessage) string {
	var text bytes.Buffer
	if json.Indent(&text, value, "", "  ") != nil {
		return string(value)
	}
	return text.String()
}

var logLevels = []job.LogLevel{job.LogDebug, job.LogInfo, job.LogWarn, job.LogError}

// keepLevel leaves out the lines below a level.
func (d *jobDetail) keepLevel(least string) {
	from := max(slices.Index(logLevels, job.LogLevel(least)), 0)
	for i, level := range logLevels {
		d.Levels = append(d.Levels, choice{Value: string(level), Label: string(level), Chosen: i == from})
	}
	for i := range d.Logs.Attempts {
		lines := &d.Logs.Attempts[i].Lines
		*lines = slices.DeleteFunc(*lines, func(l v1.LogLine) bool { return slices.Index(logLevels, l.Level) < from })
	}
}

// actsOn are the acts on a job. Those that its state does not allow are disabled.
// The question is that of the one that cannot be undone; nil if it is disabled.
func actsOn(v *visit, d timedDetail) (acts []act, asked *question) {
	reasons := map[string]string{}
	ended := d.State.Final()
	if ended {
		reasons["cancel"] = "It has ended."
	}
	if d.State != job.Created || d.Held {
		reasons["hold"] = "Only a scheduled job can be held."
	}
	if d.State != job.Created {
		reasons["release"] = "Only a scheduled or held job can be released."
	}
	switch {
	case d.ErasedAt != nil:
		reasons["requeue"] = "It was erased."
	case d.State != job.Dead:
		reasons["requeue"] = "Only a dead job can be requeued."
	}
	for _, one := range jobActs {
		made := act{
			To: jobPath(d.JobID) + "/act", Label: one.Label, Back: v.request.URL.RequestURI(), Fields: map[string]any{"act": one.Verb},
			Denied: cmp.Or(v.denied(one.Scope), reasons[one.Verb]),
		}
		if one.Final {
			made.Class, made.Dialog = "danger", one.Verb+"-it"
			if made.Denied == "" {
				asked = one.question(v, nil)
				asked.To, asked.Back = made.To, made.Back
			}
		}
		acts = append(acts, made)
	}
	return acts, asked
}

func actOnJob(v *visit) (answer, error) {
	id := v.param("id")
	act, confirmed, err := jobActIn(v)
	if err != nil {
		return nil, err
	}
	if act.asks(v, confirmed) {
		return act.question(v, nil).view(), nil
	}
	undo := act.undo(v, id)
	var after v1.Job
	if err := v.send(http.MethodPost, client.Path("jobs", id, act.Verb), nil, &after); err != nil {
		return nil, err
	}
	said := "The job was " + act.Done + "."
	if act.Verb == "cancel" && !after.Ended() {
		said = "The job was asked to stop."
	}
	return back{To: v.returnTo(Root + client.Path("jobs", id)), Notice: said, Undo: undo}, nil
}

// plainText is a text that is no page.
type plainText []byte

func (t plainText) write(v *visit) {
	v.writer.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = v.writer.Write(t) // It fails when the client has left.
}

// showPayload shows the whole of a value.
func showPayload(v *visit) (answer, error) {
	var d v1.JobDetail
	if err := v.get(client.Path("debug", "jobs", v.param("id")), nil, &d); err != nil {
		return nil, err
	}
	value, known := map[string]json.RawMessage{
		"": d.Payload, "payload": d.Payload, "checkpoint": d.Checkpoint, "progress": d.Progress, "result": d.Result,
	}[v.query("of")]
	switch {
	case d.PayloadsWithheld:
		return nil, v1.NewProblem(http.StatusForbidden, v.denied(guard.Payloads))
	case !known || len(value) == 0:
		return nil, v1.NewProblem(http.StatusNotFound, "There is no such value.")
	}
	return plainText(value), nil
}

// curlOf submits the same job from a terminal.
func curlOf(v *visit, d timedDetail) string {
	if d.PayloadsWithheld || d.ErasedAt != nil || len(d.Payload) > maxShown {
		return ""
	}
	body := fmt.Sprintf(`{"jobType":%s,"tenant":%s,"priority":%d,"payload":%s}`, quoted(d.JobType), quoted(d.Tenant), d.Priority, d.Payload)
	return "curl -u admin -H 'Content-Type: application/json' -d '" + strings.ReplaceAll(body, "'", `'\''`) + "' " + v.address() + "/jobs"
}

func quoted(text string) string {
	encoded, _ := json.Marshal(text) // A string always marshals.
	return string(encoded)
}

// DueOrTook says when a job that waits is due, and how long one ran that has ended or runs.
func (f frame) DueOrTook(j v1.FoundJob) template.HTML {
	switch {
	case j.Held:
		return "–"
	case j.StartedAt != nil && j.FinishedAt != nil && j.State != job.Canceled:
		return template.HTML(took(j.FinishedAt.Sub(*j.StartedAt)))
	case j.StartedAt != nil && j.State == job.Running:
		return template.HTML(took(max(f.now.Sub(*j.StartedAt), 0)))
	case !j.State.Final() && j.RunAt != nil:
		return "due " + f.When(j.RunAt)
	}
	return "–"
}

// Left is how long a lease has left.
func (f frame) Left(l *timedLease) string { return took(max(l.ExpiresAt.Sub(f.now), 0)) }

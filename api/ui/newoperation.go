package ui

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// typedAbove is the number of jobs above which it must be typed.
const typedAbove = 1000

// operationForm is what the page asks for, and what a form has sent.
type operationForm struct {
	Actions []choice
	Action  job.Action
	// Fields are the members of the filter, as the list of jobs has them in its URL.
	Fields []chip
	Chips  []chip
	// List leads to the jobs.
	List                   string
	Priority, Rate, Reason string
	// Seen is what the dry run has found; nil if no action was chosen, or it was refused.
	Seen *v1.OperationAnswer
	// Key names the request, so that a form that is sent twice starts one operation.
	Key string
	// Button names the verb and the number.
	Button string
	// Typed is the number that must be typed; empty for none.
	Typed string
	// Counting says that the number is not known yet: the same page again, at Again, has more of it.
	// Enough does not wait for it.
	Counting      bool
	Again, Enough string
	// Stopped is why the count could not go on when it was last tried; empty if it could.
	Stopped string
	Denied  string
}

// newOperation shows what an operation with the filter of the URL would act on.
func newOperation(v *visit) (answer, error) {
	return operationPage(v, v.request.URL.Query(), nil)
}

// operationPage makes a dry run of what was sent. refused is why an operation was not started.
func operationPage(v *visit, sent url.Values, refused *v1.Problem) (answer, error) {
	form := operationForm{
		Action: job.Action(sent.Get("action")), Priority: sent.Get("priority"), Rate: sent.Get("rate"), Reason: sent.Get("reason"),
		Key: rand.Text(), Denied: v.denied(guard.Operate),
	}
	if form.Rate == "" {
		form.Rate = strconv.Itoa(job.DefaultRate)
	}
	if form.Action == "" && (sent.Get("fingerprint") != "" || slices.Equal(sent["state"], []string{"dead"})) {
		form.Action = job.ActionRequeue
	}
	for _, action := range job.Actions() {
		label := verbs[action]
		if action == job.ActionEdit {
			label = "Set the priority"
		}
		form.Actions = append(form.Actions, choice{string(action), label, action == form.Action})
	}
	filter, kept, unread := filterIn(sent)
	if refused == nil {
		refused = unread
	}
	form.Chips = chipsOf(filter)
	list := url.Values{}
	for _, field := range kept {
		form.Fields = append(form.Fields, field)
		list.Add(field.Name, field.Value)
	}
	form.List = jobsPath(list)
	shown := view{Template: "newoperation", Title: "Act on many jobs", Problem: refused}
	if unread == nil && form.Action != "" && form.Denied == "" && (form.Action != job.ActionEdit || form.Priority != "") {
		seen, err := v.dryRun(form.body(filter, sent.Get("all") != ""), sent.Get("frozenAt"))
		problem := client.ProblemOf(err)
		switch {
		case err == nil:
			form.counted(seen, sent)
		case problem != nil && problem.Status == http.StatusUnprocessableEntity:
			if shown.Problem == nil {
				shown.Problem = problem
			}
		default:
			return nil, err
		}
	}
	shown.Data = form
	return shown, nil
}

// How long a dry run counts for a page, and then at a time in the background.
const countFor, countOnFor = 100 * time.Millisecond, 250 * time.Millisecond

// dryRun returns what the dry run has found so far that began at that moment, or a new one.
func (v *visit) dryRun(body map[string]any, frozenAt string) (snapshot.Counted, error) {
	body["dryRun"] = true
	said, err := json.Marshal(body)
	if err != nil {
		return snapshot.Counted{}, err
	}
	began, _ := time.Parse(time.RFC3339Nano, frozenAt) // What is no time begins a new one.
	waiting, cancel := context.WithDeadline(v.context(), v.readUntil)
	defer cancel()
	return v.counts.Of(waiting, v.rights()+"\n"+string(said), began,
		func(ctx context.Context, frozen time.Time, cursor string) (answer v1.OperationAnswer, err error) {
			asked := maps.Clone(body)
			asked["countMilliseconds"] = countFor.Milliseconds()
			if !frozen.IsZero() {
				asked["frozenAt"] = frozen
			}
			if cursor != "" {
				asked["countMilliseconds"], asked["cursor"] = countOnFor.Milliseconds(), cursor
			}
			err = v.api.Send(ctx, http.MethodPost, client.Path("debug", "operations"), asked, &answer)
			return answer, err
		})
}

// counted shows what a dry run has found so far.
func (f *operationForm) counted(seen snapshot.Counted, sent url.Values) {
	f.Seen = &seen.OperationAnswer
	f.Button = f.verb() + " " + jobsOf(int64(seen.Count), seen.More)
	if seen.Count > typedAbove {
		f.Typed = strconv.Itoa(seen.Count)
	}
	f.Counting = seen.More && sent.Get("enough") == ""
	if f.Counting && seen.Stopped != nil {
		f.Stopped = "it took too long"
		if problem := client.ProblemOf(seen.Stopped); problem != nil {
			f.Stopped = problem.Detail
		}
	}
	again := url.Values{"action": {string(f.Action)}}
	for name, value := range map[string]string{"priority": f.Priority, "rate": sent.Get("rate"), "reason": f.Reason} {
		if value != "" {
			again.Set(name, value)
		}
	}
	for _, field := range f.Fields {
		again.Add(field.Name, field.Value)
	}
	if !seen.FrozenAt.IsZero() {
		again.Set("frozenAt", seen.FrozenAt.Format(time.RFC3339Nano))
	}
	f.Again = withQuery(Root+"/operations/new", again)
	again.Set("enough", "true")
	f.Enough = withQuery(Root+"/operations/new", again)
}

func (f operationForm) verb() string { return verbs[f.Action] }

// body is what a request to the API says of the jobs. Only the API checks its values.
func (f operationForm) body(filter v1.JobFilter, all bool) map[string]any {
	body := map[string]any{"action": f.Action, "filter": filter, "all": all}
	if f.Action == job.ActionEdit {
		body["priority"] = number(f.Priority)
	}
	return body
}

// number is a whole number, or the text, which the API refuses.
func number(text string) any {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return text
}

// filterIn reads a filter from the parameters of the list of jobs, and returns those that it has.
// The filter lacks what is refused, so it may select more than was meant.
func filterIn(sent url.Values) (filter v1.JobFilter, kept []chip, refused *v1.Problem) {
	var mistakes []v1.Mistake
	keep := func(name, value string) { kept = append(kept, chip{name, value}) }
	for _, list := range sent["state"] {
		for state := range strings.SplitSeq(list, ",") {
			if state != "" {
				filter.State = append(filter.State, state)
				keep("state", state)
			}
		}
	}
	for _, field := range filterFields {
		if value := sent.Get(field.name); value != "" {
			*field.of(&filter) = value
			keep(field.name, value)
		}
	}
	if value := sent.Get("parentId"); value != "" {
		if id, err := job.ParseID(value); err != nil {
			mistakes = append(mistakes, v1.Mistake{Location: "#/filter/parentId", Message: "must be the id of a job"})
		} else {
			filter.ParentID = &id
		}
		keep("parentId", value)
	}
	for _, bound := range []struct {
		name string
		into **time.Time
	}{{"createdFrom", &filter.CreatedFrom}, {"createdBefore", &filter.CreatedBefore}} {
		if value := sent.Get(bound.name); value != "" {
			if at, err := time.Parse(time.RFC3339, value); err != nil {
				mistakes = append(mistakes, v1.Mistake{
					Location: "#/filter/" + bound.name, Message: "must be an RFC 3339 time, such as 2030-01-31T12:00:00Z",
				})
			} else {
				*bound.into = &at
			}
			keep(bound.name, value)
		}
	}
	if sent.Get("all") != "" {
		keep("all", "true")
	}
	if len(mistakes) > 0 {
		refused = v1.NewProblem(http.StatusUnprocessableEntity, "The filter cannot be read, so no jobs are counted.", mistakes...)
	}
	return filter, kept, refused
}

// startOperation starts what the form says, on the jobs that its dry run has counted.
func startOperation(v *visit) (answer, error) {
	sent := v.request.PostForm
	form := operationForm{Action: job.Action(v.form("action")), Priority: v.form("priority"), Rate: v.form("rate"), Reason: v.form("reason")}
	if jobs := v.form("jobs"); jobs != "" && digits(v.form("typed")) != jobs {
		return operationPage(v, sent, v1.NewProblem(http.StatusUnprocessableEntity, "Nothing was started.",
			v1.Mistake{Location: "#/typed", Message: "must be the number of jobs: " + jobs}))
	}
	filter, _, unread := filterIn(sent)
	if unread != nil {
		return operationPage(v, sent, unread)
	}
	body := form.body(filter, v.form("all") != "")
	body["reason"], body["rate"] = form.Reason, number(form.Rate)
	if at := v.form("frozenAt"); at != "" {
		body["frozenAt"] = at
	}
	request := client.Request{Method: http.MethodPost, Path: client.Path("debug", "operations"), Header: http.Header{}, Body: body}
	if key := v.form("key"); key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	var started v1.OperationAnswer
	err := v.api.Call(v.context(), request, &started)
	if problem := client.ProblemOf(err); problem != nil && problem.Status == http.StatusUnprocessableEntity {
		return operationPage(v, sent, problem)
	}
	if err != nil {
		return nil, err
	}
	return back{To: Root + client.Path("operations", started.Operation.OperationID.String()), Notice: "Started."}, nil
}

// digits leaves out what people write between them.
func digits(text string) string { return strings.NewReplacer(",", "", ".", "", " ", "").Replace(text) }

package ui

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// jobFields are the filters of the list of jobs but the states: parameters of the page, which
// are those of the API, and what their fields say.
var jobFields = []jobField{
	{Name: "jobType", Label: "Type", List: "types"},
	{Name: "tenant", Label: "Tenant", List: "tenants"},
	{Name: "tag", Label: "Tag"},
	{Name: "worker", Label: "Worker"},
	{Name: "errorCode", Label: "Error code"},
	{Name: "fingerprint", Label: "Error fingerprint"},
	{Name: "parentId", Label: "Submitted by"},
	{Name: "createdFrom", Label: "Created from", Hint: "UTC, such as 2030-01-31T12:00:00Z"},
	{Name: "createdBefore", Label: "Created before", Hint: "UTC, such as 2030-01-31T12:00:00Z"},
	{Name: "payload", Label: "Payload contains"},
}

// jobField is a filter with its value.
type jobField struct {
	Name, Label, Hint string
	// List is the id of the list of proposals; empty for none.
	List  string
	Value string
	// Denied says why it is disabled; empty if it is not.
	Denied string
}

var jobStates = []choice{
	{Value: "queued", Label: "Queued"},
	{Value: "scheduled", Label: "Scheduled"},
	{Value: "held", Label: "Held"},
	{Value: "retrying", Label: "Retrying"},
	{Value: "running", Label: "Running"},
	{Value: "succeeded", Label: "Succeeded"},
	{Value: "dead", Label: "Dead"},
	{Value: "canceled", Label: "Canceled"},
}

// jobFilter is what the list of jobs is restricted to.
type jobFilter struct {
	Fields []jobField
	States []choice
	Chips  []setFilter
	query  url.Values
}

// setFilter is a filter that is set, with a link to the list without it.
type setFilter struct{ Text, Without string }

// jobFilterOf reads the filter from the URL. Empty fields of the form are no filters.
func jobFilterOf(v *visit) jobFilter {
	asked := v.request.URL.Query()
	f := jobFilter{Fields: slices.Clone(jobFields), States: slices.Clone(jobStates), query: url.Values{}}
	for _, state := range statesIn(asked) {
		if state == "retry" {
			state = "retrying"
		}
		if !slices.Contains(f.query["state"], state) {
			f.query.Add("state", state)
		}
	}
	for i := range f.Fields {
		field := &f.Fields[i]
		field.Value = strings.TrimSpace(asked.Get(field.Name))
		if field.Value != "" {
			f.query.Set(field.Name, field.Value)
		}
		if field.Name == "payload" {
			field.Denied = v.denied("payloads")
		}
	}
	for i := range f.States {
		state := &f.States[i]
		if state.Chosen = slices.Contains(f.query["state"], state.Value); state.Chosen {
			f.Chips = append(f.Chips, setFilter{state.Label, f.without("state", state.Value)})
		}
	}
	for _, field := range f.Fields {
		if field.Value != "" {
			f.Chips = append(f.Chips, setFilter{field.Label + ": " + field.Value, f.without(field.Name, field.Value)})
		}
	}
	return f
}

// statesIn are the states that a URL asks for, each once, whether they exist or not.
func statesIn(asked url.Values) (states []string) {
	for _, list := range asked["state"] {
		for state := range strings.SplitSeq(list, ",") {
			if state != "" && !slices.Contains(states, state) {
				states = append(states, state)
			}
		}
	}
	return states
}

// without is the list without one value of a filter.
func (f jobFilter) without(name, value string) string {
	rest := url.Values{}
	for key, values := range f.query {
		rest[key] = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return key == name && v == value })
	}
	return withQuery(Root+"/jobs", rest)
}

// with is the filter with another parameter, which may be empty.
func (f jobFilter) with(name, value string) url.Values {
	query := url.Values{}
	for key, values := range f.query {
		query[key] = values
	}
	if value != "" {
		query.Set(name, value)
	}
	return query
}

func withQuery(path string, query url.Values) string {
	if encoded := query.Encode(); encoded != "" {
		return path + "?" + encoded
	}
	return path
}

// clockOrDay is a time of today, or else a date with it.
func (f frame) clockOrDay(at time.Time) string {
	if f.now.Sub(at) < 24*time.Hour {
		return f.Clock(at)
	}
	return f.Exact(at)
}

// Since is how far back a search went.
func (f frame) Since(at *time.Time) string { return f.clockOrDay(*at) }

package ui

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/audit"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// auditFilters are the parameters of the page, which are those of the API, and their labels.
var auditFilters = []struct{ Name, Label string }{
	{"actor", "By"}, {"action", "Action"}, {"tenant", "Tenant"}, {"jobId", "Job"}, {"from", "From"}, {"before", "Before"},
}

// auditPage is what the page shows.
type auditPage struct {
	Acts []shownAct
	// Chips are the filters in force.
	Chips []auditChip
	// Fields are the values in the form.
	Fields map[string]string
	// Actions are those to choose from.
	Actions []choice
	// Newest and Older are where the other pages are; empty for none.
	Newest, Older string
}

// auditChip is a filter in force, with the path that leaves it out.
type auditChip struct{ Label, Value, Without string }

// shownAct is a row.
type shownAct struct {
	v1.Act

	// Counted is how many there were; empty if nothing was counted.
	Counted string
	// Details are what else it concerned.
	Details []detail
	// Job and Operation are where to look at these; empty for none.
	Job, Operation string
	// Class is the colour of the result, and Outcome its first word.
	Class, Outcome, Why string
}

type detail struct{ Name, Value string }

func (s *site) audit(r chi.Router) {
	r.Get("/audit", s.serve(showAudit))
}

func showAudit(v *visit) (answer, error) {
	query := url.Values{}
	page := auditPage{Fields: map[string]string{}, Actions: []choice{{"", "All", v.query("action") == ""}}}
	for _, filter := range auditFilters {
		if value := strings.TrimSpace(v.query(filter.Name)); value != "" {
			query.Set(filter.Name, value)
			page.Fields[filter.Name] = value
		}
	}
	for _, name := range audit.Actions() {
		page.Actions = append(page.Actions, choice{name, name, name == v.query("action")})
	}
	for _, filter := range auditFilters {
		if value := query.Get(filter.Name); value != "" {
			without := maps.Clone(query)
			without.Del(filter.Name)
			page.Chips = append(page.Chips, auditChip{filter.Label, value, auditPath(without)})
		}
	}
	if cursor := v.query("cursor"); cursor != "" {
		page.Newest = auditPath(query)
		query.Set("cursor", cursor)
	}
	var found v1.ActList
	if err := v.get("/debug/audit", query, &found); err != nil {
		return filterRefused(view{Template: "audit", Title: "Audit", Data: page}, err, http.StatusUnprocessableEntity)
	}
	if found.NextCursor != "" {
		older := maps.Clone(query)
		older.Set("cursor", found.NextCursor)
		page.Older = auditPath(older)
	}
	for _, act := range found.Acts {
		page.Acts = append(page.Acts, actOf(act))
	}
	return view{Template: "audit", Title: "Audit", Data: page}, nil
}

func auditPath(query url.Values) string {
	if len(query) == 0 {
		return Root + "/audit"
	}
	return Root + "/audit?" + query.Encode()
}

// fine are how the results of acts begin that did not fail. Those in the background have several.
var fine = []string{job.ActDone, "asked", "started", "finished", "stopped"}

func actOf(act v1.Act) shownAct {
	shown := shownAct{Act: act, Class: "problem", Outcome: "Failed", Why: act.Result}
	switch why, refused := strings.CutPrefix(act.Result, "refused: "); {
	case refused:
		shown.Class, shown.Outcome, shown.Why = "warning", "Refused", why
	case slices.ContainsFunc(fine, func(result string) bool { return strings.HasPrefix(act.Result, result) }):
		shown.Class, shown.Outcome, shown.Why = "ok", "Done", strings.TrimPrefix(act.Result, job.ActDone)
	}
	if act.Count != nil {
		shown.Counted = count(*act.Count)
	}
	if act.JobID != nil {
		shown.Job = Root + "/jobs/" + act.JobID.String()
	}
	for _, name := range slices.Sorted(maps.Keys(act.Filter)) {
		shown.Details = append(shown.Details, detail{name, act.Filter[name]})
	}
	if id := cmp.Or(act.Filter["operationId"], act.Filter["id"]); id != "" && strings.HasPrefix(act.Action, "operation.") {
		shown.Operation = Root + "/operations/" + url.PathEscape(id)
	}
	return shown
}

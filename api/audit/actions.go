package audit

import (
	"slices"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Who makes the acts of an operation.
const (
	// ofOperators are always written down.
	ofOperators who = iota
	// ofClients are written down if an operator does them: a caller with the scope operate, or
	// somebody on a page of the UI.
	ofClients
	// submissions are written down if they come from a page of the UI.
	submissions
)

type who int

// action is what an operation does.
type action struct {
	name string
	of   who
	// itself says that the statement that does it writes it down, too.
	itself bool
}

// actions are those of all operations that change something, by their ids. For a caller who
// lacks the scope, every one of them is written down.
var actions = map[string]action{
	"submit-job":      {name: "job.submit", of: submissions},
	"submit-jobs":     {name: "job.submit", of: submissions},
	"submit-workflow": {name: "workflow.submit", of: submissions},

	"cancel-job":        {name: "job.cancel", of: ofClients},
	"hold-job":          {name: "job.hold", of: ofClients},
	"release-job":       {name: "job.release", of: ofClients},
	"edit-job":          {name: "job.edit", of: ofClients},
	"cancel-workflow":   {name: "workflow.cancel", of: ofClients},
	"hold-workflow":     {name: "workflow.hold", of: ofClients},
	"release-workflow":  {name: "workflow.release", of: ofClients},
	"set-schedule":      {name: "schedule.set", of: ofClients},
	"delete-schedule":   {name: "schedule.delete", of: ofClients},
	"pause-schedule":    {name: "schedule.pause", of: ofClients},
	"resume-schedule":   {name: "schedule.resume", of: ofClients},
	"run-schedule":      {name: "schedule.run", of: ofClients},
	"backfill-schedule": {name: "schedule.backfill", of: ofClients},

	"requeue-job":        {name: "job.requeue"},
	"resubmit-job":       {name: "job.resubmit"},
	"requeue-workflow":   {name: "workflow.requeue"},
	"retry-dead-letters": {name: "dead-letter.requeue"},
	"edit-jobs":          {name: "jobs.edit"},
	"erase-job":          {name: "job.erase", itself: true},
	"erase-tenant":       {name: "tenant.erase", itself: true},
	"set-limit":          {name: "limit.set"},
	"delete-limit":       {name: "limit.delete"},
	"set-pause":          {name: "pause.set"},
	"pause-all":          {name: "pause.set"},
	"end-pause":          {name: "pause.end"},
	"resume-all":         {name: "pause.end"},
	"drain-worker":       {name: "worker.drain"},
	"resume-worker":      {name: "worker.resume"},
	"swap-plugin":        {name: "plugin.swap"},
	"restart-plugin":     {name: "plugin.restart"},
	"disable-plugin":     {name: "plugin.disable"},
	"enable-plugin":      {name: "plugin.enable"},
	"command-plugin":     {name: "plugin.command"},
	"start-operation":    {name: "operation.start", itself: true},
	"stop-operation":     {name: "operation.stop", itself: true},
	"make-login-link":    {name: "session.link"},
}

// The acts of logins.
const (
	SessionBegin   = "session.begin"
	SessionEnd     = "session.end"
	SessionRefused = "session.refused"
)

// harmless are the operations that change nothing although they are no GET.
var harmless = map[string]bool{"preview-schedule": true}

// Knows reports whether an operation that is no GET has its action, or changes nothing.
func Knows(operation string) bool {
	_, changes := actions[operation]
	return changes || harmless[operation]
}

// Actions are the names of all actions, in order.
func Actions() []string {
	names := []string{SessionBegin, SessionEnd, SessionRefused}
	for _, does := range job.Actions() {
		names = append(names, "operation."+string(does))
	}
	for _, a := range actions {
		names = append(names, a.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

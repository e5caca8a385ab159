package v1

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ActList is a page of the audit log.
type ActList struct {
	Acts       []Act  `json:"acts" nullable:"false" doc:"Newest first."`
	NextCursor string `json:"nextCursor,omitempty" doc:"Pass it as cursor to get the next page. Absent on the last page."`
}

// Act is what somebody did, or tried to do.
type Act struct {
	ActID  string    `json:"actId"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor,omitempty" example:"token shop" doc:"The user who logged in, or a token by its name. Absent if nobody asked who it was."`
	Action string    `json:"action" example:"job.requeue" doc:"What it was."`
	Tenant string    `json:"tenant,omitempty" doc:"Whom it concerned. Absent for several, or if that is unknown."`
	JobID  *job.ID   `json:"jobId,omitempty" format:"uuid" doc:"The job that it concerned."`
	// Filter is names and values.
	Filter map[string]string `json:"filter,omitempty" doc:"What else it concerned, or which jobs: parts of the URL of the request."`
	Count  *int64            `json:"count,omitempty" doc:"How many there were."`
	Reason string            `json:"reason,omitempty" doc:"What the actor says."`
	Result string            `json:"result" example:"done" doc:"done; or refused and why; or how it failed."`
}

// ActOf is what operators see of an act.
func ActOf(a job.Act) Act {
	shown := Act{
		ActID: strconv.FormatInt(a.ID, 10), At: a.At.UTC(), Actor: a.Actor, Action: a.Action, Tenant: a.Tenant, JobID: a.JobID,
		Count: a.Count, Reason: a.Reason, Result: a.Result,
	}
	var filter map[string]json.RawMessage
	if len(a.Filter) > 0 && json.Unmarshal(a.Filter, &filter) == nil {
		shown.Filter = make(map[string]string, len(filter))
	}
	for name, value := range filter {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		shown.Filter[name] = text
	}
	if shown.Result == "" {
		shown.Result = job.ActDone
	}
	return shown
}

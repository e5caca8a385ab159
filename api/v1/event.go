package v1

import (
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Delivery is the payload of a job that announces an end to a callback URL.
type Delivery struct {
	URL   string          `json:"url"`
	Event json.RawMessage `json:"event"`
}

// Webhook is the body that a callback URL gets, as Standard Webhooks lays it out.
type Webhook struct {
	Type      string     `json:"type" enum:"job.succeeded,job.dead,job.canceled"`
	Timestamp time.Time  `json:"timestamp" doc:"When the job ended."`
	Data      WebhookJob `json:"data"`
}

// WebhookJob is a job as its client sees it, when it ended.
type WebhookJob struct {
	Job
	Tenant        string `json:"tenant"`
	ResultOmitted bool   `json:"resultOmitted,omitempty" doc:"True if the result is larger than 64 KiB, and so not here."`
}

// WebhookOf returns what to tell the callback URL.
func WebhookOf(c job.Callback) Webhook {
	return Webhook{
		Type: job.EventName(c.State), Timestamp: c.At.UTC(),
		Data: WebhookJob{Job: JobOf(c.View()), Tenant: c.Tenant, ResultOmitted: c.ResultOmitted && c.State == job.Succeeded},
	}
}

// DeliveryOf returns the payload of the job that tells the callback URL.
func DeliveryOf(c job.Callback) (Delivery, error) {
	event, err := json.Marshal(WebhookOf(c))
	return Delivery{URL: c.URL, Event: event}, err
}

// Event is the data of a message about the end of a job. The message's event has its type:
// job.succeeded, job.dead or job.canceled.
type Event struct {
	JobID   job.ID     `json:"jobId" format:"uuid"`
	JobType string     `json:"jobType" example:"SEND_EMAIL"`
	Tenant  string     `json:"tenant"`
	Tags    []string   `json:"tags" nullable:"false"`
	Status  job.Status `json:"status" enum:"COMPLETED,FAILED,CANCELED"`
	At      time.Time  `json:"at" doc:"When the job ended."`
}

// EventOf returns the data of an event.
func EventOf(e job.Event) Event {
	tags := e.Tags
	if tags == nil {
		tags = []string{}
	}
	return Event{JobID: e.JobID, JobType: e.Type, Tenant: e.Tenant, Tags: tags, Status: e.State.Status(), At: e.At.UTC()}
}

// EventGap is the data of the message "gap": events were deleted before this client has seen
// them.
type EventGap struct {
	After int64 `json:"after" doc:"The last event that the client has seen."`
	Next  int64 `json:"next" doc:"The next event that there is, or will be."`
}

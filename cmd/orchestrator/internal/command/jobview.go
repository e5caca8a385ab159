package command

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/client"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// styles says how statuses, states, outcomes and conditions look.
var styles = map[string]show.Style{
	client.Pending: show.Mind, client.Running: show.Busy, client.Completed: show.Good,
	client.Failed: show.Bad, client.Canceled: show.Faint,

	"created": show.Mind, "queued": show.Mind, "retry": show.Mind, "running": show.Busy,
	"succeeded": show.Good, "dead": show.Bad, "canceled": show.Faint,

	"failed": show.Bad, "permanent": show.Bad, "timeout": show.Bad, "crashed": show.Bad, "suspected": show.Mind,
	"lease_expired": show.Bad, "interrupted": show.Mind, "given_back": show.Faint, "snoozed": show.Faint,

	"alive": show.Good, "silent": show.Bad, "stopped": show.Faint,

	"ok": show.Good, client.Warning: show.Mind, client.Trouble: show.Bad,
}

func styled(text string) show.Cell { return show.Cell{Text: text, Style: styles[text]} }

// showJob prints a job as clients see it.
func (s *session) showJob(answer client.Answer) error {
	return present(s, answer, func(job client.Job) error {
		fields := show.NewFields(s.out)
		s.addJob(fields, job)
		fields.Add("PROGRESS", show.Text(compact(job.Progress)))
		fields.Add("RESULT", show.Text(compact(job.Result)))
		return fields.Flush()
	})
}

func (s *session) addJob(fields *show.Fields, job client.Job) {
	fields.Add("JOB ID", show.Text(job.JobID))
	fields.Add("TYPE", show.Text(job.JobType))
	fields.Add("STATUS", styled(job.Status))
	fields.Add("CREATED", show.Text(s.moment(&job.CreatedAt)))
	fields.Add("UPDATED", show.Text(s.moment(&job.UpdatedAt)))
	fields.Add("STARTED", show.Text(s.moment(job.StartedAt)))
	fields.Add("FINISHED", show.Text(s.moment(job.FinishedAt)))
	fields.Add("TOOK", show.Text(s.took(job)))
}

// took is how long the latest attempt has run; empty for a job that waits,
// and for a canceled one, which may have waited for its next attempt.
func (s *session) took(job client.Job) string {
	switch {
	case job.StartedAt == nil || job.Status == client.Pending || job.Status == client.Canceled:
		return ""
	case job.FinishedAt != nil:
		return show.Seconds(job.FinishedAt.Sub(*job.StartedAt).Seconds())
	}
	return show.Age(max(s.now().Sub(*job.StartedAt), 0))
}

// jobTable lists jobs as clients see them.
func (s *session) jobTable() *show.Table {
	return show.NewTable(s.out,
		show.Column{Name: "JOB ID"}, show.Column{Name: "TYPE"}, show.Column{Name: "STATUS"},
		show.Column{Name: "AGE", Right: true}, show.Column{Name: "TOOK", Right: true}, show.Column{Name: "PROGRESS", Cut: true})
}

func (s *session) jobRow(table *show.Table, job client.Job) {
	table.Row(show.Text(job.JobID), show.Text(job.JobType), styled(job.Status),
		show.Text(s.ago(job.CreatedAt)), show.Text(s.took(job)), show.Text(compact(job.Progress)))
}

// compact writes JSON on one line; empty for none.
func compact(value json.RawMessage) string {
	var out bytes.Buffer
	if len(value) == 0 || json.Compact(&out, value) != nil {
		return string(value)
	}
	return out.String()
}

func seconds(d float64) time.Duration { return time.Duration(d * float64(time.Second)) }

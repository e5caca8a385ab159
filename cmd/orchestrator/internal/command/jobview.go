package command

import (
	"bytes"
	"encoding/json"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// styles are the styles of statuses, states, outcomes, conditions and severities.
var styles = map[string]show.Style{
	"PENDING": show.Mind, "RUNNING": show.Busy, "COMPLETED": show.Good,
	"FAILED": show.Bad, "CANCELED": show.Faint,

	"created": show.Mind, "queued": show.Mind, "retry": show.Mind, "running": show.Busy,
	"succeeded": show.Good, "dead": show.Bad, "canceled": show.Faint,

	"failed": show.Bad, "permanent": show.Bad, "timeout": show.Bad, "crashed": show.Bad, "suspected": show.Mind,
	"lease_expired": show.Bad, "interrupted": show.Mind, "given_back": show.Faint, "snoozed": show.Faint,

	"alive": show.Good, "draining": show.Mind, "drained": show.Mind, "silent": show.Bad, "stopped": show.Faint,

	"up": show.Good, "broken": show.Bad,

	"ok": show.Good, "warning": show.Mind, "problem": show.Bad,
}

func styled[W ~string](word W) show.Cell {
	return show.Cell{Text: string(word), Style: styles[string(word)]}
}

// submittedJob is the answer to a submission.
type submittedJob struct {
	v1.Job
	Duplicate bool `json:"duplicate"`
}

// noteDuplicate says that the job of another submission follows.
func (j submittedJob) noteDuplicate(s *session) {
	if j.Duplicate {
		s.notes.Print("No job was made, because this one was there:\n")
	}
}

func (s *session) showSubmitted(submitted submittedJob) error {
	submitted.noteDuplicate(s)
	return s.showJob(submitted.Job)
}

func (s *session) showJob(j v1.Job) error {
	fields := show.NewFields(s.out)
	s.addJob(fields, j)
	fields.Add("PROGRESS", compact(j.Progress))
	fields.Add("RESULT", compact(j.Result))
	return fields.Flush()
}

func (s *session) addJob(fields *show.Fields, j v1.Job) {
	fields.Add("JOB ID", j.JobID)
	fields.Add("TYPE", j.JobType)
	fields.Add("STATUS", styled(j.Status))
	fields.Add("CREATED", s.moment(&j.CreatedAt))
	fields.Add("UPDATED", s.moment(&j.UpdatedAt))
	fields.Add("STARTED", s.moment(j.StartedAt))
	fields.Add("FINISHED", s.moment(j.FinishedAt))
	fields.Add("TOOK", s.took(j))
	fields.Add("ERASED", s.moment(j.ErasedAt))
	if j.PayloadsWithheld {
		fields.Add("WITHHELD", "payload, progress, checkpoint and result: the credentials lack the scope payloads")
	}
}

// took is how long the latest attempt ran; empty for a waiting job, and for a canceled
// one, which may have been waiting.
func (s *session) took(j v1.Job) string {
	switch {
	case j.StartedAt == nil || j.Status == job.StatusPending || j.Status == job.StatusCanceled:
		return ""
	case j.FinishedAt != nil:
		return show.Seconds(j.FinishedAt.Sub(*j.StartedAt).Seconds())
	}
	return show.Age(max(s.now().Sub(*j.StartedAt), 0))
}

func (s *session) jobTable() *show.Table {
	return show.NewTable(s.out, "JOB ID", "TYPE", "STATUS", "AGE", "TOOK", "PROGRESS").CutLast()
}

func (s *session) jobRow(table *show.Table, j v1.Job) {
	table.Row(j.JobID, j.JobType, styled(j.Status), s.since(j.CreatedAt), show.Right(s.took(j)), progressOf(j))
}

// progressOf says of an erased job that it is one.
func progressOf(j v1.Job) string {
	if j.ErasedAt != nil {
		return "erased"
	}
	return compact(j.Progress)
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

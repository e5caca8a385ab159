package ui

import (
	"net/http"
	"time"

	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// wasHeld is the time of a job that was held.
const wasHeld = "held"

// undo takes the act back, which is about to be done to the job: a scheduled job gets its time
// again, and a held one is held. It is nil for an act that cannot be undone.
func (a jobAct) undo(v *visit, id string) *undo {
	if a.Verb != "hold" && a.Verb != "release" {
		return nil
	}
	var before v1.JobDetail
	if v.get(client.Path("debug", "jobs", id), nil, &before) != nil || before.State != job.Created {
		return nil
	}
	at := ""
	switch {
	case before.Held:
		at = wasHeld
	case before.RunAt != nil:
		at = before.RunAt.Format(time.RFC3339Nano)
	}
	return &undo{To: Root + client.Path("jobs", id, "undo"), Fields: map[string]string{"runAt": at}}
}

// undoJob makes a job wait as it did. It fails if the job has been started meanwhile.
func undoJob(v *visit) (answer, error) {
	id, at := v.param("id"), v.form("runAt")
	done := back{To: Root + client.Path("jobs", id)}
	var err error
	switch at {
	case wasHeld:
		done.Notice = "Undone: the job is held."
		err = holdAgain(v, id)
	case "": // It waited for other jobs.
		done.Notice = "Undone."
		err = v.send(http.MethodPost, client.Path("jobs", id, "release"), nil, nil)
	default:
		done.Notice = "Undone: the job is scheduled as before."
		err = v.send(http.MethodPatch, client.Path("jobs", id), map[string]string{"runAt": at}, nil)
	}
	if err != nil {
		return nil, err
	}
	return done, nil
}

// holdAgain holds a job that was released. One that is queued gets a time first: only scheduled
// jobs can be held.
func holdAgain(v *visit, id string) error {
	err := v.send(http.MethodPost, client.Path("jobs", id, "hold"), nil, nil)
	if problem := client.ProblemOf(err); problem == nil || problem.Status != http.StatusConflict {
		return err
	}
	if err := v.send(http.MethodPatch, client.Path("jobs", id), map[string]string{"delay": "1h"}, nil); err != nil {
		return err
	}
	return v.send(http.MethodPost, client.Path("jobs", id, "hold"), nil, nil)
}

package describe

import (
	"net/http"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func samplePreview() v1.OperationAnswer {
	return v1.OperationAnswer{
		Count: 4210, FrozenAt: sampleSince, Samples: []v1.FoundJob{sampleFound},
		Warnings: []string{"version v1, under which SEND_EMAIL jobs died, still serves: they may die again"},
	}
}

func sampleStarted() v1.OperationAnswer {
	answer, o := samplePreview(), sampleOperation()
	o.Found, o.Done, o.Skipped = 0, 0, map[string]int64{}
	answer.Operation = &o
	return answer
}

func sampleOperation() v1.Operation {
	return v1.OperationOf(job.Operation{
		ID: sampleID, Action: job.ActionRequeue, Rate: 200, Reason: "mail is back", By: "token ops", State: job.OperationRunning,
		Filter:   job.Filter{States: []job.State{job.Dead}, Type: "SEND_EMAIL", Code: "timeout", FrozenAt: sampleSince},
		Expected: job.Count{Jobs: 4210}, Found: 1200, Done: 1197, Skipped: map[string]int64{"erased": 3},
		StartedAt: sampleSince, UpdatedAt: sampleSince.Add(6 * time.Second),
	})
}

func stoppedOperation() v1.Operation {
	o := sampleOperation()
	o.State, o.StoppedBy, o.FinishedAt = job.OperationStopped, "token ops", new(sampleSince.Add(6*time.Second))
	return o
}

func noSuchOperation() map[int]rejection {
	return map[int]rejection{http.StatusNotFound: {
		why: "There is no such operation, or it is on jobs of another tenant", example: v1.NewProblem(http.StatusNotFound, job.ErrNoOperation.Error()),
	}}
}

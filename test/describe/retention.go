package describe

import (
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

var (
	samplePlan = v1.RetentionPlanOf(
		job.RetentionPolicies{
			Default: job.Retention{Succeeded: new(168 * time.Hour), Canceled: new(168 * time.Hour), Keys: new(720 * time.Hour)},
			Types:   map[string]job.Retention{"SEND_EMAIL": {Succeeded: new(24 * time.Hour), Canceled: new(24 * time.Hour), Dead: new(720 * time.Hour), Keys: new(720 * time.Hour)}},
		},
		job.RetentionPlan{At: sampleSince, Sampled: 1, Groups: []job.RetentionGroup{
			{Type: "SEND_EMAIL", State: job.Succeeded, Fate: job.FateDelete, Jobs: 120_431, Bytes: 48_172_400, Oldest: new(sampleSince.Add(-25 * time.Hour))},
			{Type: "SEND_EMAIL", State: job.Queued, Fate: job.FateOpen, Jobs: 17, Bytes: 6_800},
		}},
	)
	sampleErasure = job.Erasure{ID: sampleID, Tenant: "acme", Reason: "contract ended", By: "token ops", AskedAt: sampleSince, UpdatedAt: sampleSince}
	sampleErased  = erased(sampleDone)
	sampleAct     = v1.Act{
		ActID: "4711", At: sampleSince, Actor: "token shop", Action: "job.requeue", Tenant: "acme", JobID: &sampleID, Count: new(int64(1)),
		Filter: map[string]string{"limit": "100"}, Reason: "the bank is back", Result: job.ActDone,
	}
)

func erased(j v1.Job) v1.Job {
	j.Progress, j.Result, j.ErasedAt = nil, nil, new(sampleSince)
	return j
}

func finishedErasure() v1.Erasure {
	erasure := v1.ErasureOf(sampleErasure)
	erasure.Erased, erasure.Open, erasure.FinishedAt = 120_431, 2, new(sampleSince.Add(time.Minute))
	return erasure
}

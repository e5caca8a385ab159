package v1

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// RetentionPlan is what retention would do now.
type RetentionPlan struct {
	At       time.Time         `json:"at"`
	Policies []RetentionPolicy `json:"policies" nullable:"false" doc:"By what this orchestrator deletes: first for all types without a policy of their own, then by type."`
	// SampledShare is below 1 if the numbers are estimates.
	SampledShare float64          `json:"sampledShare" doc:"The share of the ledger that was read: 1, or less if it is large. Then the numbers are estimates."`
	Groups       []RetentionGroup `json:"groups" nullable:"false" doc:"All jobs by type, state and fate."`
}

// RetentionPolicy is how long jobs of a type are kept after their end.
type RetentionPolicy struct {
	JobType   string `json:"jobType,omitempty" doc:"Absent for all types without a policy of their own."`
	Succeeded string `json:"succeeded" example:"168h0m0s" doc:"A Go duration, or keep."`
	Canceled  string `json:"canceled" example:"168h0m0s" doc:"A Go duration, or keep."`
	Dead      string `json:"dead" example:"keep" doc:"A Go duration, or keep."`
	Keys      string `json:"keys" example:"720h0m0s" doc:"How long idempotency keys are kept: a Go duration, or keep."`
}

// RetentionGroup is the jobs of a type and a state that have the same fate.
type RetentionGroup struct {
	JobType string    `json:"jobType"`
	State   job.State `json:"state" enum:"created,queued,retry,succeeded,dead,canceled" doc:"In the ledger: running jobs are queued."`
	Fate    job.Fate  `json:"fate" enum:"delete,blank,key,young,keep,needed,open" doc:"delete: the time is over. blank: so it is, but the key is kept, so only the key will be left. key: nothing but the key is left. young: the time is not over. keep: kept for ever. needed: other jobs still need them. open: they have not ended."`
	Jobs    int64     `json:"jobs"`
	Bytes   int64     `json:"bytes" doc:"Of the rows in the ledger, without indexes, attempts and logs."`
	// Oldest is absent for open jobs.
	Oldest *time.Time `json:"oldestFinishedAt,omitempty" doc:"When the first of them ended."`
}

// RetentionPlanOf is what operators see of a plan.
func RetentionPlanOf(policies job.RetentionPolicies, plan job.RetentionPlan) RetentionPlan {
	shown := RetentionPlan{At: plan.At.UTC(), SampledShare: plan.Sampled, Policies: []RetentionPolicy{}}
	types, retentions := policies.All()
	for i, r := range retentions {
		shown.Policies = append(shown.Policies, RetentionPolicy{
			JobType: types[i], Succeeded: keptFor(r.Succeeded), Canceled: keptFor(r.Canceled), Dead: keptFor(r.Dead), Keys: keptFor(r.Keys),
		})
	}
	shown.Groups = listOf(plan.Groups, func(g job.RetentionGroup) RetentionGroup {
		return RetentionGroup{JobType: g.Type, State: g.State, Fate: g.Fate, Jobs: g.Jobs, Bytes: g.Bytes, Oldest: utc(g.Oldest)}
	})
	return shown
}

func keptFor(keep *time.Duration) string {
	if keep == nil {
		return "keep"
	}
	return keep.String()
}

// EraseSpec says why a job is erased.
type EraseSpec struct {
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"Why, for the audit log."`
}

// ErasureSpec asks for the erasure of a tenant's jobs.
type ErasureSpec struct {
	Tenant string `json:"tenant" maxLength:"200" doc:"All ended jobs of this tenant are erased. May be absent if the credentials are bound to a tenant."`
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"Why, for the audit log."`
}

// Erasure is a request to erase all ended jobs of a tenant.
type Erasure struct {
	ErasureID  job.ID     `json:"erasureId" format:"uuid"`
	Tenant     string     `json:"tenant"`
	Reason     string     `json:"reason,omitempty"`
	AskedBy    string     `json:"askedBy,omitempty" doc:"The user who logged in, or a token by its name."`
	AskedAt    time.Time  `json:"askedAt" doc:"Jobs that were created later are left."`
	Erased     int64      `json:"erased" doc:"How many jobs it has erased."`
	Open       int64      `json:"open" doc:"How many jobs it has left because they had not ended. Cancel them, and ask again."`
	UpdatedAt  time.Time  `json:"updatedAt"`
	FinishedAt *time.Time `json:"finishedAt,omitempty" doc:"Absent until it has looked at all jobs of the tenant."`
}

// ErasureOf is what operators see of an erasure.
func ErasureOf(e job.Erasure) Erasure {
	return Erasure{
		ErasureID: e.ID, Tenant: e.Tenant, Reason: e.Reason, AskedBy: e.By, AskedAt: e.AskedAt.UTC(), Erased: e.Erased, Open: e.Open,
		UpdatedAt: e.UpdatedAt.UTC(), FinishedAt: utc(e.FinishedAt),
	}
}

// ErasureList is a list of erasures.
type ErasureList struct {
	Erasures []Erasure `json:"erasures" nullable:"false" doc:"The newest first, at most 1000."`
}

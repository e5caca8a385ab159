package store

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// viewRow is a job as clients may see it.
type viewRow struct {
	JobID      [16]byte
	JobType    string
	Tenant     string
	State      string
	CreatedAt  time.Time
	UpdatedAt  time.Time
	StartedAt  *time.Time
	FinishedAt *time.Time
	Progress   []byte
	Result     []byte

	TraceParent string
	TraceState  string
}

func (r viewRow) view() job.View {
	return job.View{
		ID: r.JobID, Type: r.JobType, Tenant: r.Tenant, State: job.State(r.State),
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		Progress: r.Progress, Result: r.Result, Trace: traceContext(r.TraceParent, r.TraceState),
	}
}

func views(rows []viewRow) []job.View {
	list := make([]job.View, len(rows))
	for i, row := range rows {
		list[i] = row.view()
	}
	return list
}

package runtime

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

// Store is what the loops need of the database. Its verbs are fenced: a write for a
// lease that is no longer held changes nothing.
type Store interface {
	jobs.Store
	Claim(ctx context.Context, worker string, types []string, limit int, lease time.Duration) ([]job.Claimed, error)
	ReleaseUnanswered(ctx context.Context, worker string, known []job.LeaseID) (int, error)
	Renew(ctx context.Context, worker string, leases []job.Lease, lease time.Duration) ([]job.Renewed, error)
	SaveProgress(ctx context.Context, batch []job.Report) (lost []job.Lease, err error)
	SaveLogs(ctx context.Context, batch []job.Report) (lost []job.Lease, err error)
	Settle(ctx context.Context, batch []job.Settlement) ([]job.SettleResult, error)
	Park(ctx context.Context, batch []job.Parking) ([]job.SettleResult, error)
	Reap(ctx context.Context, limit int, lease time.Duration) ([]job.Expired, error)
	Promote(ctx context.Context, limit int) (job.Promoted, error)
	// Admit does one round of admission.
	Admit(ctx context.Context, rules *job.Rules) (job.Admission, error)
	WakeLanes(ctx context.Context) (lanes int, err error)
	ParkReady(ctx context.Context, types []string, limit int) (parked int, err error)
	Recount(ctx context.Context, rules *job.Rules) (corrected int, err error)
	Age(ctx context.Context, after time.Duration, skip func(jobType string) bool) ([]job.Edited, error)
	NextDue(ctx context.Context) (in time.Duration, ok bool, err error)
	Expire(ctx context.Context, limit int) (lapsed []job.Lapsed, entries int, err error)
	NextExpiry(ctx context.Context) (in time.Duration, ok bool, err error)
	TidyUnique(ctx context.Context, after []byte, limit int) (next []byte, deleted int, err error)
	Unserved(ctx context.Context, age time.Duration) ([]job.Unserved, error)
	DeclareTypes(ctx context.Context, specs []job.TypeSpec) error
	RegisterWorker(ctx context.Context, worker job.Worker, aliveFor time.Duration) error
	DescribeWorker(ctx context.Context, worker string, plugins json.RawMessage) error
	WorkersOnHost(ctx context.Context, host, except string) ([]job.Worker, error)
	ExpireWorkers(ctx context.Context, workers []string) (leases int, err error)
	WorkerDrained(ctx context.Context, worker string) error
	RollUpTallies(ctx context.Context, limit int) (rolledUp int, err error)
	AgeTallies(ctx context.Context) error
}

// Plugins is what the loops need of the supervisor of plugin processes.
type Plugins interface {
	// Pools lists the plugins that are up, with their free slots.
	Pools() []job.Pool
	// Types lists what the plugins have declared; absent limits are zero.
	Types() []job.TypeSpec
	// Changed is signalled when slots or pools have changed.
	Changed() <-chan struct{}
	// Start begins an attempt in a process of the plugin, and does not wait for one to
	// come up. If it returns an error, nothing was begun and the reporter is never
	// called.
	Start(plugin string, a job.Assignment, r job.Reporter) (job.Run, error)
}

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
	// Renew marks the worker as alive, which renews its kept leases, and renews the leases given. It returns all
	// that are held. Forgotten are kept leases of which the worker has no attempt: they expire.
	Renew(ctx context.Context, worker string, leases []job.Lease, forgotten []job.LeaseID, lease time.Duration) ([]job.Renewed, error)
	SaveProgress(ctx context.Context, batch []job.Report) (lost []job.Lease, err error)
	SaveLogs(ctx context.Context, batch []job.Report) (lost []job.Lease, err error)
	Settle(ctx context.Context, batch []job.Settlement) ([]job.SettleResult, error)
	// SettleWithFollowUps is Settle for successes with follow-ups. It also returns what became
	// of these; nil if that is not known.
	SettleWithFollowUps(ctx context.Context, batch []job.Settlement) ([]job.SettleResult, [][]job.Submitted, error)
	Park(ctx context.Context, batch []job.Parking) ([]job.SettleResult, error)
	Reap(ctx context.Context, limit int, lease time.Duration) ([]job.Expired, error)
	// Outlook says what there is to do before the next look.
	Outlook(ctx context.Context, next time.Duration) (job.Outlook, error)
	Promote(ctx context.Context, limit int) (job.Promoted, error)
	// Admit does one round of admission.
	Admit(ctx context.Context, rules *job.Rules) (job.Admission, error)
	// Follow does one round of following ended jobs up.
	Follow(ctx context.Context, plan job.FollowPlan) (job.Following, error)
	// SweepWorkflows counts jobs of the workflows that have ended unnoticed.
	SweepWorkflows(ctx context.Context, workflows []job.ID) (job.Following, error)
	UnfinishedWorkflows(ctx context.Context, after job.ID, limit int, canceling bool) ([]job.ID, error)
	// TidyWorkflows deletes some workflows after an id whose jobs are gone, those with a key
	// not before keys has passed.
	TidyWorkflows(ctx context.Context, after job.ID, keys *time.Duration) (next job.ID, more bool, err error)
	// Redeliver tries again to announce ends that could not be announced.
	Redeliver(ctx context.Context, plan job.DeliveryPlan) (job.Delivered, error)
	ForgetEvents(ctx context.Context, log job.EventLog, limit int) (deleted int, err error)
	WakeLanes(ctx context.Context) (lanes int, err error)
	ParkReady(ctx context.Context, types []string, limit int) (parked int, err error)
	Recount(ctx context.Context, rules *job.Rules) (corrected int, err error)
	Age(ctx context.Context, after time.Duration, skip func(jobType string) bool) ([]job.Edited, error)
	NextDue(ctx context.Context) (in time.Duration, ok bool, err error)
	Expire(ctx context.Context, limit int) (lapsed []job.Lapsed, entries int, err error)
	NextExpiry(ctx context.Context) (in time.Duration, ok bool, err error)
	TidyUnique(ctx context.Context, after []byte, limit int) (next []byte, deleted int, err error)
	// Sweep deletes and blanks jobs whose time is over.
	Sweep(ctx context.Context, walk job.Walk, policies job.RetentionPolicies, worker string, limit int, restart bool) (job.Swept, error)
	ForgetWalk(ctx context.Context, walk job.Walk) error
	ForgetLogins(ctx context.Context) (deleted int, err error)
	// ForgetActs deletes up to limit records of what people did longer ago than keep.
	ForgetActs(ctx context.Context, keep time.Duration, limit int) (deleted int, err error)
	// EraseNext does a portion of an erasure, if there is one.
	EraseNext(ctx context.Context, limit int) (erased map[job.State]int64, more bool, err error)
	// OperateNext does a portion of an operation, if one is due. An error that only the
	// operation has is a *job.OperationError.
	OperateNext(ctx context.Context) (done job.PortionDone, found bool, err error)
	OperationDue(ctx context.Context) (in time.Duration, ok bool, err error)
	// PostponeOperation puts off an operation whose portion has failed. After so many failures
	// it has failed for good.
	PostponeOperation(ctx context.Context, id job.ID, why string, failures int) (failed bool, err error)
	ForgetOperations(ctx context.Context, ago time.Duration) error
	// FireSchedules fires ticks of up to limit schedules that are due, in one transaction.
	FireSchedules(ctx context.Context, limit int, decide func(due []job.DueSchedule, now time.Time) []job.Firing) ([]job.Fired, error)
	NextTick(ctx context.Context) (in time.Duration, ok bool, err error)
	Fingerprint(ctx context.Context, limit int) (found int, err error)
	Unserved(ctx context.Context, age time.Duration) ([]job.Unserved, error)
	DeclareTypes(ctx context.Context, specs []job.TypeSpec) error
	RegisterWorker(ctx context.Context, worker job.Worker, aliveFor time.Duration) error
	DescribeWorker(ctx context.Context, worker string, plugins json.RawMessage) error
	// Surroundings says what a worker on a host must know of the others.
	Surroundings(ctx context.Context, host, worker string) (job.Surroundings, error)
	ExpireWorkers(ctx context.Context, workers []string) (leases int, err error)
	WorkerDrained(ctx context.Context, worker string) error
	RollUpTallies(ctx context.Context, limit int) (rolledUp int, err error)
	AgeTallies(ctx context.Context) error
	RecordLatencies(ctx context.Context, ago time.Duration, batch []job.TypeLatencies) (passed time.Duration, err error)
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

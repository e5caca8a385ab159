package spans

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Attempt gathers what the spans of an attempt will say, and exports them when its end
// is in the ledger. A nil one does nothing. It is safe for concurrent use.
type Attempt struct {
	exporter Exporter
	parent   trace.SpanContext // of the submission
	own      trace.SpanContext
	// carried is that of own, as the job carries it.
	carried string
	job     subject
	worker  string
	// reapedBy is the worker that took the lease over; empty when none did.
	reapedBy string

	mu            sync.Mutex
	began         time.Time // zero when the handler was never started
	ended         time.Time
	waitsExported bool // those before the attempt
	held          bool // its lease was left to run out
	// checkpoints counts those that arrived: on their way, later ones replace earlier ones.
	checkpoints    int
	lastCheckpoint time.Time
	events         []event // all others: few, since a handler is stopped once
}

// subject is what the spans say of the job. Its times are by the clock of the worker.
type subject struct {
	job.Lease
	id, jobType, tenant  string
	attempt, maxAttempts int
	resumed              bool
	// due is when the job was due, and could have been claimed.
	due time.Time
	// gates are what the job has passed, and admitted is when; nil and zero for none.
	gates    []job.Gate
	admitted time.Time
	// last is how the attempt before ended; nil for the first.
	last *job.LastAttempt
}

// Claimed begins to trace a job that the worker has just claimed, and gives the job the
// context of the attempt. It returns nil if the job is not sampled. The claim was sent
// and answered at the times given, by the clock of the worker.
func (t *Tracer) Claimed(c *job.Claimed, worker string, sent, answered time.Time) *Attempt {
	if t == nil {
		return nil
	}
	a := t.attempt(c.Trace, c.Lease, worker)
	if a == nil {
		return nil
	}
	offset := offset(c.ClaimedAt, sent, answered)
	a.job.jobType, a.job.tenant = c.Type, c.Tenant
	a.job.attempt, a.job.maxAttempts = c.Attempt, c.MaxAttempts
	a.job.resumed = c.Checkpoint != nil
	a.job.wait(c.CreatedAt, c.RunAt, c.Last, offset)
	if c.Passed != nil {
		a.job.gates, a.job.admitted = c.Passed.Gates, c.Passed.AdmittedAt.Add(offset)
	}
	c.Trace.Parent = a.carried
	return a
}

// offset converts a time of the database's clock to that of the worker, given when the
// statement was sent and answered. It is zero if the clocks may agree.
func offset(database, sent, answered time.Time) time.Duration {
	switch {
	case database.Before(sent):
		return sent.Sub(database)
	case database.After(answered):
		return answered.Sub(database)
	}
	return 0
}

// Reaped traces an attempt whose lease the worker has taken over: nobody else will. It
// returns nil if the job is not sampled.
func (t *Tracer) Reaped(e *job.Expired, by string) *Attempt {
	if t == nil {
		return nil
	}
	a := t.attempt(e.Trace, e.Lease, e.Worker)
	if a == nil {
		return nil
	}
	a.reapedBy = by
	a.job.jobType, a.job.tenant = e.Type, e.Tenant
	a.job.attempt, a.job.maxAttempts = e.Attempt, e.MaxAttempts
	a.job.wait(e.CreatedAt, e.RunAt, e.Last, 0)
	a.began, a.ended = e.ClaimedAt, e.ReapedAt
	a.waitsExported = true // by the worker, when the handler began
	if e.HeartbeatAt.After(e.ClaimedAt) {
		a.events = append(a.events, event{eventLastHeartbeat, e.HeartbeatAt})
	}
	a.events = append(a.events, event{eventLeaseExpired, e.ExpiredAt})
	return a
}

// attempt returns nil if the job is not sampled.
func (t *Tracer) attempt(of job.Trace, lease job.Lease, worker string) *Attempt {
	parent, ok := sampled(of)
	if !ok {
		return nil
	}
	own := parent.WithSpanID(attemptID(lease.JobID, lease.Fence))
	return &Attempt{
		exporter: t.exporter, parent: parent, own: own, carried: carried(own, "").Parent,
		job: subject{Lease: lease, id: lease.JobID.String()}, worker: worker,
	}
}

// wait converts the times of the database's clock. A released job keeps its place and is
// not due later, and a job may be submitted as due long ago.
func (s *subject) wait(created, due time.Time, last *job.LastAttempt, offset time.Duration) {
	if due.Before(created) {
		due = created
	}
	s.due = due.Add(offset)
	if last != nil {
		s.last = &job.LastAttempt{EndedAt: last.EndedAt.Add(offset), Outcome: last.Outcome}
	}
}

// ID is the id of the attempt's span; empty if there will be none.
func (a *Attempt) ID() string {
	if a == nil {
		return ""
	}
	return a.carried[spanAt : flagsAt-1]
}

// Happened records an event, at this moment.
func (a *Attempt) Happened(name string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if name == EventCheckpoint {
		a.checkpoints++
		a.lastCheckpoint = time.Now()
		return
	}
	a.events = append(a.events, event{name, time.Now()})
}

// Ended records that the attempt ends at this moment. It began at the time given, which
// is zero if its handler was never started.
func (a *Attempt) Ended(began time.Time) {
	if a == nil {
		return
	}
	now := time.Now()
	if !began.IsZero() {
		now = began.Add(now.Sub(began)) // however the clock was set meanwhile
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began, a.ended = began, now
}

// Held records that the handler's process has died, and that the attempt's end is held
// until its lease would have run out.
func (a *Attempt) Held() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = true
}

package runtime

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
	"github.com/holdfast-jobs/holdfast/runtime/progress"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// attempt is one run of a handler under a lease: the handler's process on one side,
// the lease's proof on the other. It stops the handler when its time is up, its job is
// canceled, its lease cannot be proven, or the worker shuts down: first it asks, then
// it kills.
type attempt struct {
	*shared
	claimed   job.Claimed
	pool      *job.Pool      // as it was at the claim; the claim's other attempts have the same
	spans     *spans.Attempt // nil unless the job is traced
	claimedAt time.Time      // when it was known to be claimed, by the local clock
	queued    time.Time      // when it began to wait for a slot; the dispatcher's
	startBy   time.Time      // when its job expires, by the local clock; zero for never
	place     int            // among those in flight, from 1 on; 0 if it is not. inFlight's

	mu          sync.Mutex
	began       time.Time // zero while it waits for a slot
	run         job.Run   // nil until the handler was started
	provenUntil time.Time
	keptUntil   time.Time        // when its lease is to be named again; zero while it is not kept
	stopped     job.CancelReason // empty while the handler may go on
	canceling   bool             // the job's cancel was requested
	done        bool
	limit       timeLimit // the limits'
	kill        *time.Timer

	// ending is how it has ended, for the settler.
	ending ending

	// reports is nil until the handler reports something. It is the reporting
	// goroutine's.
	reports *progress.Attempt
}

// shared is what the attempts of a worker use together. It is made once, and only the limits
// change, under their own lock.
type shared struct {
	killGrace time.Duration
	ends      finisher
	recorder  *progress.Recorder
	metrics   *metrics.Metrics
	limits    timeLimits
}

// finisher receives each attempt once, when it has ended.
type finisher interface {
	finish(a *attempt, outcome job.Outcome)
}

// isolated says that the attempt must have a process to itself.
func (a *attempt) isolated() bool { return a.claimed.Crashes > 0 }

// begin records that the handler is about to be started, and returns for how long the
// lease is proven. It returns false for an attempt that was stopped while it waited.
// It stops one whose proof is about to run out: a claim may take long to be answered.
func (a *attempt) begin(askBefore time.Duration) (leaseFor time.Duration, ok bool) {
	now := time.Now()
	a.fence(now, askBefore, 0)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return 0, false
	}
	a.began = now
	return a.provenUntil.Sub(now), true
}

// notStarted records that the handler could not be started after all. It returns false
// for an attempt that was stopped in the meantime.
func (a *attempt) notStarted() bool {
	a.mu.Lock()
	a.began = time.Time{}
	stopped := a.stopped
	a.done = stopped != ""
	a.mu.Unlock()
	if stopped != "" {
		a.ends.finish(a, outcomeUnstarted(stopped))
	}
	return stopped == ""
}

// outcomeUnstarted is the outcome of an attempt that was stopped while it waited.
func outcomeUnstarted(reason job.CancelReason) job.Outcome {
	switch reason {
	case job.CancelRequested:
		return job.Outcome{Kind: job.CancelConfirmed}
	case job.CancelLeaseLost:
		return job.Outcome{Kind: job.Released, Code: string(reason), Message: "its lease could not be proven until a slot of a handler came free for it"}
	default:
		return job.Outcome{Kind: job.Released, Code: "no_slot", Message: "no slot of a handler came free for it"}
	}
}

// postpone releases the job of an attempt that waits, to be claimed again after a
// while.
func (a *attempt) postpone(by time.Duration) {
	a.endUnstarted(job.Outcome{
		Kind: job.Released, Code: job.CodeNoProcess, Message: "no process of its own came free for it", RetryAfter: &by,
	})
}

// release releases the job of an attempt that waits, because it was paused meanwhile.
func (a *attempt) release() {
	a.endUnstarted(job.Outcome{Kind: job.Released, Code: "paused", Message: "it was paused before it was started"})
}

// endUnstarted ends an attempt that waits. One that has begun goes on.
func (a *attempt) endUnstarted(outcome job.Outcome) {
	a.mu.Lock()
	waits := a.began.IsZero() && !a.done
	a.done = a.done || waits
	a.mu.Unlock()
	if waits {
		a.ends.finish(a, outcome)
	}
}

// late reports whether its job has expired while the attempt waited. The time until the
// expiry was known when the database made the claim, and is counted from when the claim was
// sent: the clocks of the hosts may differ. So the attempt is late a little too early, never
// too late.
func (a *attempt) late() bool { return !a.startBy.IsZero() && !time.Now().Before(a.startBy) }

// lapse ends an attempt that waits: its job was not started in time, and is canceled.
func (a *attempt) lapse() {
	a.endUnstarted(job.Outcome{
		Kind: job.CancelConfirmed, Code: job.CodeExpired, Message: job.LapsedReason(a.claimed.ExpiresAt),
	})
}

// started hands over the run. The handler may have finished already.
func (a *attempt) started(run job.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return
	}
	a.run = run
	a.spans.Began(a.began)
	if !a.isolated() {
		a.limits.start(a, a.began, a.claimed.Timeout)
	}
	if a.stopped != "" {
		a.ask()
	}
}

// Began implements job.Reporter. The time until a process of its own is up does not
// count against the handler.
func (a *attempt) Began() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.done {
		a.limits.start(a, time.Now(), a.claimed.Timeout)
	}
}

// stop asks the handler to end, and kills its process if it does not end within the
// grace. An attempt that has not been started ends at once. Only the first reason
// counts, except that a lost lease outranks every other.
func (a *attempt) stop(reason job.CancelReason) {
	a.mu.Lock()
	if a.done || (a.stopped != "" && reason != job.CancelLeaseLost) || a.stopped == reason {
		a.mu.Unlock()
		return
	}
	first := a.stopped == ""
	a.stopped = reason
	a.spans.Happened(stopEvents[reason])
	if reason == job.CancelLeaseLost {
		a.metrics.LeaseLost(metrics.LossUnproven)
	}
	if a.run != nil && first {
		a.ask()
	}
	waits := a.began.IsZero()
	a.done = waits
	a.mu.Unlock()
	if waits {
		a.ends.finish(a, outcomeUnstarted(reason))
	}
}

// ask is called with the mutex held, once.
func (a *attempt) ask() {
	a.run.Cancel(a.stopped)
	run := a.run
	a.kill = time.AfterFunc(a.killGrace, func() {
		a.spans.Happened(spans.EventKilled)
		run.Kill()
	})
}

// stopEvents are the events of handlers that are asked to stop.
var stopEvents = map[job.CancelReason]string{
	job.CancelRequested: spans.EventCancelRequested,
	job.CancelTimeout:   spans.EventTimedOut,
	job.CancelLeaseLost: spans.EventLeaseLost,
	job.CancelShutdown:  spans.EventShutdown,
}

// fence stops a handler whose lease runs out: it is asked to stop when less than
// askBefore of the proof is left, and killed when less than killBefore is.
func (a *attempt) fence(now time.Time, askBefore, killBefore time.Duration) {
	a.mu.Lock()
	left := a.provenUntil.Sub(now)
	run, done := a.run, a.done
	a.mu.Unlock()
	if done || left > askBefore {
		return
	}
	a.stop(job.CancelLeaseLost)
	if run != nil && left <= killBefore {
		run.Kill()
	}
}

// proven records that the lease is known to be held until then, and whether it is kept from now on.
func (a *attempt) proven(until, now time.Time, kept bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.provenUntil = until
	if kept && a.keptUntil.IsZero() {
		a.keptUntil = now.Add(keptFor)
	}
	if a.run != nil && !a.done {
		a.run.Extend(until.Sub(now))
	}
}

// heldUntil returns the time until which the lease is known to be held, even if it is
// not renewed again.
func (a *attempt) heldUntil() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.provenUntil
}

// cancelRequested stops the attempt because its job is to be canceled.
func (a *attempt) cancelRequested() {
	a.mu.Lock()
	a.canceling = true
	a.mu.Unlock()
	a.stop(job.CancelRequested)
}

// Finished implements job.Reporter.
func (a *attempt) Finished(outcome job.Outcome) {
	a.mu.Lock()
	a.done = true
	a.limits.end(a)
	if a.kill != nil {
		a.kill.Stop()
	}
	outcome = a.attribute(outcome)
	a.mu.Unlock()
	a.ends.finish(a, outcome)
}

// lease is the attempt's lease, which knows when the handler was started.
func (a *attempt) lease() job.Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leaseLocked()
}

// unkept returns the lease if a heartbeat must name it: because it is not kept, or was named too long ago.
func (a *attempt) unkept(now time.Time) (lease job.Lease, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Before(a.keptUntil) {
		return job.Lease{}, false
	}
	a.keptUntil = time.Time{}
	return a.leaseLocked(), true
}

// nameAgain has the next heartbeat name the lease. It returns false if that need not come early: the last one did
// name it, or the attempt has ended and may just have been settled.
func (a *attempt) nameAgain() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := !a.keptUntil.IsZero()
	a.keptUntil = time.Time{}
	return kept && !a.done
}

func (a *attempt) leaseLocked() job.Lease {
	lease := a.claimed.Lease
	if !a.began.IsZero() {
		lease.Began = a.sinceClaim(a.began)
	}
	return lease
}

// sinceClaim counts from when the answer to the claim came, so that the database's clock
// cannot show a moment later than it was.
func (a *attempt) sinceClaim(moment time.Time) job.SinceClaim {
	return job.SinceClaim{Time: moment.Sub(a.claimedAt), Known: true}
}

// last is what is known of an attempt that has ended: when it began (zero if it was
// never started), what the decision about its job rests on, and whether it was stopped.
func (a *attempt) last() (began time.Time, history job.History, stopped bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.began, job.History{
		Attempt: a.claimed.Attempt, MaxAttempts: a.claimed.MaxAttempts,
		Interruptions: a.claimed.Interruptions, Crashes: a.claimed.Crashes, CancelRequested: a.canceling,
	}, a.stopped != ""
}

// attribute names the true cause of a handler's death: one that we killed did not
// crash. One that died by itself after its time was up did crash, or another attempt
// in its process: a timeout must not clear it of suspicion.
func (a *attempt) attribute(outcome job.Outcome) job.Outcome {
	if outcome.Kind != job.Crash || a.stopped == "" {
		return outcome
	}
	switch a.stopped {
	case job.CancelTimeout:
		if !outcome.Killed {
			return outcome
		}
		outcome.Kind, outcome.Code = job.Timeout, job.CodeTimeout
		outcome.Message = "ran longer than " + a.claimed.Timeout.String() + ", ignored its cancel and was killed"
	case job.CancelRequested:
		outcome.Kind = job.CancelConfirmed
	case job.CancelShutdown, job.CancelLeaseLost:
		outcome.Kind = job.Released
	}
	return outcome
}

// Progress implements job.Reporter.
func (a *attempt) Progress(progress json.RawMessage) <-chan struct{} {
	return a.reporting().Progress(progress)
}

// Checkpoint implements job.Reporter.
func (a *attempt) Checkpoint(checkpoint json.RawMessage) <-chan struct{} {
	a.spans.Happened(spans.EventCheckpoint)
	return a.reporting().Checkpoint(checkpoint)
}

// Log implements job.Reporter.
func (a *attempt) Log(line job.LogLine) { a.reporting().Log(line) }

func (a *attempt) reporting() *progress.Attempt {
	if a.reports == nil {
		a.reports = a.recorder.Attempt(a.pool.Plugin, a.claimed.Lease, a.claimed.Attempt)
	}
	return a.reports
}

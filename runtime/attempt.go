package runtime

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// attempt is one run of a handler under a lease: the handler's process on one
// side, the lease's proof on the other. It stops the handler when its time is
// up, its job is canceled, its lease cannot be proven, or the worker shuts
// down; first it asks, then it kills.
type attempt struct {
	claimed   job.Claimed
	pool      job.Pool
	killGrace time.Duration
	settler   *settler
	spans     *spans.Attempt // nil unless the job is traced

	mu          sync.Mutex
	began       time.Time // zero while it waits for a slot
	run         job.Run   // nil until the handler was started
	provenUntil time.Time
	stopped     job.CancelReason // empty while the handler may go on
	canceling   bool             // the job's cancel was requested
	done        bool
	timeout     *time.Timer
	kill        *time.Timer

	// page and log are nil until the handler reports something, and logs. They are
	// the reporting goroutine's.
	page *page
	log  *logTail
}

func newAttempt(c job.Claimed, pool job.Pool, provenUntil time.Time, killGrace time.Duration, s *settler) *attempt {
	return &attempt{claimed: c, pool: pool, provenUntil: provenUntil, killGrace: killGrace, settler: s}
}

// alone says that the attempt must have a process to itself.
func (a *attempt) alone() bool { return a.claimed.Crashes > 0 }

// begin says that the handler is about to be started, and returns for how long
// the lease is proven. It returns false for an attempt that was stopped while
// it waited, and stops one that fence would: a claim may take long to be answered.
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

// putOff says that the handler could not be started after all. It returns false
// for an attempt that was stopped in the meantime.
func (a *attempt) putOff() bool {
	a.mu.Lock()
	stopped := a.stopped
	if stopped == "" {
		a.began = time.Time{}
	}
	a.mu.Unlock()
	if stopped != "" {
		a.Finished(neverStarted(stopped))
	}
	return stopped == ""
}

// neverStarted is the outcome of an attempt that was stopped while it waited.
func neverStarted(reason job.CancelReason) job.Outcome {
	switch reason {
	case job.CancelRequested:
		return job.Outcome{Kind: job.CancelConfirmed}
	case job.CancelLeaseLost:
		return job.Outcome{Kind: job.Released, Code: string(reason), Message: "its lease could not be proven until a slot of a handler came free for it"}
	default:
		return job.Outcome{Kind: job.Released, Code: "no_slot", Message: "no slot of a handler came free for it"}
	}
}

// postpone gives the job of an attempt that waits back, to be claimed again after
// a while.
func (a *attempt) postpone(by time.Duration) {
	a.mu.Lock()
	waits := a.began.IsZero() && !a.done
	a.done = a.done || waits
	a.mu.Unlock()
	if waits {
		a.report(job.Outcome{
			Kind: job.Released, Code: job.CodeNoProcess, Message: "no process of its own came free for it", RetryAfter: &by,
		})
	}
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
	if !a.alone() {
		a.limitTime()
	}
	if a.stopped != "" {
		a.ask()
	}
}

// Began implements job.Reporter. The time that a process of its own takes to come
// up is not the handler's.
func (a *attempt) Began() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.done {
		a.limitTime()
	}
}

func (a *attempt) limitTime() {
	a.timeout = time.AfterFunc(a.claimed.Timeout, func() { a.stop(job.CancelTimeout) })
}

// stop asks the handler to end and kills its process if it does not end
// within the grace. One that has not been started ends at once. Only the first reason counts, but for a lost lease, which
// outranks every other.
func (a *attempt) stop(reason job.CancelReason) {
	a.mu.Lock()
	if a.done || (a.stopped != "" && reason != job.CancelLeaseLost) || a.stopped == reason {
		a.mu.Unlock()
		return
	}
	first := a.stopped == ""
	a.stopped = reason
	a.spans.Happened(asked[reason])
	if reason == job.CancelLeaseLost {
		a.settler.telemetry.lost(lossUnproven)
	}
	if a.run != nil && first {
		a.ask()
	}
	waits := a.began.IsZero()
	a.done = waits
	a.mu.Unlock()
	if waits {
		a.report(neverStarted(reason))
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

// asked are the events of handlers that are asked to stop.
var asked = map[job.CancelReason]string{
	job.CancelRequested: spans.EventCancelRequested,
	job.CancelTimeout:   spans.EventTimedOut,
	job.CancelLeaseLost: spans.EventLeaseLost,
	job.CancelShutdown:  spans.EventShutdown,
}

// fence stops a handler whose lease runs out: it is asked when less than
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

// proven says that the lease is known to be held until then.
func (a *attempt) proven(until, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.provenUntil = until
	if a.run != nil && !a.done {
		a.run.Extend(until.Sub(now))
	}
}

// heldUntil is until when the lease is known to be held if it is not renewed.
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
	if a.timeout != nil {
		a.timeout.Stop()
	}
	if a.kill != nil {
		a.kill.Stop()
	}
	outcome = a.attribute(outcome)
	if a.alone() {
		outcome = a.settler.launches.delayed(a.pool.Plugin, outcome, a.stopped != "")
	}
	a.mu.Unlock()
	if a.log != nil {
		a.log.end()
	}
	a.report(outcome)
}

func (a *attempt) report(outcome job.Outcome) {
	a.mu.Lock()
	standing := job.Standing{
		Attempt: a.claimed.Attempt, MaxAttempts: a.claimed.MaxAttempts,
		Interruptions: a.claimed.Interruptions, Crashes: a.claimed.Crashes, CancelRequested: a.canceling,
	}
	began := a.began
	a.mu.Unlock()
	a.settler.finished(a, began, standing, outcome)
}

// attribute names the true cause of a handler's death: one that we killed did
// not crash. One that died by itself after its time was up did, or others in its
// process: it must not be cleared by a timeout.
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
	return a.notes().keep(job.Report{Progress: progress})
}

// Checkpoint implements job.Reporter.
func (a *attempt) Checkpoint(checkpoint json.RawMessage) <-chan struct{} {
	a.spans.Happened(spans.EventCheckpoint)
	return a.notes().keep(job.Report{Checkpoint: checkpoint})
}

// Log implements job.Reporter.
func (a *attempt) Log(line job.LogLine) {
	if a.log == nil {
		page := a.notes()
		a.log = newLogTail(func(lines []job.LogLine, dropped int64) {
			page.keep(job.Report{Log: &job.AttemptLog{
				Number: a.claimed.Attempt, Fence: a.claimed.Fence, Lines: lines, Dropped: dropped,
			}})
		})
	}
	a.log.add(line)
}

// notes is the attempt's page in the notebook of its plugin.
func (a *attempt) notes() *page {
	if a.page == nil {
		a.page = a.settler.notes.book(a.pool.Plugin).page(a.claimed.Lease)
	}
	return a.page
}

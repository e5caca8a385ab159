package runtime

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
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
	began     time.Time

	mu          sync.Mutex
	run         job.Run // nil until the handler was started
	provenUntil time.Time
	stopped     job.CancelReason // empty while the handler may go on
	canceling   bool             // the job's cancel was requested
	done        bool
	timeout     *time.Timer
	kill        *time.Timer
}

func newAttempt(c job.Claimed, pool job.Pool, provenUntil time.Time, killGrace time.Duration, s *settler) *attempt {
	return &attempt{claimed: c, pool: pool, provenUntil: provenUntil, killGrace: killGrace, settler: s, began: time.Now()}
}

// started hands over the run. The handler may have finished already.
func (a *attempt) started(run job.Run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return
	}
	a.run = run
	a.timeout = time.AfterFunc(a.claimed.Timeout, func() { a.stop(job.CancelTimeout) })
	if a.stopped != "" {
		a.ask()
	}
}

// stop asks the handler to end and kills its process if it does not end
// within the grace. Only the first reason counts, but for a lost lease, which
// outranks every other.
func (a *attempt) stop(reason job.CancelReason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done || (a.stopped != "" && reason != job.CancelLeaseLost) || a.stopped == reason {
		return
	}
	first := a.stopped == ""
	a.stopped = reason
	if reason == job.CancelLeaseLost {
		a.settler.telemetry.lost(lossUnproven)
	}
	if a.run != nil && first {
		a.ask()
	}
}

// ask is called with the mutex held, once.
func (a *attempt) ask() {
	a.run.Cancel(a.stopped)
	a.kill = time.AfterFunc(a.killGrace, a.run.Kill)
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
	standing := job.Standing{
		Attempt: a.claimed.Attempt, MaxAttempts: a.claimed.MaxAttempts,
		Interruptions: a.claimed.Interruptions, CancelRequested: a.canceling,
	}
	a.mu.Unlock()
	a.settler.finished(a, standing, outcome)
}

// attribute names the true cause of a handler's death: one that we killed did
// not crash.
func (a *attempt) attribute(outcome job.Outcome) job.Outcome {
	if outcome.Kind != job.Crash || a.stopped == "" {
		return outcome
	}
	switch a.stopped {
	case job.CancelTimeout:
		outcome.Kind = job.Timeout
		outcome.Message = "ran longer than " + a.claimed.Timeout.String() + ", ignored its cancel and was killed"
	case job.CancelRequested:
		outcome.Kind = job.CancelConfirmed
	case job.CancelShutdown, job.CancelLeaseLost:
		outcome.Kind = job.GivenBack
	}
	return outcome
}

// Progress implements job.Reporter.
func (a *attempt) Progress(progress json.RawMessage) {
	a.settler.note(job.Note{Lease: a.claimed.Lease, Progress: progress})
}

// Checkpoint implements job.Reporter.
func (a *attempt) Checkpoint(checkpoint json.RawMessage) {
	a.settler.note(job.Note{Lease: a.claimed.Lease, Checkpoint: checkpoint})
}

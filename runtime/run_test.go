package runtime_test

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// run is one attempt under way at the supervisor.
type run struct {
	job.Assignment
	job.Reporter
	stopped chan struct{} // closed by the first cancel
	killed  chan struct{} // closed by the first kill

	mu       sync.Mutex
	reasons  []job.CancelReason
	kills    int
	extended int
	ended    bool
}

func (r *run) Cancel(reason job.CancelReason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if r.reasons = append(r.reasons, reason); len(r.reasons) == 1 {
		close(r.stopped)
	}
}

func (r *run) Kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if r.kills++; r.kills == 1 {
		close(r.killed)
	}
}

func (r *run) Extend(time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.extended++
}

// end returns what a supervisor would report: the script's word, unless its
// process was killed first.
func (r *run) end(outcome job.Outcome) job.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.kills > 0 {
		return job.Outcome{Kind: job.Crash, Code: "killed", Message: "signal: killed", Killed: true}
	}
	return outcome
}

// told returns the reasons for which the run was asked to stop, in order.
func (r *run) told() []job.CancelReason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reasons)
}

func (r *run) wasKilled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kills > 0
}

// succeeds is a handler that is done at once.
func succeeds(*run) job.Outcome { return job.Outcome{Kind: job.Success} }

// fails is one that never succeeds.
func fails(*run) job.Outcome {
	return job.Outcome{Kind: job.Failure, Code: "E1", Message: "it broke"}
}

// stops works until it is asked to stop, and then does.
func stops(r *run) job.Outcome {
	select {
	case <-r.stopped:
		return confirmation(r.told()[0])
	case <-r.killed:
		return job.Outcome{}
	}
}

// clings ignores its cancel until its process is killed.
func clings(r *run) job.Outcome {
	<-r.killed
	return job.Outcome{}
}

// until works until the channel is closed, whatever it is told, and succeeds.
func until(done <-chan struct{}) script {
	return func(r *run) job.Outcome {
		select {
		case <-done:
		case <-r.killed:
		}
		return job.Outcome{Kind: job.Success}
	}
}

// inTurn plays one script for each attempt that is started, in any job; the
// last of them again for all that follow.
func inTurn(scripts ...script) script {
	var mu sync.Mutex
	at := 0
	return func(r *run) job.Outcome {
		mu.Lock()
		play := scripts[min(at, len(scripts)-1)]
		at++
		mu.Unlock()
		return play(r)
	}
}

// ending is a handler that ends at once, like this.
func ending(outcome job.Outcome) script {
	return func(*run) job.Outcome { return outcome }
}

// confirmation is what a supervisor makes of a handler that stops when told.
func confirmation(reason job.CancelReason) job.Outcome {
	switch reason {
	case job.CancelTimeout:
		return job.Outcome{Kind: job.Timeout, Code: "timeout", Message: "context deadline exceeded"}
	case job.CancelShutdown, job.CancelLeaseLost:
		return job.Outcome{Kind: job.Released}
	default:
		return job.Outcome{Kind: job.CancelConfirmed}
	}
}

package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/progress"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// settleBatch bounds one write of settlements.
const settleBatch = 750

// CrashPolicy says when the attempts whose process has died are settled.
type CrashPolicy string

const (
	// Expire holds them until their leases would have run out had the worker died.
	// The leases are renewed all the while, and until the settlements are written:
	// a database that does not answer then must not make a reaper charge every job
	// that was in the process. Only if this worker dies as well does a reaper settle
	// them.
	Expire CrashPolicy = "expire"
	// Release settles them as soon as the process is known to be gone.
	Release CrashPolicy = "release"
)

// ending is how an attempt has ended, on its way to the ledger.
type ending struct {
	attempt   *attempt  // nil when a reaper ends it
	pool      *job.Pool // as well
	lease     job.Lease
	jobType   string
	history   job.History
	outcome   job.Outcome
	decision  job.Decision   // what path.decide made of it
	followUps *followUps     // nil for none, and until they are looked at
	refused   bool           // the database has refused the outcome once already
	ran       bool           // the handler was started, by this worker
	took      time.Duration  // from then until it was done
	done      job.SinceClaim // when that was, or the last sign of life of its worker
	lostBy    string         // the worker that the lease was taken from; empty for none
	spans     *spans.Attempt
	trace     *job.Trace // as the job carries it

	// An ending is not settled before holdUntil, nor before the reports of the attempt
	// are saved.
	holdUntil time.Time
	reports   *progress.Attempt
}

// settlement is what is to be written.
func (e *ending) settlement() job.Settlement {
	s := job.Settlement{
		Lease: e.lease, Decision: e.decision, Number: e.history.Attempt,
		Code: e.outcome.Code, Error: e.decision.Reason(e.outcome), Stack: e.outcome.Stack,
		SpanID: e.spans.ID(), Started: e.started(), Done: e.done,
	}
	if e.pool != nil {
		s.Plugin, s.Version = e.pool.Plugin, e.pool.Version
	}
	if e.decision.To == job.Succeeded {
		s.Result = e.outcome.Result
		if e.followUps != nil {
			s.FollowUps = e.followUps.accepted
		}
	}
	return s
}

// started says that the handler was started, or may have been: its worker is lost.
func (e *ending) started() bool { return e.ran || e.lostBy != "" }

// settler gathers how attempts end, and has everything that is ready written at once.
// While one write is under way, the next batch gathers.
type settler struct {
	added loop.Signal // raised when an ending was added, or may have become ready

	mu       sync.Mutex
	waiting  []*ending // in the order they came
	held     int       // those that waited for a crash hold when last looked at
	draining bool
}

func newSettler() *settler { return &settler{added: loop.NewSignal()} }

// add takes an ending.
func (s *settler) add(e *ending) {
	s.mu.Lock()
	if s.draining {
		e.holdUntil = time.Time{}
	}
	if !e.holdUntil.IsZero() {
		s.held++
		e.spans.Held()
	}
	s.waiting = append(s.waiting, e)
	s.mu.Unlock()
	s.added.Raise()
}

// run settles until the context ends, and then everything that was added before.
func (s *settler) run(ctx context.Context, settle func([]*ending)) {
	batch := make([]*ending, 0, settleBatch)
	for going := true; going; {
		var next time.Duration
		for batch, next = s.ready(batch[:0]); len(batch) > 0; batch, next = s.ready(batch[:0]) {
			settle(batch)
			clear(batch)
		}
		going = s.added.Wait(ctx, next)
	}
	for batch, _ = s.ready(batch[:0]); len(batch) > 0; batch, _ = s.ready(batch[:0]) {
		settle(batch)
	}
}

// ready moves the endings that can be settled now to the batch, and returns how long
// the next crash hold lasts.
func (s *settler) ready(batch []*ending) (_ []*ending, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, s.held = time.Hour, 0
	now := time.Now()
	left := s.waiting[:0]
	for _, e := range s.waiting {
		hold := e.holdUntil.Sub(now)
		switch {
		case hold > 0 && !s.draining:
			s.held++
			next = min(next, hold)
			left = append(left, e)
		case len(batch) == settleBatch || !e.reports.Saved():
			left = append(left, e)
		default:
			batch = append(batch, e)
		}
	}
	clear(s.waiting[len(left):])
	s.waiting = left
	return batch, next
}

// drain ends all crash holds, present and future.
func (s *settler) drain() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.added.Raise()
}

// crashHeld returns how many endings wait for a crash hold.
func (s *settler) crashHeld() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// Limits on what is kept of an error's texts, in bytes.
const (
	maxCode    = 200
	maxMessage = 8 << 10
	maxStack   = 32 << 10
)

// bounded cuts error texts to size and makes them storable.
func bounded(o job.Outcome) job.Outcome {
	o.Code = job.CleanText(o.Code, maxCode)
	o.Message = job.CleanText(o.Message, maxMessage)
	o.Stack = job.CleanText(o.Stack, maxStack)
	return o
}

// storable replaces an outcome that the database refused.
func storable(o job.Outcome) job.Outcome {
	if o.Kind == job.Success {
		return job.Outcome{
			Kind: job.PermanentFailure, Code: "bad_result",
			Message: "the result is not JSON that the database can store",
		}
	}
	return job.Outcome{Kind: o.Kind, Code: "bad_error", Message: "the error could not be stored", RetryAfter: o.RetryAfter}
}

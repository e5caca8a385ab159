package runtime

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// settleBatch bounds one flush. settleTimeout bounds one try at it.
const (
	settleBatch   = 500
	settleTimeout = 10 * time.Second
)

// settler writes down how attempts end, in groups. What an attempt has reported
// on its way is on the shelf, and is always written before its end is.
//
// A flush is tried until it has an answer, for as long as the worker runs:
// the leases stay held meanwhile, and every write is fenced, so trying again
// is safe.
type settler struct {
	store    Store
	held     *holdings
	policies *catalog
	log      *slog.Logger
	ctx      context.Context // ends when settling is no longer worth a try
	batch    *batcher[*end]
	notes    *shelf
	lapsing  *lapsing
	launches *launches
	retried  func(after time.Duration)                                   // a job will be due so much later
	queued   func()                                                      // a job was put on the ready list
	ended    func(job.ID)                                                // a job has reached a final state
	freed    func(done *attempt, as job.OutcomeKind, took time.Duration) // a handler is done
	// maxCrashes is Config.MaxCrashes.
	maxCrashes func(jobType string) int

	telemetry *telemetry
	jobLog    *jobLog
}

// end is how an attempt has ended, on its way to the ledger.
type end struct {
	settlement job.Settlement
	jobType    string
	standing   job.Standing
	outcome    job.Outcome
	refused    bool // the database has refused the outcome once already
	spans      *spans.Attempt
	trace      job.Trace     // as the job carries it
	ran        bool          // the handler was started, by this worker
	took       time.Duration // from then until it was done
	lostBy     string        // the worker that the lease was taken from; empty for none
	page       *page         // what the attempt has reported; nil for nothing
}

func newSettler(ctx context.Context, store Store, held *holdings, policies *catalog, cfg Config, t *telemetry) *settler {
	s := &settler{
		ctx: ctx, store: store, held: held, policies: policies, log: cfg.Log, telemetry: t,
		maxCrashes: cfg.MaxCrashes, launches: newLaunches(), jobLog: newJobLog(cfg.Log, cfg.JobLog),
	}
	s.batch = newBatcher(settleBatch, s.flush)
	s.notes = newShelf(ctx, cfg.ReportInterval, s.writeNotes, s.add)
	s.lapsing = newLapsing(cfg, s.notes.end)
	return s
}

// tracedBy has the attempt told of when it is settled.
func (e *end) tracedBy(told *spans.Attempt) *end {
	e.spans, e.settlement.SpanID = told, told.ID()
	return e
}

// finished takes an attempt whose handler is done, or that was stopped before
// it began.
func (s *settler) finished(a *attempt, began time.Time, standing job.Standing, outcome job.Outcome) {
	s.held.finished(!began.IsZero())
	a.spans.Ended(began)
	e := s.decide(a.claimed.Lease, a.claimed.Type, standing, bounded(outcome)).tracedBy(a.spans)
	e.settlement.Plugin, e.settlement.Version = a.pool.Plugin, a.pool.Version
	e.trace, e.ran, e.page = a.claimed.Trace, !began.IsZero(), a.page
	if e.ran {
		e.took = time.Since(began)
	}
	if outcome.Kind == job.Crash {
		s.lapsing.add(a, e)
	} else {
		s.notes.end(e)
	}
	if e.ran {
		s.telemetry.ran(a.claimed.Type, e.settlement.Kind, e.took)
		s.freed(a, outcome.Kind, e.took)
	}
}

// add has the attempt settled.
func (s *settler) add(e *end) { s.batch.add(e) }

// decide turns an outcome into what is to be written.
func (s *settler) decide(lease job.Lease, jobType string, standing job.Standing, outcome job.Outcome) *end {
	standing.MaxCrashes = s.maxCrashes(jobType)
	decision := job.Decide(s.policies.policy(jobType), standing, outcome, rand.Float64())
	e := &end{jobType: jobType, standing: standing, outcome: outcome, settlement: job.Settlement{
		Lease: lease, Decision: decision, Number: standing.Attempt,
		Code: outcome.Code, Error: decision.Reason(outcome), Stack: outcome.Stack,
	}}
	if decision.To == job.Succeeded {
		e.settlement.Result = outcome.Result
	}
	return e
}

func (s *settler) flush(ends []*end) {
	for len(ends) > 0 {
		ends = s.settle(ends)
	}
}

// settle writes the settlements and returns those that must be written again
// in another way.
func (s *settler) settle(ends []*end) (again []*end) {
	batch := make([]job.Settlement, len(ends))
	for i, e := range ends {
		batch[i] = e.settlement
	}
	var sent time.Time
	fates, err := s.untilAnswered(opSettle, len(batch), func(ctx context.Context) ([]job.SettleResult, error) {
		sent = time.Now()
		return s.store.Settle(ctx, batch)
	})
	if err != nil {
		return s.settleAlone(ends, err)
	}
	for i, e := range ends {
		switch fates[i] {
		case job.Settled:
			s.held.remove(e.settlement.Lease.ID)
			s.telemetry.settled(e.jobType, e.settlement.Kind)
			e.spans.Settled(&e.settlement, sent)
			s.jobLog.settled(e)
			s.announce(&e.settlement)
		case job.Lost:
			s.held.remove(e.settlement.Lease.ID)
			s.telemetry.lost(lossAtSettle)
			e.spans.Lost(&e.settlement)
			s.log.Warn("attempt ended too late: its lease was lost", slog.String("job_id", e.settlement.JobID.String()),
				slog.Int64("fence", e.settlement.Fence), slog.String("outcome", string(e.outcome.Kind)))
		case job.Canceling:
			e.standing.CancelRequested = true
			again = append(again, s.revise(e, e.outcome))
		case job.Refused:
			if e.refused {
				s.giveUp(e, job.ErrBadData)
				continue
			}
			revised := s.revise(e, storable(e.outcome))
			revised.refused = true
			again = append(again, revised)
		case job.Held:
			again = append(again, e)
		}
	}
	return again
}

// settleAlone writes settlements one by one after the database refused their
// batch for a reason that trying again will not cure. One that is refused
// alone is given up: its lease expires, and the reaper settles the job.
func (s *settler) settleAlone(ends []*end, cause error) (again []*end) {
	if len(ends) == 1 || s.ctx.Err() != nil {
		for _, e := range ends {
			s.giveUp(e, cause)
		}
		return nil
	}
	for _, e := range ends {
		again = append(again, s.settle([]*end{e})...)
	}
	return again
}

// giveUp lets go of an attempt that cannot be settled.
func (s *settler) giveUp(e *end, cause error) {
	s.held.remove(e.settlement.Lease.ID)
	s.log.Error("attempt could not be settled; its lease will expire",
		slog.String("job_id", e.settlement.JobID.String()), slog.Any("error", cause))
}

// revise decides anew, on what has been learnt.
func (s *settler) revise(e *end, outcome job.Outcome) *end {
	revised := s.decide(e.settlement.Lease, e.jobType, e.standing, outcome).tracedBy(e.spans)
	revised.settlement.Plugin, revised.settlement.Version = e.settlement.Plugin, e.settlement.Version
	revised.trace, revised.ran, revised.took, revised.lostBy = e.trace, e.ran, e.took, e.lostBy
	return revised
}

// announce wakes whoever acts on the job next.
func (s *settler) announce(settled *job.Settlement) {
	switch settled.To {
	case job.Retry:
		s.retried(settled.Delay)
	case job.Queued:
		s.queued()
	case job.Succeeded, job.Dead, job.Canceled:
		s.ended(settled.JobID)
	case job.Created, job.Running:
	}
}

// untilAnswered tries until the database answers, with pauses that grow to a
// second. It returns the error that trying again will not cure, or the last
// one when the settler has to end.
func (s *settler) untilAnswered(o operation, size int, try func(context.Context) ([]job.SettleResult, error)) ([]job.SettleResult, error) {
	pause := 10 * time.Millisecond
	for {
		ctx, cancel := context.WithTimeout(s.ctx, settleTimeout)
		began := time.Now()
		fates, err := try(ctx)
		timedOut := ctx.Err() != nil
		cancel()
		s.telemetry.batch(o, size, began, err)
		if err == nil || s.ctx.Err() != nil || !(errors.Is(err, job.ErrUnavailable) || timedOut) {
			return fates, err
		}
		s.log.Warn("database did not answer; trying again", slog.String("operation", o.name),
			slog.Int("batch", size), slog.Duration("pause", pause), slog.Any("error", err))
		pauseFor(s.ctx, jittered(pause))
		pause = min(2*pause, time.Second)
	}
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

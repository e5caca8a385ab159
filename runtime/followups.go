package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/spans"
)

// followUps are the jobs that the handler of an attempt has submitted: they become real in
// the transaction that settles its success, or never. They have a loop of their own, so
// that other endings do not wait until they are checked and inserted.
type followUps struct {
	// accepted are those that have passed the checks so far, in order. Their ids stay the
	// same over all tries.
	accepted []job.Submission
	sent     []*spans.Sent // of the same
	// results are what became of them; nil if the answer was lost.
	results []job.Submitted
}

// handOver passes the endings with follow-ups to their loop, and returns the others.
func (p *path) handOver(ends []*ending) []*ending {
	others := ends[:0]
	for _, e := range ends {
		if len(e.outcome.FollowUps) > 0 {
			p.parents.add(e)
			continue
		}
		others = append(others, e)
	}
	return others
}

// settleParents is settle for endings with follow-ups.
func (p *path) settleParents(ends []*ending) { p.untilSettled(ends, p.settleParentsOnce) }

// settleParentsOnce accepts the follow-ups and settles the attempts. It returns the endings that
// must be written again.
func (p *path) settleParentsOnce(ends []*ending) (again []*ending) {
	var parents, refused []*ending
	for _, e := range ends {
		if len(e.outcome.FollowUps) == 0 {
			refused = append(refused, e)
			continue
		}
		switch err := p.accept(e); {
		case err != nil: // the database is away
			p.cfg.Log.Warn("follow-ups could not be checked; trying again", "job_id", e.lease.JobID.String(), "error", err)
			again = append(again, e)
		case len(e.outcome.FollowUps) > 0:
			parents = append(parents, e)
		default:
			refused = append(refused, e)
		}
	}
	if len(parents) > 0 {
		again = append(again, p.write(parents, p.storeParents(parents))...)
	}
	if len(refused) > 0 {
		again = append(again, p.settleOnce(refused)...)
	}
	return again
}

// accept makes jobs of the follow-ups, as POST /jobs would. If one is refused, the outcome
// is a failure from then on. An error says that this cannot be known now.
func (p *path) accept(e *ending) error {
	wanted := e.outcome.FollowUps
	if e.followUps == nil {
		e.followUps = &followUps{accepted: make([]job.Submission, 0, len(wanted))}
	}
	ctx, cancel := context.WithTimeout(p.ctx, settleTimeout)
	defer cancel()
	for i := len(e.followUps.accepted); i < len(wanted); i++ {
		one, err := p.jobs.Accept(ctx, wanted[i], e.attempt.claimed.Tenant, *e.trace)
		if outcome, refused := refusal(i, err); refused {
			p.refuse(e, outcome)
			return nil
		}
		if err != nil {
			return err
		}
		one.Parent = e.lease.JobID
		e.followUps.sent = append(e.followUps.sent, p.jobs.Spans.SendWithin(*e.trace, &one))
		e.followUps.accepted = append(e.followUps.accepted, one)
	}
	p.decide(e)
	return nil
}

// refuse fails the attempt, without its follow-ups.
func (p *path) refuse(e *ending, outcome job.Outcome) {
	e.followUps.done(errRefused)
	e.followUps, e.outcome = nil, bounded(outcome)
	p.decide(e)
}

// errRefused ends the spans of follow-ups whose attempt has failed after all.
var errRefused = errors.New("another job of the attempt was refused")

// problem is the error of a submission that is refused; see jobs.Service.Accept.
type problem interface {
	error
	// GetStatus is an HTTP status: from 500 on, the submission may be accepted later.
	GetStatus() int
	// Below says what is wrong, with the places below the one given.
	Below(place string) string
}

// refusal is the outcome of an attempt whose follow-up with the index was not accepted
// because of what it is. A job type that nobody has declared may be declared soon, by a
// deploy that is under way: the attempt fails, and is retried. Nothing else gets better.
func refusal(index int, err error) (job.Outcome, bool) {
	var wrong problem
	if !errors.As(err, &wrong) || wrong.GetStatus() >= http.StatusInternalServerError {
		return job.Outcome{}, false
	}
	kind := job.PermanentFailure
	if errors.Is(err, job.ErrUnknownType) {
		kind = job.Failure
	}
	return job.Outcome{Kind: kind, Code: job.CodeFollowUpsRefused, Message: wrong.Below("#/followUps/" + strconv.Itoa(index))}, true
}

// storeParents is how write sends the endings, and keeps what became of their follow-ups.
func (p *path) storeParents(ends []*ending) func(context.Context, []job.Settlement) ([]job.SettleResult, error) {
	byLease := make(map[job.LeaseID]*ending, len(ends))
	for _, e := range ends {
		byLease[e.lease.ID] = e
	}
	return func(ctx context.Context, batch []job.Settlement) ([]job.SettleResult, error) {
		results, submitted, err := p.store.SettleWithFollowUps(ctx, batch)
		for i := range results {
			byLease[batch[i].Lease.ID].followUps.results = submitted[i]
		}
		return results, err
	}
}

// notStored is the outcome of a success that the database has refused.
func (e *ending) notStored() job.Outcome {
	if e.followUps == nil {
		return storable(e.outcome)
	}
	for i, result := range e.followUps.results {
		if result.Err != nil {
			return job.Outcome{
				Kind: job.PermanentFailure, Code: job.CodeFollowUpsRefused,
				Message: fmt.Sprintf("#/followUps/%d/idempotencyKey was used for a different job type or payload", i),
			}
		}
	}
	return job.Outcome{
		Kind: job.PermanentFailure, Code: job.CodeFollowUpsRefused,
		Message: "the result or a follow-up has a value that the database cannot store",
	}
}

// followedUp wakes whoever acts next on the follow-ups, which are in the ledger.
func (p *path) followedUp(f *followUps) {
	if f.results == nil { // by an earlier try, whose answer was lost
		f.results = make([]job.Submitted, len(f.accepted))
		now := time.Now()
		for i, one := range f.accepted {
			f.results[i].Receipt = job.Receipt{ID: one.ID, Type: one.Type, State: job.Queued, CreatedAt: now, UpdatedAt: now}
			if one.Hold || one.Delay > 0 || one.RunAt.After(now) {
				f.results[i].Receipt.State = job.Created
			}
		}
	}
	p.jobs.Submitted(f.accepted, f.results)
	f.done(nil)
}

// done ends the spans of the follow-ups, with the error if it is not nil.
func (f *followUps) done(err error) {
	if f == nil {
		return
	}
	for i, sent := range f.sent {
		switch {
		case err != nil:
			sent.Done(job.Submitted{Err: err})
		case i < len(f.results):
			sent.Done(f.results[i])
		}
	}
}
